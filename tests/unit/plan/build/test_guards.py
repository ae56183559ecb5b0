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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'5 minutes', '5 minutes', '2 minutes'", None),
        ("'5 minutes', '1 minute'", None),
        ("'5 minutes'", None),
        ("'5 minutes', '5 minutes', '5 minutes'", "the offset of 5 minutes is not below the slide"),
        ("'5 minutes', '1 minute', '120 seconds'", "the offset of 120 seconds is not below"),
        ("'5 minutes', '10 minutes'", "the slide of 10 minutes is above the size of 5 minutes"),
    ],
)
def test_a_window_that_spark_refuses_is_told_in_words(arguments: str, message: str | None) -> None:
    inputs = Inputs(columns={"s.clicks": ("at",)})
    window = f"window(at, {arguments})"

    plan = plan_query(
        f"select {window}.start as s, count(*) as n from s.clicks group by {window}", inputs
    )

    refused = [reason.message for reason in plan.reasons if reason.code == "WINDOW_REFUSED"]
    assert bool(refused) == (message is not None)
    assert message is None or message in refused[0]
