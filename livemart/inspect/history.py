"""Lists the newest snapshots, with the changes of each in every model and their duration.

Used by the command `history`. Reading starts no Spark and takes no lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from livemart.inspect.terminal_text import aligned, counted
from livemart.project.graph import names_apart
from livemart.state.kept_snapshots import kept_snapshots
from livemart.state.snapshots import ModelState, Snapshot, SnapshotLog
from livemart.storage.location import StoragePlace

_UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class ModelHistory:
    """The part of a model in a snapshot; `took_s`: of its refresh, in seconds."""

    model: str
    version: int
    strategy: str
    reason: str | None
    rows_changed: int
    took_s: float


@dataclass(frozen=True, slots=True)
class SnapshotHistory:
    """A snapshot; `models`: all of them, by unique id; `kept_until`: None if it is not kept."""

    snapshot_id: int
    kind: str
    status: str
    as_of: datetime | None
    finished_at: datetime
    took_s: float
    rows_changed: int
    models: tuple[ModelHistory, ...]
    kept_until: datetime | None = None


def read_history(warehouse: StoragePlace, limit: int, now: datetime) -> tuple[SnapshotHistory, ...]:
    """Return up to `limit` snapshots, the newest first; `now`: the wall clock, UTC."""
    ends = kept_snapshots(warehouse, now)
    return tuple(
        _history(row, ends.get(row.snapshot_id)) for row in SnapshotLog(warehouse).rows(limit)
    )


def render_history(snapshots: Sequence[SnapshotHistory]) -> str:
    """Return a line for each snapshot, and below it one for each model that changed."""
    if not snapshots:
        return "no snapshot yet\n  next: run `build`"
    lines = []
    for row in snapshots:
        as_of = f", as of {row.as_of:%Y-%m-%d %H:%M}" if row.as_of else ""
        end = f", kept until {row.kept_until:%Y-%m-%d %H:%M:%S}" if row.kept_until else ""
        lines.append(
            f"snapshot {row.snapshot_id}  {row.finished_at:%Y-%m-%d %H:%M:%S}  "
            f"{row.kind}, {row.status}{as_of}, "
            f"{counted(row.rows_changed, 'row')} changed in {row.took_s:.1f} s{end}"
        )
        names = names_apart(model.model for model in row.models)
        changed = [
            (
                f"  {names[model.model]}",
                f"{model.rows_changed:,}",
                model.strategy,
                f"{model.took_s:.2f} s",
            )
            for model in row.models
            if model.rows_changed or model.strategy != _UNCHANGED
        ]
        lines += aligned(changed) if changed else []
    return "\n".join(lines)


def _history(row: Snapshot, kept_until: datetime | None) -> SnapshotHistory:
    models = tuple(_of_model(unique_id, state) for unique_id, state in sorted(row.models.items()))
    return SnapshotHistory(
        row.snapshot_id,
        row.kind,
        row.status,
        row.as_of,
        row.finished_at,
        (row.finished_at - row.started_at).total_seconds(),
        sum(model.rows_changed for model in models),
        models,
        kept_until,
    )


def _of_model(unique_id: str, state: ModelState) -> ModelHistory:
    took_s = state.took_ms / 1000
    counts = (state.rows_changed, took_s)
    return ModelHistory(unique_id, state.version, state.strategy, state.reason, *counts)
