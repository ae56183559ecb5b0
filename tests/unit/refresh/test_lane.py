"""Which lane a model takes: by the setting, or by the size of what changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.refresh.lane import key_of, with_stamps
from livemart.refresh.strategy import takes_large_lane

STORED = pa.table(
    {
        "shop": ["a", "a", "b", None],
        "run": ["first", "second", "first", "first"],
        "n": [1, 1, 5, 7],
    }
)
STAMPS = pa.table({"run": ["third"]})


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


def change(*rows: tuple[str | None, int, int, int]) -> pa.Table:
    """Return a change set of (shop, n, how often it was there, how often it is there now)."""
    shops, numbers, old, new = zip(*rows, strict=True)
    return pa.table(
        {
            "shop": pa.array(shops, pa.string()),
            "n": pa.array(numbers, pa.int64()),
            OLD_COUNT: pa.array(old, pa.int64()),
            NEW_COUNT: pa.array(new, pa.int64()),
        }
    )


def stamped(*rows: tuple[str | None, int, int, int]) -> set[tuple[object, ...]] | None:
    complete = with_stamps(change(*rows), STORED, STAMPS)
    return None if complete is None else {tuple(row.values()) for row in complete.to_pylist()}


def test_a_row_goes_with_its_own_stamp_and_comes_with_that_of_the_run() -> None:
    assert stamped(("b", 5, 1, 0), ("b", 6, 0, 1), (None, 7, 1, 0)) == {
        ("b", "first", 5, 1, 0),
        ("b", "third", 6, 0, 1),
        (None, "first", 7, 1, 0),
    }


def test_of_rows_that_differ_in_their_stamp_alone_as_many_go_as_must() -> None:
    assert stamped(("a", 1, 2, 1)) == {("a", "first", 1, 1, 0)}
    assert stamped(("a", 1, 2, 0)) == {("a", "first", 1, 1, 0), ("a", "second", 1, 1, 0)}
    assert stamped(("a", 1, 2, 3)) == {("a", "third", 1, 0, 1)}


def test_a_row_that_is_not_stored_cannot_go() -> None:
    assert stamped(("c", 1, 1, 0)) is None
