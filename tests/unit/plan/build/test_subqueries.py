"""Subqueries as values: of one row, or a reason why not."""

from __future__ import annotations

import pytest

from livemart.plan.planner import Inputs, plan_query

INPUTS = Inputs(columns={"s.sales": ("shop", "amount"), "s.limits": ("least",)})


def test_a_value_that_rows_are_compared_with_is_a_parameter() -> None:
    sql = "select shop from s.sales where amount > (select least from s.limits)"

    plan = plan_query(sql, INPUTS)

    assert (plan.strategy.name, plan.parameters) == ("signed", {1: True})


@pytest.mark.parametrize(
    "value",
    ["select max(least) from s.limits", "select least from s.limits where least > sales.amount"],
)
def test_a_value_that_must_be_computed_is_refused(value: str) -> None:
    plan = plan_query(f"select shop from s.sales where amount > ({value})", INPUTS)

    assert (plan.strategy.name, plan.reasons[0].code) == ("full", "SUBQUERY_NOT_INCREMENTALIZABLE")
