"""Computed columns are replaced by their expressions."""

from __future__ import annotations

from livemart.plan.relations.project import Filter, Projection
from livemart.plan.sql.written import sql_of
from tests.unit.plan.relations.scans import expr, sales


def test_a_column_is_replaced_by_its_expression() -> None:
    step = Projection(sales(), {"k": expr("id + 1"), "name": expr("shop")})

    assert sql_of(step.over_source(expr("k * 2"))) == "(id + 1) * 2"
    assert sql_of(step.over_source(expr("name"))) == "shop"


def test_a_key_is_unique_as_long_as_it_is_passed_on() -> None:
    passed = Projection(sales(), {"place": expr("id")})
    lost = Projection(sales(), {"place": expr("id + 1")})

    assert Filter(passed, ()).unique_keys() == [frozenset({"place"})]
    assert lost.unique_keys() == []
