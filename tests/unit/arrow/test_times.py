"""Times as microseconds: exact, with and without a zone, in columns."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from livemart.arrow.times import DAY, EVER, bounding_times, holds_time, is_time, micros_of
from livemart.epoch import epoch_micros

NOON = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([NOON, None], pa.timestamp("us", tz="UTC")), [epoch_micros(NOON), 0]),
        (pa.array([NOON, None], pa.timestamp("ms")), [epoch_micros(NOON) // 1000 * 1000, 0]),
        (pa.array([date(1969, 12, 31), None]), [-DAY, 0]),
    ],
)
def test_columns_become_numbers_and_nulls(column: pa.Array, expected: list[int]) -> None:
    if column.type == pa.timestamp("ms"):
        column = pa.array([datetime(2026, 3, 1, 12), None], pa.timestamp("ms"))
        expected = [epoch_micros(NOON) - 1, 0]

    numbers, is_null = micros_of(pa.chunked_array([column]))

    assert numbers.tolist() == expected
    assert is_null.tolist() == [False, True]


def test_dates_behind_the_last_microseconds_count_as_one_moment() -> None:
    days = pa.array([106_751_991, 106_751_992, 2**31 - 1, -106_751_992, -(2**31)], pa.int32())

    numbers, _ = micros_of(pa.chunked_array([days.cast(pa.date32())]))

    assert numbers.tolist() == [106_751_991 * DAY, EVER, EVER, -EVER, -EVER]
    first = pa.array([-(2**63)], pa.int64()).cast(pa.timestamp("us"))
    assert micros_of(pa.chunked_array([first]))[0].tolist() == [-EVER]


@pytest.mark.parametrize(("kind", "bits"), [(pa.date32(), 31), (pa.timestamp("us"), 63)])
def test_bounds_without_an_end_leave_out_no_time_of_a_type(kind: pa.DataType, bits: int) -> None:
    numbers = pa.int32() if bits == 31 else pa.int64()

    for rounds_up in (False, True):
        ends = bounding_times(np.array([-EVER, EVER]), kind, rounds_up=rounds_up)

        assert ends.cast(numbers).to_pylist() == [-(2**bits), 2**bits - 1]


def test_bounds_of_dates_round_and_those_of_timestamps_are_exact() -> None:
    micros = np.array([-DAY - 1, -DAY, -1, 0, 1, DAY])

    down = bounding_times(micros, pa.date32()).cast(pa.int32()).to_pylist()
    up = bounding_times(micros, pa.date32(), rounds_up=True).cast(pa.int32()).to_pylist()
    exact = bounding_times(micros, pa.timestamp("us", tz="UTC"), rounds_up=True).cast(pa.int64())

    assert down == [-2, -1, -1, 0, 0, 1]
    assert up == [-1, -1, 0, 0, 1, 1]
    assert exact.to_pylist() == micros.tolist()


def test_bounds_without_rows_have_their_type() -> None:
    assert bounding_times(np.array([], np.int64), pa.date32()).type == pa.date32()


def test_only_timestamps_and_dates_are_times() -> None:
    kinds = [pa.timestamp("us"), pa.date32(), pa.string(), pa.time64("us")]

    assert [is_time(kind) for kind in kinds] == [True, True, False, False]


def test_a_time_is_found_at_any_depth() -> None:
    struct = pa.struct([("n", pa.int32()), ("seen", pa.map_(pa.string(), pa.date32()))])

    assert holds_time(pa.list_(struct))
    assert holds_time(pa.timestamp("us"))
    assert not holds_time(pa.list_(pa.string()))
