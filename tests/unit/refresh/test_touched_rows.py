"""Rows in no window, before or after a batch, affect nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from livemart.arrow.time_zone import UTC_ZONE
from livemart.epoch import epoch_micros
from livemart.plan.strategies.slices import Slice
from livemart.refresh.inputs import Side
from livemart.refresh.touched_rows import rows_in_windows

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TIME = pa.timestamp("us", tz="UTC")


class FakeRun:
    """Thresholds by their SQL, before and after the batch."""

    zone = UTC_ZONE

    def __init__(self, **thresholds: tuple[datetime | None, datetime | None]) -> None:
        self._thresholds: Mapping[str, tuple[datetime | None, datetime | None]] = thresholds

    def threshold(self, item: Slice, side: Side) -> int | None:
        moment = self._thresholds[item.threshold][side == "new"]
        return None if moment is None else epoch_micros(moment)


ORDERS = SimpleNamespace(new=SimpleNamespace(fields={"at": pa.field("At", TIME)}))


def end(threshold: str, *, is_lower: bool, margin: timedelta = timedelta(0)) -> Slice:
    """Return one end of a window over `at`."""
    micros = margin // timedelta(microseconds=1)
    return Slice(0, "at", micros, 1, "as_of", threshold, is_lower, is_lower)


def passing(run: FakeRun, *windows: tuple[Slice, ...]) -> list[int | None]:
    """Return the minutes around noon that may be in one of the windows."""
    minutes = [*range(-10, 11), None]
    moments = [None if minute is None else NOON + minute * MINUTE for minute in minutes]
    rows = pa.table({"At": pa.array(moments, TIME)})
    within = rows_in_windows(cast(Any, run), cast(Any, ORDERS), windows)
    mask = within.matches(rows).to_pylist()
    return [minute for minute, passes in zip(minutes, mask, strict=True) if passes]


@pytest.mark.parametrize("has_moved_back", [False, True])
def test_a_row_of_the_window_before_or_after_the_move_passes(has_moved_back: bool) -> None:
    starts = (NOON - 5 * MINUTE, NOON - 3 * MINUTE)
    ends = (NOON, NOON + 2 * MINUTE)
    run = FakeRun(
        start=starts[::-1] if has_moved_back else starts,
        end=ends[::-1] if has_moved_back else ends,
    )
    window = (end("start", is_lower=True), end("end", is_lower=False))

    assert passing(run, window) == list(range(-5, 3))


def test_a_time_that_is_computed_passes_as_far_off_as_it_may_be() -> None:
    run = FakeRun(start=(NOON, NOON))

    assert passing(run, (end("start", is_lower=True, margin=4 * MINUTE),)) == list(range(-4, 11))


def test_one_window_of_several_is_enough() -> None:
    run = FakeRun(
        start=(NOON + 8 * MINUTE, NOON + 8 * MINUTE), end=(NOON - 9 * MINUTE, NOON - 9 * MINUTE)
    )
    windows = ((end("start", is_lower=True),), (end("end", is_lower=False),))

    assert passing(run, *windows) == [-10, -9, 8, 9, 10]


@pytest.mark.parametrize("thresholds", [(None, NOON), (NOON, None), (None, None)])
def test_a_threshold_that_was_not_known_keeps_every_row(
    thresholds: tuple[datetime | None, datetime | None],
) -> None:
    run = FakeRun(start=thresholds)

    assert passing(run, (end("start", is_lower=True),)) == [*range(-10, 11), None]


def test_a_window_without_an_end_holds_the_first_and_the_last_time_of_spark() -> None:
    """SQL writes infinity as `timestamp_micros(9223372036854775807)`."""
    run = FakeRun(start=(NOON, NOON), end=(NOON, NOON))
    rows = pa.table({"At": pa.array([1 - 2**63, 2**63 - 1], pa.int64()).cast(TIME)})
    margin = timedelta(days=1)

    within = [
        rows_in_windows(cast(Any, run), cast(Any, ORDERS), ((part,),)).matches(rows).to_pylist()
        for part in (
            end("start", is_lower=True, margin=margin),
            end("end", is_lower=False, margin=margin),
        )
    ]

    assert within == [[False, True], [True, False]]
