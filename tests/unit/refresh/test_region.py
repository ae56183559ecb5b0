"""The affected region in time: intervals around changes, merged per key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from livemart.arrow.times import EVER
from livemart.refresh.limits import MOST_INTERVALS_OF_A_KEY
from livemart.refresh.pinned_table import FallBack
from livemart.refresh.region import _distinct, _islands

START = datetime(1970, 1, 1, tzinfo=UTC)


def islands(*points: tuple[str, int | None]) -> list[tuple[str, int, int, bool]]:
    """Return the intervals from 1 before to 2 after each point, in microseconds."""
    times = [None if at is None else START + timedelta(microseconds=at) for _, at in points]
    rows = pa.table(
        {"w0": [key for key, _ in points], "w1": pa.array(times, pa.timestamp("us", tz="UTC"))}
    )
    return [tuple(row.values()) for row in _islands(rows, 1, 2, 1).to_pylist()]


def test_intervals_that_meet_are_one() -> None:
    assert islands(("a", 10), ("a", 13), ("a", 30), ("b", 10)) == [
        ("a", 9, 15, False),
        ("a", 29, 32, False),
        ("b", 9, 12, False),
    ]


def test_a_time_of_null_affects_all_rows_of_its_key() -> None:
    assert islands(("a", 10), ("a", None)) == [("a", -EVER, EVER, True)]


def test_a_key_with_many_intervals_is_covered_by_one() -> None:
    many = [("a", 100 * number) for number in range(MOST_INTERVALS_OF_A_KEY + 1)]

    assert islands(*many) == [("a", -1, 100 * MOST_INTERVALS_OF_A_KEY + 2, False)]


def test_keys_without_a_common_type_cannot_be_compared() -> None:
    with pytest.raises(FallBack) as caught:
        _distinct([pa.table({"w0": ["a"]}), pa.table({"w0": [[1]]})])

    assert caught.value.reason.code == "KEY_NOT_IN_OUTPUT"
