"""A warehouse as a project leaves it: a landed table, a model, the clock, and snapshot rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.state.counts import TableCounts
from livemart.state.snapshots import ModelState, Snapshot, SnapshotLog, Status
from tests.unit.delta.small_tables import SMALL, diff

ORDERS, TOTALS, CLOCK, FOREIGN = "bronze.orders", "mart.totals", "livemart.clock", "crm.customers"
MODEL = "model.shop.totals"
EPOCH = "e1"


@dataclass
class Mart:
    """One warehouse; `batch` lands a row, moves the model and appends a snapshot."""

    root: Path
    names: dict[str, str] = field(default_factory=lambda: {MODEL: TOTALS})
    snapshot_id: int = 0

    def __post_init__(self) -> None:
        self.warehouse = Warehouse(self.root)
        self.log = SnapshotLog(self.root)
        for relation in (ORDERS, CLOCK, FOREIGN, "bronze._dead_letters", "bronze._deletes_orders"):
            self.warehouse.create(relation, SMALL)

    def batch(self, *, status: Status = "published") -> Snapshot:
        self.snapshot_id += 1
        number = self.snapshot_id
        rows = pa.table({"id": [number], "name": [f"v{number}"]}, schema=SMALL)
        tags = Tags(EPOCH, number)
        self.warehouse.commit(ORDERS, diff((number, "a", 0, 1)), tags.rows(ORDERS))
        self.warehouse.overwrite(CLOCK, rows, tags.rows(CLOCK))
        for relation in self.names.values():
            self.warehouse.overwrite(relation, rows, tags.rows(relation))
        finished_at = datetime(2026, 3, 1, 12, tzinfo=UTC)
        snapshot = Snapshot(
            snapshot_id=number,
            epoch=EPOCH,
            batch_id=number,
            kind="refresh",
            as_of=None,
            sources={name: self.warehouse.version(name) for name in (ORDERS, CLOCK, FOREIGN)},
            models={
                unique_id: ModelState(
                    self.warehouse.version(relation),
                    "f",
                    "signed",
                    None,
                    1,
                    1,
                    0,
                    self.warehouse.table_id(relation),
                )
                for unique_id, relation in self.names.items()
            },
            tests={},
            status=status,
            started_at=finished_at,
            finished_at=finished_at,
            landed={ORDERS: TableCounts(1, 1, 0, 0)},
        )
        self.log.append(snapshot)
        return snapshot

    def values(self, version: int | None = None) -> list[str]:
        """Return what the model holds, read as by a new process."""
        rows = Warehouse(self.root).read(TOTALS, version)
        return [str(name) for name in rows.column("name").to_pylist()]
