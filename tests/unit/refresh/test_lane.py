"""Which lane a model takes: by the setting, or by the size of what changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from livemart.refresh.lane import key_of
from livemart.refresh.strategy import takes_large_lane


def takes_large(lane: str, *rows: int) -> bool:
    inputs = [SimpleNamespace(images=SimpleNamespace(num_rows=number)) for number in rows]
    context = SimpleNamespace(lane=lane, small_lane_rows=10)
    return takes_large_lane(cast(Any, context), cast(Any, inputs))


@pytest.mark.parametrize(
    ("lane", "rows", "expected"),
    [
        ("auto", 10, False),
        ("auto", 11, True),
        ("small", 11, False),
        ("large", 1, True),
    ],
)
def test_the_lane_of_a_model(lane: str, rows: int, expected: bool) -> None:
    assert takes_large(lane, 1, rows) is expected


def test_a_key_with_a_text_of_null_does_not_tell_rows_apart() -> None:
    plan = SimpleNamespace(unique_key=("shop", "day"))
    days = pa.array([None, 1], pa.int32())

    assert key_of(cast(Any, plan), pa.table({"shop": ["a", ""], "day": days})) == ("shop", "day")
    assert key_of(cast(Any, plan), pa.table({"shop": ["a", None], "day": days})) == ()
