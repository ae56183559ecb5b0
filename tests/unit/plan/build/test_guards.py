"""What is refused before a query is taken apart."""

from __future__ import annotations

import pytest

from livemart.plan.planner import Inputs, plan_query

INPUTS = Inputs(columns={"s.sales": ("shop", "amount")})


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("my_function(shop)", "UDF_NOT_DETERMINISTIC"),
        ("ours.my_function(shop)", "UDF_NOT_DETERMINISTIC"),
        ("nowhere", "PARSE_UNSUPPORTED"),
        ("concat(*)", "PARSE_UNSUPPORTED"),
        ("shop collate UTF8_LCASE", "PARSE_UNSUPPORTED"),
        ("current_user", "EXPRESSION_NOT_DETERMINISTIC"),
    ],
)
def test_what_the_analysis_does_not_know_is_recomputed(expression: str, code: str) -> None:
    plan = plan_query(f"select {expression} as x from s.sales", INPUTS)

    assert (plan.strategy.name, plan.reasons[0].code) == ("full", code)
