"""Columns under a qualifier, and under new names."""

from __future__ import annotations

from livemart.plan.relations.alias import Alias
from livemart.plan.sql.written import sql_of
from tests.unit.plan.relations.scans import expr, sales


def test_a_qualified_column_is_the_bare_one_below() -> None:
    step = Alias(sales(), "o", ("id", "shop", "at"))

    assert sql_of(step.over_source(expr("o.shop"))) == "shop"
    assert sql_of(step.over_source(expr("x.shop"))) == "x.shop"
    assert step.unique_keys() == [frozenset({"o.id"})]


def test_a_column_may_be_renamed() -> None:
    step = Alias(sales(), "o", ("id", "shop", "at"), ("a", "b", "c"))

    assert sql_of(step.over_source(expr("o.b"))) == "shop"
    assert step.unique_keys() == [frozenset({"o.a"})]
