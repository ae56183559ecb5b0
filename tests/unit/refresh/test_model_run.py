"""Where a window begins or ends, before and in a batch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa

from livemart.plan.strategies.slices import Slice
from livemart.refresh.inputs import Side
from livemart.refresh.model_run import ModelRun
from livemart.refresh.views import Statement

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def run(before: object, asked: list[str]) -> ModelRun:
    def value(name: str, side: Side) -> object:
        return NOON if side == "new" else before

    def query(statement: Statement) -> pa.Table:
        asked.append(str(statement))
        return pa.table({"c": [NOON]})

    clock, views = SimpleNamespace(value=value), SimpleNamespace(query=query)
    return ModelRun(cast(Any, None), cast(Any, None), (cast(Any, clock),), cast(Any, views), {})


def end(threshold: str) -> Slice:
    return Slice(0, "at", 0, 0, "as_of", threshold, has_lower_end=True, is_lower=True)


def test_a_simple_threshold_is_computed_without_spark() -> None:
    asked: list[str] = []
    item = end("__clock__ - INTERVAL '1' HOURS")

    thresholds = [run(None, asked).threshold(item, side) for side in ("old", "new")]  # type: ignore[arg-type]

    assert (thresholds, asked) == ([None, NOON - timedelta(hours=1)], [])


def test_any_other_threshold_is_asked_of_spark_once() -> None:
    asked: list[str] = []
    model = run(NOON, asked)

    for side in ("old", "new"):
        model.threshold(end("last_day(__clock__)"), side)

    assert len(asked) == 1
    assert "last_day(__clock__)" in asked[0]
