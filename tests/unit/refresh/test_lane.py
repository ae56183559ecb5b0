"""Which lane a model takes: by the setting, or by the size of what changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from livemart.errors import RefreshError
from livemart.plan.planner import Inputs, plan_query
from livemart.refresh.lane import takes_large_lane

PLAN = plan_query("select shop from s.sales", Inputs(columns={"s.sales": ("shop",)}))


def takes_large(lane: str, rows: int | None) -> bool:
    def changes(relation: str) -> Any:
        if rows is None:
            raise RefreshError("CDF_UNAVAILABLE", relation, hint="")
        return SimpleNamespace(num_rows=rows)

    inputs = SimpleNamespace(old={"s.sales": 1}, has_changed=lambda name: True, changes=changes)
    context = SimpleNamespace(lane=lane, small_lane_rows=10)
    return takes_large_lane(cast(Any, context), PLAN, cast(Any, inputs))


@pytest.mark.parametrize(
    ("lane", "rows", "expected"),
    [
        ("auto", 10, False),
        ("auto", 11, True),
        ("auto", None, False),
        ("small", 11, False),
        ("large", 1, True),
    ],
)
def test_the_lane_of_a_model(lane: str, rows: int | None, expected: bool) -> None:
    assert takes_large(lane, rows) is expected
