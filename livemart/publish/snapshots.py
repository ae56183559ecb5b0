"""The snapshot log: one row names every table's version. It is the moment all models change together.

It is a Delta table that any reader can open; a crash between models leaves no row, so the batch is
replayed from the row before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds

from livemart.engine.tables import NEW_COUNT, OLD_COUNT, TableChangedError, Tag, Warehouse

_RELATION = "_livemart.snapshots"
_ATTEMPTS = 5

Kind = Literal["build", "refresh"]
Status = Literal["published", "held"]


@dataclass(frozen=True, slots=True)
class ModelState:
    """What a snapshot holds of one model.

    `version` is the table's, `generation` counts its rebuilds, `took_ms` the refresh.
    """

    version: int
    fingerprint: str
    strategy: str
    reason: str | None
    rows_changed: int
    took_ms: int
    generation: int
    table_id: str


@dataclass(frozen=True, slots=True)
class Landed:
    """Records of one source in one batch; produced = landed + superseded + dead_letters.

    `table_id` is the landed table's: one dropped and made anew has another.
    """

    produced: int
    landed: int
    superseded: int
    dead_letters: int
    table_id: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One row of the log.

    `sources`: version by relation; `models`: state by unique id; `tests`: outcome by unique id.
    Times are UTC.
    """

    snapshot_id: int
    epoch: str
    batch_id: int
    kind: Kind
    as_of: datetime | None
    sources: Mapping[str, int]
    models: Mapping[str, ModelState]
    tests: Mapping[str, str]
    status: Status
    started_at: datetime
    finished_at: datetime
    landed: Mapping[str, Landed] = field(default_factory=dict)


_MODEL = pa.struct(
    [
        ("version", pa.int64()),
        ("fingerprint", pa.string()),
        ("strategy", pa.string()),
        ("reason", pa.string()),
        ("rows_changed", pa.int64()),
        ("took_ms", pa.int64()),
        ("generation", pa.int64()),
        ("table_id", pa.string()),
    ]
)
_LANDED = pa.struct(
    [
        *((name, pa.int64()) for name in ("produced", "landed", "superseded", "dead_letters")),
        ("table_id", pa.string()),
    ]
)
_TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("epoch", pa.string()),
        ("batch_id", pa.int64()),
        ("kind", pa.string()),
        ("as_of", _TIME),
        ("sources", pa.map_(pa.string(), pa.int64())),
        ("models", pa.map_(pa.string(), _MODEL)),
        ("tests", pa.map_(pa.string(), pa.string())),
        ("status", pa.string()),
        ("started_at", _TIME),
        ("finished_at", _TIME),
        ("landed", pa.map_(pa.string(), _LANDED)),
    ]
)


class SnapshotLog:
    """The log at `root/_livemart/snapshots`. One writer, any number of readers."""

    def __init__(self, root: Path) -> None:
        self._warehouse = Warehouse(root)
        self._tail: tuple[int, str, tuple[Snapshot, ...]] | None = None

    def newest(self) -> Snapshot | None:
        """Return the newest row, the frontier of all models; None before the first build."""
        rows = self._newest_rows(1)
        return rows[0] if rows else None

    def newest_published(self) -> Snapshot | None:
        """Return the row that readers use: the newest that no failed test holds back."""
        newest = self.newest()
        if newest is None or newest.status == "published":
            return newest
        rows = self._read(pds.field("status") == "published", limit=1)
        return rows[0] if rows else None

    def rows(self, limit: int) -> list[Snapshot]:
        """Return up to `limit` rows, newest first."""
        return list(self._newest_rows(limit))

    def append(self, snapshot: Snapshot) -> bool:
        """Write a row once for its epoch and batch; return False if it was there before.

        Raises:
            RefreshError: TABLE_CHANGED, if another process keeps writing to the log.
        """
        self._warehouse.create(_RELATION, SCHEMA)
        row = pa.Table.from_pylist([_to_row(snapshot)], schema=SCHEMA)
        diff = row.append_column(OLD_COUNT, pa.array([0], pa.int64())).append_column(
            NEW_COUNT, pa.array([1], pa.int64())
        )
        tag = Tag(
            f"{snapshot.epoch}/{_RELATION}",
            snapshot.batch_id,
            {"snapshot_id": str(snapshot.snapshot_id), "kind": snapshot.kind},
        )
        for attempt in range(_ATTEMPTS):
            try:
                return not self._warehouse.commit(_RELATION, diff, tag, key=("snapshot_id",)).skipped
            except TableChangedError:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _newest_rows(self, limit: int) -> tuple[Snapshot, ...]:
        if limit <= 0 or not self._warehouse.exists(_RELATION):
            return ()
        version = self._warehouse.version(_RELATION)
        table_id = self._warehouse.table_id(_RELATION)
        known = self._tail
        if known is None or known[:2] != (version, table_id) or len(known[2]) < limit:
            known = (version, table_id, tuple(self._read(None, limit)))
            self._tail = known
        return known[2][:limit]

    def _read(self, condition: pds.Expression | None, limit: int) -> list[Snapshot]:
        """Read newest rows first, widening the range of ids until enough rows are found."""
        highest = self._warehouse.highest(_RELATION, "snapshot_id")
        if highest is None:
            return []
        span = max(limit, 16)
        while True:
            recent = pds.field("snapshot_id") > highest - span
            table = self._warehouse.read(
                _RELATION, filter=recent if condition is None else recent & condition
            )
            if table.num_rows >= limit or span > highest:
                break
            span *= 8
        order = pc.sort_indices(table, [("snapshot_id", "descending")])
        return [_from_row(row) for row in table.take(order.slice(0, limit)).to_pylist()]


def _to_row(snapshot: Snapshot) -> dict[str, Any]:
    def fields(state: ModelState | Landed) -> dict[str, Any]:
        return {name: getattr(state, name) for name in type(state).__slots__}

    return {
        "snapshot_id": snapshot.snapshot_id,
        "epoch": snapshot.epoch,
        "batch_id": snapshot.batch_id,
        "kind": snapshot.kind,
        "as_of": snapshot.as_of,
        "sources": list(snapshot.sources.items()),
        "models": [(name, fields(state)) for name, state in snapshot.models.items()],
        "tests": list(snapshot.tests.items()),
        "status": snapshot.status,
        "started_at": snapshot.started_at,
        "finished_at": snapshot.finished_at,
        "landed": [(name, fields(counts)) for name, counts in snapshot.landed.items()],
    }


def _from_row(row: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        snapshot_id=row["snapshot_id"],
        epoch=row["epoch"],
        batch_id=row["batch_id"],
        kind=cast(Kind, row["kind"]),
        as_of=_utc(row["as_of"]),
        sources=dict(row["sources"]),
        models={name: ModelState(**state) for name, state in row["models"]},
        tests=dict(row["tests"]),
        status=cast(Status, row["status"]),
        started_at=cast(datetime, _utc(row["started_at"])),
        finished_at=cast(datetime, _utc(row["finished_at"])),
        landed={name: Landed(**counts) for name, counts in row["landed"]},
    )


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
