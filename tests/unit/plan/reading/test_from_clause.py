"""FROM reads tables, constant rows, and joins by their keys."""

from __future__ import annotations

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.strategies.signed import Signed

_TOWNS = Inputs(
    columns={
        "s.sales": ("shop", "amount"),
        "s.shops": ("shop", "city"),
        "s.towns": ("city", "country"),
    }
)
INPUTS = Inputs(columns={"s.sales": ("shop", "amount"), "s.shops": ("shop", "city")})


def test_a_comma_is_a_join_without_a_key() -> None:
    plan = plan_query("select a.shop, b.city from s.sales as a, s.shops as b", INPUTS)

    assert isinstance(plan.strategy, Signed)
    assert [lookup.keys for lookup in plan.strategy.lookups] == [()]


def test_constant_rows_are_no_input() -> None:
    plan = plan_query(
        "select a.shop, h.hours from s.sales as a cross join (values (1), (24)) as h (hours)",
        INPUTS,
    )

    assert plan.flat is not None
    assert plan.flat.relations == ("s.sales",)
    assert plan.strategy.name in ("signed", "region")


def test_items_of_a_comma_join_are_joined_where_an_equality_leads_to_them() -> None:
    # sales and towns share nothing: joined as they are written, each key would be paired with each.
    plan = plan_query(
        "select t.country, a.shop, max(a.amount) as most"
        " from s.sales as a, s.towns as t, s.shops as b"
        " where a.shop = b.shop and b.city = t.city group by 1, 2",
        _TOWNS,
    )

    assert plan.region is not None
    queries = [str(query) for query in plan.region.affected]
    assert len(queries) == 3
    assert not [query for query in queries if "cross join" in query]


def test_a_join_with_a_condition_of_its_own_may_lead_to_an_item_before_it() -> None:
    plan = plan_query(
        "select t.country, a.shop, max(a.amount) as most"
        " from s.sales as a cross join s.towns as t"
        " join s.shops as b on a.shop = b.shop and b.city = t.city group by 1, 2",
        _TOWNS,
    )

    assert plan.region is not None
    assert not [query for query in plan.region.affected if "cross join" in str(query)]


def test_values_of_two_tables_are_not_paired_each_with_each() -> None:
    plan = plan_query(
        "select t.city, max(a.amount) as most from s.sales as a, s.shops as b, s.towns as t"
        " where concat(a.shop, b.shop) = t.city group by 1",
        _TOWNS,
    )

    assert plan.strategy.name == "full"
    assert [reason.code for reason in plan.reasons] == ["JOIN_WITHOUT_EQUALITY"]


def test_a_table_of_which_no_column_is_a_key_is_paired_with_any_row() -> None:
    plan = plan_query(
        "select a.shop, max(b.city) as last_city from s.sales as a, s.shops as b group by 1",
        INPUTS,
    )

    assert plan.strategy.name == "region"


def test_a_pivot_is_named_with_a_spelling_that_has_a_rule() -> None:
    for clause, name in (
        ("pivot (sum(amount) for shop in ('a', 'b'))", "PIVOT"),
        ("unpivot (value for name in (shop, amount))", "UNPIVOT"),
    ):
        (reason,) = plan_query(f"select * from (select * from s.sales) {clause}", INPUTS).reasons

        assert reason.message == f"{name} has no rule"
        assert reason.suggestion


def test_a_table_inside_a_generator_is_not_left_out() -> None:
    inside = "explode((select collect_list(city) from s.shops))"
    for item in (f", lateral {inside} as e(city)", f" lateral view {inside} e as city"):
        plan = plan_query(f"select shop, city from s.sales{item}", INPUTS)

        assert plan.strategy.name == "full", item
