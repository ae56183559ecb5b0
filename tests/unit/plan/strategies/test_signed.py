"""Which SQL moves by signed change, and what is known of its columns."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Full, Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.sql.flatten import flatten
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.signed import Append, Link, Signed
from livemart.plan.uncut import plan_uncut

INPUTS = Inputs(
    columns={
        "s.sales": ("sale_id", "shop", "amount"),
        "s.shops": ("shop", "city"),
        "s.cities": ("city", "mayor"),
    },
    unique={"s.sales": (("sale_id",),), "s.shops": (("shop",),)},
)


ZONED = Inputs({"s.t": ("id", "t"), "s.new": ("t",)}, append_only=frozenset({"s.new"}))


def signed(sql: str) -> Signed:
    plan: Plan = plan_query(sql, INPUTS)
    assert isinstance(plan.strategy, Signed)
    return plan.strategy


def test_a_joined_table_is_looked_up_by_its_key() -> None:
    strategy = signed(
        "select a.sale_id, a.amount, b.city from s.sales as a left join s.shops as b using (shop)"
    )

    assert strategy.anchors == (0,)
    assert [lookup.keys for lookup in strategy.lookups] == [(("shop", ((0, "shop"),)),)]


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("left join s.cities as c on b.city = c.city", Link("city", 1, "city")),
        ("join s.cities as c on c.city = b.city", Link("city", 1, "city")),
        ("left semi join s.cities as c on b.city = c.city", Link("city", 1, "city")),
        # A sale without a shop finds the city NULL.
        ("left join s.cities as c on b.city <=> c.city", None),
        ("left join s.cities as c on upper(b.city) = c.city", None),
        ("left join s.cities as c on b.city > c.city", None),
    ],
)
def test_a_table_that_a_joined_table_joins_is_reached_through_it(
    join: str, expected: Link | None
) -> None:
    strategy = signed(
        f"select a.sale_id, b.city from s.sales as a left join s.shops as b using (shop) {join}"
    )

    shops, cities = strategy.lookups
    assert (shops.link, cities.keys, cities.link) == (None, (), expected)


def test_a_table_that_is_joined_twice_leads_to_no_other() -> None:
    strategy = signed(
        "with b as (select * from s.shops) select a.sale_id, c.mayor from s.sales as a"
        " left join b on a.shop = b.shop left join b as d on a.sale_id = d.shop"
        " left join s.cities as c on b.city = c.city"
    )

    assert [lookup.link for lookup in strategy.lookups] == [None, None, None]


def test_the_facts_of_comma_joins_are_the_anchor_wherever_they_are_written() -> None:
    strategy = signed(
        "select b.city, count(*) as n from s.shops as b, s.sales as a where a.shop = b.shop"
        " group by b.city"
    )

    assert strategy.anchors == (1,)
    assert [lookup.keys for lookup in strategy.lookups] == [(("shop", ((1, "shop"),)),)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a.amount, b.city from s.sales as a join s.shops as b using (shop)", [True]),
        ("select a.amount, b.city from s.sales as a left join s.shops as b using (shop)", [False]),
        ("select a.amount from s.sales as a left semi join s.shops as b using (shop)", [False]),
        # A row that a join finds is kept as it is by another one.
        (
            "select a.amount, b.city, c.city as other from s.sales as a"
            " join s.shops as b using (shop) left join s.shops as c on c.city = b.city",
            [True, False],
        ),
        # A left join of two tables may find a row in one, and none in the other.
        (
            "select a.amount, b.city from s.sales as a left join"
            " (select x.shop, y.city from s.shops as x join s.shops as y using (city)) as b"
            " using (shop)",
            [False, False],
        ),
        # One row of the shops may meet itself.
        (
            "with b as (select * from s.shops) select a.amount, x.city from s.sales as a"
            " join b as x on a.shop = x.shop join b as y on a.shop = y.city",
            [False, False],
        ),
        (
            "select a.amount, b.city from s.sales as a join s.shops as b using (shop)"
            " union all select amount, shop from s.sales",
            [False],
        ),
        (
            "select b.city, count(*) as n from s.sales as a join s.shops as b using (shop)"
            " group by 1",
            [False],
        ),
    ],
)
def test_lookups_are_linear_if_each_row_is_made_of_one_of_theirs(
    sql: str, expected: list[bool]
) -> None:
    assert [lookup.is_linear for lookup in signed(sql).lookups] == expected


def test_columns_that_are_passed_on_have_origins_but_looked_up_ones_have_none() -> None:
    strategy = signed(
        "select a.sale_id as id, upper(a.shop) as shop, b.city"
        " from s.sales as a left join s.shops as b using (shop)"
    )

    assert strategy.origins == {"id": ((0, "sale_id"),)}


def test_totals_have_roles_and_a_region_for_what_cannot_be_added() -> None:
    plan = plan_query(
        "select shop, count(*) as n, sum(cast(amount as bigint)) as total from s.sales group by 1",
        INPUTS,
    )

    assert isinstance(plan.strategy, Signed)
    assert plan.strategy.outputs is not None
    assert [output.role for output in plan.strategy.outputs] == ["key", "count_rows", "sum"]
    assert plan.region is not None
    assert plan.region.keys == ("shop",)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select shop, count(*) as n, max(amount) as most from s.sales group by 1", "no sum"),
        ("select shop, sum(amount) as n from s.sales group by 1", "no count of all rows"),
        ("select count(*) as n from s.sales group by shop", "shop is not selected"),
        ("select distinct shop from s.sales", "DISTINCT"),
        (
            "select shop, row_number() over (partition by shop order by amount) as n from s.sales",
            "a window function",
        ),
        ("select shop, count(*) as n from s.sales group by 1 having count(*) > 1", "filtered"),
        ("select shop from s.sales union all select 'x'", "constant"),
    ],
)
def test_what_cannot_be_added_says_why(sql: str, message: str) -> None:
    reason = plan_uncut(flatten(sql, {}), INPUTS).refused["signed"]

    assert reason.code == "NOT_ADDITIVE"
    assert message in reason.message


def test_groups_without_a_count_of_rows_are_not_added_up() -> None:
    plan = plan_query("select shop, sum(amount) as total from s.sales group by 1", INPUTS)

    assert plan.strategy.name == "region"


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        ("cast(count(*) as int)", "signed"),
        ("coalesce(count(*), 0)", "signed"),
        ("cast(count(*) as decimal(10, 0))", "signed"),
        ("cast(count(*) as decimal(20, 2))", "signed"),
        ("cast(count(*) as decimal)", "signed"),
        # NULL, or 0, once the group has more rows than that.
        ("cast(count(*) as decimal(3, 0))", "region"),
        ("cast(count(*) as decimal(12, 4))", "region"),
        ("coalesce(try_cast(count(*) as decimal(2)), 0)", "region"),
        ("cast(count(*) as tinyint)", "region"),
    ],
)
def test_counts_are_added_to_where_their_type_holds_them(count: str, expected: str) -> None:
    plan = plan_query(
        f"select shop, count(*) as n, {count} as c, sum(amount) as t from s.sales group by 1",
        INPUTS,
    )

    assert plan.strategy.name == expected


def test_every_step_to_a_total_is_for_spark_to_judge() -> None:
    strategy = signed(
        "select shop, count(*) as n, try_cast(coalesce(sum(amount + 1), 0) as int) as total"
        " from (select shop, amount from s.sales union all select city, 1 from s.shops) group by 1"
    )

    assert strategy.outputs is not None
    output = strategy.outputs[2]
    assert output.is_never_null
    (summed,) = output.summed
    assert list(map(str, summed.arguments)) == [
        "select distinct amount + 1 as w0 from __present_0__",
        "select distinct 1 + 1 as w0 from __present_1__",
    ]
    assert summed.steps == (
        ("sum(w0)", False),
        ("coalesce(sum(w0), 0)", False),
        ("try_cast(coalesce(sum(w0), 0) as int)", True),
    )


@pytest.mark.parametrize(
    ("total", "role"),
    [
        ("count(*) filter (where amount > 1)", "count"),
        ("count(1) filter (where amount > 1)", "count"),
        ("cast(count(amount) filter (where shop <> 'a') as int)", "count"),
        ("count_if(amount > 1) filter (where shop <> 'a')", "count"),
        ("sum(amount) filter (where shop <> 'a')", "sum"),
        ("coalesce((sum(amount) filter (where shop <> 'a')), 0)", "sum"),
    ],
)
def test_totals_of_the_rows_of_a_filter_are_added_up(total: str, role: str) -> None:
    strategy = signed(f"select shop, {total} as t, count(*) as n from s.sales group by 1")

    assert strategy.outputs is not None
    assert [output.role for output in strategy.outputs] == ["key", role, "count_rows"]
    assert strategy.outputs[1].is_never_null == (role == "count" or "coalesce" in total)


def test_a_filter_takes_no_part_in_the_types_of_a_total() -> None:
    strategy = signed(
        "select shop, count(*) as n, cast(coalesce((sum(amount) filter (where shop <> 'a')), 0)"
        " as decimal(18, 2)) as t from s.sales group by 1"
    )

    assert strategy.outputs is not None
    (summed,) = strategy.outputs[2].summed
    assert list(map(str, summed.arguments)) == ["select distinct amount as w0 from __present_0__"]
    assert summed.steps == (
        ("SUM(w0)", False),
        ("coalesce((SUM(w0)), 0)", False),
        ("cast(coalesce((SUM(w0)), 0) as decimal(18, 2))", False),
    )


def test_a_filtered_count_does_not_tell_which_groups_are_left() -> None:
    reason = plan_uncut(
        flatten("select shop, count(*) filter (where amount > 1) as n from s.sales group by 1", {}),
        INPUTS,
    ).refused["signed"]

    assert reason.message == "no count of all rows is selected"


def test_a_total_asks_for_its_type_without_the_clock_that_steps_below_compare_with() -> None:
    inputs = Inputs(
        columns={"s.sales": ("shop", "amount", "sold_at"), "s.clock": ("as_of",)},
        unique={},
        clocks=frozenset({"s.clock"}),
    )
    plan = plan_query(
        "with placed as (select shop, amount, sold_at >= (select c.as_of from s.clock as c)"
        " - interval 1 hour as is_new from s.sales)"
        " select shop, count(*) as sales, sum(case when is_new then amount end) as new_amount"
        " from placed group by shop",
        inputs,
    )

    assert isinstance(plan.strategy, Signed)
    assert plan.strategy.outputs is not None
    [argument] = plan.strategy.outputs[-1].summed[0].arguments
    assert str(argument) == (
        "select distinct case when (sold_at >= (CAST(NULL AS TIMESTAMP)) - interval 1 hour)"
        " then amount end as w0 from __present_1__"
    )


@pytest.mark.parametrize("call", ["count", "sum", "count_if"])
def test_different_values_are_not_added_up(call: str) -> None:
    reason = plan_uncut(
        flatten(
            f"select shop, count(*) as n, {call}(distinct amount) as t from s.sales group by 1", {}
        ),
        INPUTS,
    ).refused["signed"]

    assert reason.message == f"{call}(distinct sales.amount) is of different values"


@pytest.mark.parametrize("total", ["try_sum(amount)", "avg(amount)", "coalesce(sum(amount), 1)"])
def test_what_is_no_plain_sum_is_not_added_to(total: str) -> None:
    plan = plan_query(f"select shop, count(*) as n, {total} as t from s.sales group by 1", INPUTS)

    assert plan.strategy.name == "region"


@pytest.mark.parametrize(
    "zone",
    [
        "date_format(t, 'z')",
        "date_format(t, \"'it''s' HH\" || ' v')",
        "to_char(t, 'z')",
        "to_varchar(t, 'OOOO')",
    ],
)
def test_a_text_with_the_name_of_a_zone_is_not_taken_away(zone: str) -> None:
    """Java gave `GMT+01:00` in one process and `CET` in the next: the stored row is not found."""
    groups = plan_query(f"select {zone} as z, count(*) as n from s.t group by 1", ZONED)
    counted = plan_query(f"select count(*) as n, count(distinct {zone}) as z from s.t", ZONED)
    rows = plan_query(f"select id, {zone} as z from s.t", ZONED)
    appended = plan_query(f"select {zone} as z from s.new", ZONED)

    assert isinstance(groups.strategy, Full)
    assert isinstance(counted.strategy, Full)
    assert isinstance(rows.strategy, Region)
    assert rows.strategy.keys == ("id",)
    assert isinstance(appended.strategy, Append)


@pytest.mark.parametrize(
    "text",
    [
        "date_format(t, 'HH:mm Z XXX')",
        "to_char(id, '999D99S')",
        "date_format(t, 'yyyy' || '-MM')",
        "date_format(t, concat('yyyy', '-MM'))",
        "date_format(t, \"'Invoice' yyyy-MM\")",
        "date_format(t, \"d 'Oktober'\")",
        "date_format(t, id)",
        "to_char(t, id)",
    ],
)
def test_a_text_without_the_name_of_a_zone_is_taken_away(text: str) -> None:
    plan = plan_query(f"select {text} as a, count(*) as n from s.t group by 1", ZONED)

    assert isinstance(plan.strategy, Signed)


@pytest.mark.parametrize(
    ("select", "is_taken_away"),
    [
        ("id, count(*) as n from s.t where date_format(t, 'z') = 'CET' group by 1", True),
        ("count(*) filter (where to_char(t, 'z') = 'CET') as n, count(*) as m from s.t", True),
        ("id, count(*) as n from (select id, to_char(t, 'z') as z from s.t) group by 1", True),
        ("z, count(*) as n from (select id, to_char(t, 'z') as z from s.t) group by 1", False),
        ("count(*) as n, sum(if(date_format(t, 'z') = 'CET', id, 0)) as m from s.t", False),
        (
            "x.z, count(*) as n from s.t as t join (select id, to_char(t, 'z') as z from s.t) as x"
            " on t.id = x.id group by 1",
            False,
        ),
    ],
)
def test_a_zone_counts_where_a_stored_value_names_it(select: str, is_taken_away: bool) -> None:
    plan = plan_uncut(flatten(f"select {select}", {}), ZONED)

    assert isinstance(plan.strategy, Signed) == is_taken_away


def test_a_zone_between_quotes_is_no_zone_of_a_key() -> None:
    query = "select date_format(t, {}) as d, max(id) as m from s.t group by 1"
    plans = [plan_query(query.format(it), ZONED) for it in ("\"d 'zone'\"", "\"z 'in'\"", "id")]

    assert [plan.strategy.name for plan in plans] == ["region", "full", "full"]
