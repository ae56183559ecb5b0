"""A plan speaks of the model's columns as its table does."""

from __future__ import annotations

from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.spelling import spelled
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.running import Running
from livemart.plan.strategies.signed import Signed

SALES = Inputs({"raw.sales": ("Order", "ShopId", "İD", "SoldAt", "Amount")})


def planned(select: str, *names: str) -> Plan:
    """Return the plan of a model whose table has these columns."""
    return spelled(plan_query(select, SALES), {name.lower(): name for name in names}.__getitem__)


def test_groups_are_found_by_the_names_of_the_table() -> None:
    plan = planned(
        "select shopid as CustomerKey, count(*) as N, sum(amount) as `größe` from raw.sales"
        " group by 1",
        "CustomerKey",
        "N",
        "größe",
    )

    assert isinstance(plan.strategy, Signed)
    assert plan.unique_key == ("CustomerKey",)
    assert [output.name for output in plan.strategy.outputs or ()] == ["CustomerKey", "N", "größe"]
    assert plan.region is not None and plan.region.keys == ("CustomerKey",)


def test_a_region_has_the_names_of_the_table_above_and_of_the_inputs_below() -> None:
    plan = planned(
        "select `İd` as `Kİd`, count(distinct amount) as n from raw.sales group by 1", "Kİd", "n"
    )

    assert isinstance(plan.strategy, Region)
    assert plan.strategy.keys == ("Kİd",)
    assert str(plan.strategy.affected[0]) == "select distinct `İD` as w0 from __touched_0__"
    assert plan.strategy.restrictions[0][0].keys == ((0, "İD", 0),)


def test_running_totals_have_the_names_of_the_table() -> None:
    plan = planned(
        "select ShopID as Shop, soldat as At, sum(amount) over (partition by shopid order by soldAt"
        " range between interval 1 hour preceding and current row) as Total from raw.sales",
        "Shop",
        "At",
        "Total",
    )

    assert isinstance(plan.strategy, Running)
    assert plan.strategy.keys == (("Shop", "ShopId"),)
    assert plan.strategy.time == ("At", "SoldAt")
    assert [total.name for total in plan.strategy.totals] == ["Total"]
    assert [plain.name for plain in plan.strategy.plain] == ["Shop", "At"]
