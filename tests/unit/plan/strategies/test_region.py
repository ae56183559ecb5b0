"""The bounds of a change, and the stored rows that are enough to recompute it."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.relations.project import Projection
from livemart.plan.relations.relation import Restriction
from livemart.plan.relations.union import Union
from livemart.plan.sql.flatten import flatten
from livemart.plan.strategies.region import Region, constants_of
from livemart.plan.uncut import plan_uncut
from tests.unit.plan.relations.scans import expr, sales

HOUR = 3_600_000_000
INPUTS = Inputs(columns={"s.sales": ("shop", "amount", "sold_at")})


def region(sql: str) -> Region:
    plan = plan_query(sql, INPUTS)
    assert plan.region is not None
    return plan.region


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("shop", (0, "shop", 0)),
        ("date_trunc('hour', sold_at)", (0, "sold_at", HOUR)),
        ("sold_at + interval 2 hours", (0, "sold_at", 2 * HOUR)),
    ],
)
def test_a_key_is_a_stored_column_and_how_far_off_it_may_be(
    key: str, expected: tuple[int, str, int]
) -> None:
    found = region(f"select {key} as k, max(amount) as most from s.sales group by 1")

    assert found.restrictions == {0: (Restriction((expected,)),)}


def test_a_key_that_is_no_plain_function_of_a_column_narrows_nothing() -> None:
    found = region("select upper(shop) as k, max(amount) as most from s.sales group by 1")

    assert found.restrictions == {0: (Restriction(()),)}


def test_a_frame_reaches_as_far_as_its_margins() -> None:
    found = region(
        "select shop, sold_at, max(amount) over (partition by shop order by sold_at"
        " range between interval 1 hour preceding and current row) as most from s.sales"
    )

    assert (found.keys, found.time, found.before, found.after) == (("shop",), "sold_at", HOUR, 0)
    assert found.restrictions == {0: (Restriction(((0, "shop", 0),), "sold_at", HOUR, 0),)}
    assert found.stored == Restriction(((0, "shop", 0),), "sold_at")


def test_keys_that_are_plain_columns_need_no_statement() -> None:
    (affected,) = region("select shop, max(amount) as most from s.sales group by 1").affected

    assert affected.columns == ("shop",)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("lag(amount) over (partition by shop order by sold_at)", "k is computed by a window"),
        ("amount", "k is that of rows which a window picks by sales.shop"),
    ],
)
def test_groups_above_a_window_are_told_why_they_have_no_key(key: str, words: str) -> None:
    query = (
        f"select k, count(*) as n from (select {key} as k, row_number() over"
        " (partition by shop order by sold_at) as place from s.sales) as r where place = 1"
        " group by k"
    )

    [reason] = plan_uncut(flatten(query, {}), INPUTS).reasons
    assert (reason.code, words in reason.message) == ("KEY_NOT_IN_OUTPUT", True)
    assert reason.suggestion is not None and "in a model" in reason.suggestion


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            "select item, max(shop) as most from s.sales lateral view explode(items) x as item"
            " group by item",
            "x.item is made by explode(sales.items)",
        ),
        (
            "select pos + 1 as place, max(shop) as most from s.sales lateral view"
            " posexplode(items) x as pos, item group by pos + 1",
            "x.pos + 1 is made by posexplode(sales.items)",
        ),
        (
            "select city, max(amount) as most from s.sales left join s.shops"
            " on sales.shop = shops.name group by city",
            "shops.city is of the right side of a left join",
        ),
        (
            "select k, max(m) as most from (select coalesce(city, shop) as k, amount as m from"
            " s.sales left join s.shops on sales.shop = shops.name) as j group by k",
            "coalesce(shops.city, sales.shop) is computed from both sides of a join",
        ),
        (
            "select session_window(sold_at, '5 minutes').end as till, max(amount) as most"
            " from s.sales group by session_window(sold_at, '5 minutes')",
            "session_window(sales.sold_at, '5 minutes').end moves with rows that come between",
        ),
    ],
)
def test_a_key_in_the_output_is_told_why_it_confines_nothing(query: str, why: str) -> None:
    columns = {"s.sales": ("shop", "sold_at", "amount", "items"), "s.shops": ("name", "city")}
    plan = plan_query(query, Inputs(columns=columns))
    [reason] = plan.reasons if plan.steps is None else plan.steps.uncut

    assert reason.code == "KEY_NOT_IN_OUTPUT"
    assert reason.message.startswith(f"{why}, and so confines no change: GROUP BY ")
    assert (
        reason.suggestion != "carry a common key of every GROUP BY and PARTITION BY to the output"
    )


def test_columns_that_are_all_constants_confine_nothing() -> None:
    query = "select cast(null as string) as shop, 'web' as channel from s.sales"

    refused = plan_query(query, Inputs(columns={"s.sales": ("shop",)})).refused["region"]

    assert (refused.message, refused.suggestion) == (
        "no output column confines a change",
        "carry a column of what is read to the output",
    )


def test_a_group_by_the_optional_side_is_advised_to_be_two_models() -> None:
    query = """
        select s.name, t.total from s.shops as s left join (
            select o.shop, sum(p.amount) as total from s.paid as p
            left join s.orders as o on p.order_id = o.order_id group by o.shop
        ) as t on s.name = t.shop"""
    columns = {
        "s.shops": ("name",),
        "s.paid": ("order_id", "amount"),
        "s.orders": ("order_id", "shop"),
    }

    [reason] = plan_query(query, Inputs(columns=columns)).reasons

    assert reason.message == "o.shop comes from the optional side of a left join"
    assert reason.suggestion == (
        "carry a key of the preserved side to the output, or store the joined rows in a model and"
        " group that"
    )


def test_keys_that_take_many_joins_to_find_are_not_looked_up() -> None:
    tables = {f"s.t{number}": ("shop", f"k{number}", f"k{number + 1}") for number in range(5)}

    def plan(branches: int) -> Plan:
        joined = "s.t0" + "".join(
            f" join s.t{number} on t{number}.k{number} = t{number - 1}.k{number}"
            for number in range(1, 5)
        )
        branch = f"select t0.shop, t4.k5 as amount from {joined}"
        union = " union all ".join([branch] * branches)
        sql = f"select amount, max(shop) as most from ({union}) as sales group by amount"
        return plan_query(sql, Inputs(columns=tables))

    many = plan(12)

    assert plan(2).strategy.name == "region"
    assert many.steps is not None
    assert [reason.code for reason in many.steps.uncut] == ["COST_GATE"]
    # Whatever makes its rows, a table of them has the key.
    assert (many.strategy.name, len(many.stages)) == ("region", 1)


def test_each_branch_may_have_a_constant_of_its_own() -> None:
    branches = [
        Projection(sales(index), {"hours": expr(hours), "id": expr("id")})
        for index, hours in enumerate(("1", "24"))
    ]
    union = Union(branches, [("hours", "id")] * 2)

    assert constants_of(union, expr("hours")) == frozenset({"1", "24"})
    assert constants_of(union, expr("id")) is None


def test_a_text_with_the_name_of_a_zone_is_no_key() -> None:
    """Java gave `GMT+01:00` in one process and `CET` in the next: rows would be there twice."""
    windowed = "select shop, {} as shown, max(amount) over (partition by shop, sold_at) as most"

    for shown, keys in (
        ("date_format(sold_at, 'yyyy')", ("shop", "shown")),
        ("date_format(sold_at, 'HH:mm z')", ("shop",)),
        ("date_format(sold_at, shop)", ("shop",)),
        ("date_format(sold_at, 'VV O')", ("shop",)),
    ):
        assert region(f"{windowed.format(shown)} from s.sales").keys == keys, shown
