"""Computed columns are replaced by their expressions."""

from __future__ import annotations

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.relations.project import Filter, Projection
from livemart.plan.sql.written import sql_of
from tests.unit.plan.relations.scans import expr, sales

_INPUTS = Inputs(columns={"s.sales": ("id", "shop")}, unique={"s.sales": (("id",),)})


def test_a_column_is_replaced_by_its_expression() -> None:
    step = Projection(sales(), {"k": expr("id + 1"), "name": expr("shop")})

    assert sql_of(step.over_source(expr("k * 2"))) == "(id + 1) * 2"
    assert sql_of(step.over_source(expr("name"))) == "shop"


def test_a_column_that_doubles_with_each_subquery_is_given_up() -> None:
    """Written out it would have hundreds of parts, and a million with some more."""
    text = "select id, shop from s.sales"
    for _ in range(9):
        text = f"select id, concat(shop, shop) as shop from ({text}) as q"

    plan = plan_query(f"select shop, count(*) as n from ({text}) as q group by shop", _INPUTS)

    assert "reads over 500 columns" in plan.reasons[0].message


def test_a_key_is_unique_as_long_as_it_is_passed_on() -> None:
    passed = Projection(sales(), {"place": expr("id")})
    lost = Projection(sales(), {"place": expr("id + 1")})

    assert Filter(passed, ()).unique_keys() == [frozenset({"place"})]
    assert lost.unique_keys() == []
