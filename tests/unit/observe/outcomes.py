"""Outcomes of micro-batches, as the pipeline hands them to a watcher."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from livemart.check.checks import TestResult
from livemart.land.landing import LandedBatch
from livemart.refresh.frontier import Rebuild
from livemart.run.events import BatchOutcome
from livemart.state.counts import Counts, TableCounts
from livemart.state.snapshots import ModelState, Snapshot

STARTED = datetime(2026, 3, 1, 12, 0, 2, tzinfo=UTC)


def make_snapshot(
    *,
    status: Literal["published", "held"] = "published",
    kind: Literal["build", "refresh"] = "refresh",
) -> Snapshot:
    return Snapshot(
        snapshot_id=7,
        epoch="e",
        batch_id=42,
        kind=kind,
        as_of=datetime(2026, 3, 1, 12, 5, tzinfo=UTC),
        sources={"bronze.orders": 9},
        models={
            "model.livemart.panes": make_state(rows_changed=118),
            "model.livemart.estimates": make_state(rows_changed=0),
        },
        tests={},
        status=status,
        started_at=STARTED,
        finished_at=STARTED + timedelta(milliseconds=2100),
        landed={"bronze.orders": TableCounts(1003, 1000, 1, 2)},
    )


def make_state(*, rows_changed: int) -> ModelState:
    return ModelState(
        version=3,
        fingerprint="f",
        strategy="signed",
        reason=None,
        rows_changed=rows_changed,
        took_ms=830,
        generation=0,
        table_id="t",
    )


def make_outcome(*, status: Literal["published", "held"] = "published") -> BatchOutcome:
    return BatchOutcome(42, make_snapshot(status=status))


def make_held_outcome() -> BatchOutcome:
    return BatchOutcome(
        42,
        make_snapshot(status="held"),
        checks={
            "test.livemart.unique_panes": TestResult(
                "fail", 3, "full", place="models/panes.yml:9", rows=("pane=7, n=2", "pane=9, n=2")
            ),
            "test.livemart.not_null_panes": TestResult("pass", 0, "unchanged"),
        },
        rebuilds={"model.livemart.panes": Rebuild("FINGERPRINT_CHANGED", "the SQL is another", 1)},
    )


def make_landed(refusals: Mapping[str, int]) -> LandedBatch:
    counts = Counts(produced=12, landed=8, superseded=0, dead_letters=4)
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    sources = {"bronze.orders": counts, "bronze.dishes": Counts()}
    return LandedBatch(42, at, {"bronze.orders": 3}, sources, at, True, None, refusals)
