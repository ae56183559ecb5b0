"""Where a window begins or ends, before and in a batch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from livemart.arrow.times import DAY
from livemart.epoch import epoch_micros
from livemart.plan.strategies.slices import Slice
from livemart.refresh.inputs import Side
from livemart.refresh.model_run import ModelRun
from livemart.refresh.views import Statement

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")
LAST = epoch_micros(datetime.max.replace(tzinfo=UTC))


def run(before: datetime | None, asked: list[str]) -> ModelRun:
    def value(name: str, side: Side) -> pa.Scalar:
        return pa.scalar(NOON if side == "new" else before, TIME)

    def query(statement: Statement) -> pa.Table:
        asked.append(str(statement))
        return pa.table({"c": pa.array([LAST + 1], pa.int64()).cast(TIME)})

    clock, views = SimpleNamespace(value=value), SimpleNamespace(query=query)
    return ModelRun(cast(Any, None), cast(Any, None), (cast(Any, clock),), cast(Any, views), {})


def end(threshold: str) -> Slice:
    return Slice(0, "at", 0, 0, "as_of", threshold, has_lower_end=True, is_lower=True)


def test_a_simple_threshold_is_computed_without_spark() -> None:
    asked: list[str] = []
    item = end("__clock__ - INTERVAL '1' HOURS")

    thresholds = [run(None, asked).threshold(item, side) for side in ("old", "new")]  # type: ignore[arg-type]

    assert (thresholds, asked) == ([None, epoch_micros(NOON - timedelta(hours=1))], [])


def test_a_threshold_behind_the_last_year_of_a_clock_is_a_moment_like_any_other() -> None:
    model = run(datetime.max.replace(tzinfo=UTC), [])

    assert model.threshold(end("__clock__ + INTERVAL '1' DAYS"), "old") == LAST + DAY


def test_any_other_threshold_is_asked_of_spark_once() -> None:
    asked: list[str] = []
    model = run(NOON, asked)

    thresholds = [model.threshold(end("last_day(__clock__)"), side) for side in ("old", "new")]  # type: ignore[arg-type]

    # Even if it is in no year that Python knows.
    assert thresholds == [LAST + 1, LAST + 1]
    assert len(asked) == 1
    assert "last_day(__clock__)" in asked[0]
