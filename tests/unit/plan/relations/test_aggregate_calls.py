"""Aggregates of a SELECT, and those whose value the order of rows decides."""

from __future__ import annotations

import pytest

from livemart.plan.relations.aggregate_calls import aggregate_calls, is_order_dependent
from livemart.plan.sql.written import sql_of
from tests.unit.plan.relations.scans import expr, sales


def test_a_window_function_is_none_but_may_hold_some() -> None:
    calls = aggregate_calls(expr("max(at) + sum(count(*)) over (partition by min(shop))"))

    assert [sql_of(call) for call in calls] == ["MAX(at)", "COUNT(*)", "MIN(shop)"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("sum(id)", False),
        ("first(shop)", True),
        ("max_by(shop, at)", True),
        ("max_by(shop, id)", False),
        ("max_by(shop, struct(at, id))", False),
        ("collect_list(shop)", True),
    ],
)
def test_ties_decide_unless_a_key_settles_them(call: str, expected: bool) -> None:
    assert is_order_dependent(expr(call), sales(), []) is expected
