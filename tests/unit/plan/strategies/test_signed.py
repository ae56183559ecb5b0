"""Which SQL moves by signed change, and what is known of its columns."""

from __future__ import annotations

from livemart.plan.planner import Inputs, Plan, plan_query
from livemart.plan.strategies.signed import Signed

INPUTS = Inputs(
    columns={"s.sales": ("sale_id", "shop", "amount"), "s.shops": ("shop", "city")},
    unique={"s.sales": (("sale_id",),), "s.shops": (("shop",),)},
)


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


def test_columns_that_are_passed_on_have_origins_but_looked_up_ones_have_none() -> None:
    strategy = signed(
        "select a.sale_id as id, upper(a.shop) as shop, b.city"
        " from s.sales as a left join s.shops as b using (shop)"
    )

    assert strategy.origins == {"id": ((0, "sale_id"),)}


def test_totals_have_roles_and_a_region_for_what_cannot_be_added() -> None:
    strategy = signed(
        "select shop, count(*) as n, sum(cast(amount as bigint)) as total from s.sales group by 1"
    )

    assert strategy.outputs is not None
    assert [output.role for output in strategy.outputs] == ["key", "count_rows", "sum"]
    assert strategy.region is not None
    assert strategy.region.keys == ("shop",)


def test_groups_without_a_count_of_rows_are_not_added_up() -> None:
    plan = plan_query("select shop, sum(amount) as total from s.sales group by 1", INPUTS)

    assert plan.strategy.name == "region"
