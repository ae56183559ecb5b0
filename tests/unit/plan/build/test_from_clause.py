"""What FROM reads: tables, constant rows, and joins by their keys."""

from __future__ import annotations

from livemart.plan.planner import Inputs, plan_query
from livemart.plan.strategies.signed import Signed

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
