"""Subqueries as values: of one row, or a reason why not."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query

INPUTS = Inputs(columns={"s.sales": ("shop", "amount"), "s.limits": ("least",)})


def test_a_value_that_rows_are_compared_with_is_a_parameter() -> None:
    sql = "select shop from s.sales where amount > (select least from s.limits)"

    plan = plan_query(sql, INPUTS)

    assert (plan.strategy.name, plan.parameters) == ("signed", {1: True})


def test_a_value_that_depends_on_a_row_around_it_is_refused() -> None:
    value = "select least from s.limits where least > sales.amount"
    plan = plan_query(f"select shop from s.sales where amount > ({value})", INPUTS)

    assert (plan.strategy.name, plan.reasons[0].code) == ("full", "SUBQUERY_NOT_INCREMENTALIZABLE")


@pytest.mark.parametrize("comparison", ["amount > {}", "amount between {} and 9", "{} <= amount"])
def test_a_value_that_must_be_computed_is_a_stage_and_when_it_changes_every_row_may(
    comparison: str,
) -> None:
    value = "(select max(least) from s.limits)"
    plan = plan_query(f"select shop from s.sales where {comparison.format(value)}", INPUTS)

    assert [stage.plan.strategy.name for stage in plan.stages] == ["full"]
    # It may be no time, so which rows are between two values is not known.
    assert (plan.strategy.name, plan.parameters, plan.slices) == ("signed", {1: False}, ())
    assert [reason.code for reason in plan.notes] == ["SCALAR_SUBQUERY_CHANGED"]


def test_a_value_of_any_type_is_no_part_of_what_is_added_up() -> None:
    value = "(select max(least) from s.limits)"
    sql = f"select shop, count(*) as n, sum(amount * {value}) as s from s.sales group by shop"

    assert plan_query(sql, INPUTS).strategy.name == "region"
