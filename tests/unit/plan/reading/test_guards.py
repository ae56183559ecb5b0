"""Queries that are refused before they are analyzed."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query

INPUTS = Inputs(
    columns={"s.sales": ("shop", "amount", "period")},
    kinds={
        "s.sales": {"Period": "struct<start: timestamp[us, tz=UTC], end: timestamp[us, tz=UTC]>"}
    },
)


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("my_function(shop)", "UDF_NOT_DETERMINISTIC"),
        ("ours.my_function(shop)", "UDF_NOT_DETERMINISTIC"),
        ("nowhere", "PARSE_UNSUPPORTED"),
        ("concat(*)", "PARSE_UNSUPPORTED"),
        ("shop collate UTF8_LCASE", "PARSE_UNSUPPORTED"),
        ("window_time(shop)", "PARSE_UNSUPPORTED"),
        ("window(period, '6 hours').start", "PARSE_UNSUPPORTED"),
        ("current_user", "EXPRESSION_NOT_DETERMINISTIC"),
    ],
)
def test_what_the_analysis_does_not_know_is_recomputed(expression: str, code: str) -> None:
    plan = plan_query(f"select {expression} as x from s.sales", INPUTS)

    assert (plan.strategy.name, plan.reasons[0].code) == ("full", code)


def test_a_column_that_no_table_has_is_named_with_the_next_step() -> None:
    (reason,) = plan_query("select shopp from s.sales", INPUTS).reasons

    assert reason.message == "no table that the query reads is known to have the column shopp"
    assert (reason.suggestion or "").startswith("correct the name, or declare the column")


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


_SHOP = "select upper(shop) as s, count(*) as n, s = 'X' as is_x from s.sales"


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        # UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_GROUP_BY of Spark 4.2.
        (f"{_SHOP} group by all", "s"),
        (f"{_SHOP} group by s, is_x", "s"),
        (f"select * from ({_SHOP} group by all)", "s"),
        ("select shop, count(*) as n, n + 1 as m from s.sales group by all", "n"),
        # By its number, or beside its own expression, it may.
        (f"{_SHOP} group by 1, 3", None),
        (f"{_SHOP} group by s", None),
        ("select shop, count(*) as n, n + 1 as m from s.sales group by shop", None),
        # A column of the table comes before a name of the SELECT.
        ("select shop as amount, count(*) as n, amount + 1 as m from s.sales group by all", None),
        ("select s, count(*) as n from (select upper(shop) as s from s.sales) group by all", None),
    ],
)
def test_a_name_of_the_same_select_in_group_by_all_is_told_as_spark_refuses_it(
    sql: str, name: str | None
) -> None:
    plan = plan_query(sql, INPUTS)

    told = [reason.message.partition(" is a name of the same SELECT")[0] for reason in plan.reasons]
    assert told == ([] if name is None else [name])
    assert (plan.strategy.name == "full") == (name is not None)


@pytest.mark.parametrize(
    ("function", "above"),
    [
        ("window", "select window(period, '6 hours').start as at, sum(n) as n from {} group by 1"),
        ("window", "select window_time(period) as at, sum(n) as n from {} group by 1"),
        ("session_window", "select period, sum(n) as n from {} group by period"),
        ("session_window", "select count(distinct period) as n from {}"),
    ],
)
def test_windows_and_sessions_that_a_query_passes_on_are_no_stage(
    function: str, above: str
) -> None:
    call = f"{function}(sold_at, '1 hour')"
    inputs = Inputs(columns={"s.sales": ("shop", "sold_at")})
    inner = f"(select shop, {call} as period, count(*) as n from s.sales group by shop, {call})"

    plan = plan_query(above.format(inner), inputs)

    assert (plan.strategy.name, plan.stages) == ("full", ())
