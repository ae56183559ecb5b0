"""Tables of an earlier version, and files of Spark, are corrected and reported once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pds
import pytest
import structlog
from deltalake import DeltaTable

from livemart.delta.log import log_name
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.inspect.published_tables import published_tables
from livemart.run.corrected_files import correct_files
from livemart.run.upkeep import keep_up
from livemart.state.snapshots import Snapshot, SnapshotLog

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RELATION = "raw.sales"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A published table as an earlier version wrote it: of its decimals the log has no bounds."""
    rows = pa.table({"amount": [Decimal("1.25"), Decimal("7.50")], "n": [1, 2]})
    Warehouse(tmp_path).overwrite(RELATION, rows, Tag("e/raw.sales/0", 1))
    path = tmp_path / "raw" / "sales" / log_name(1)
    lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            statistics = json.loads(line["add"]["stats"])
            for side in ("minValues", "maxValues"):
                del statistics[side]["amount"]
            line["add"]["stats"] = json.dumps(statistics)
    path.write_text("\n".join(map(json.dumps, lines)))
    row = Snapshot(
        snapshot_id=1,
        batch_id=1,
        epoch="e",
        kind="refresh",
        status="published",
        as_of=None,
        sources={RELATION: 1},
        models={},
        tests={},
        started_at=NOON,
        finished_at=NOON,
    )
    assert SnapshotLog(tmp_path).append(row)
    return tmp_path


def _found(root: Path) -> int:
    """Return what a reader finds by a filter on money, at the version that is published."""
    (table,) = published_tables(root)
    dataset = DeltaTable(table.path, version=table.version).to_pyarrow_dataset()
    return int(dataset.to_table(filter=pds.field("amount") > Decimal("0.00")).num_rows)


def test_a_table_of_an_earlier_version_is_corrected_by_the_daily_upkeep(root: Path) -> None:
    keep_up(root, NOON, lambda _: None)
    assert _found(root) == 0

    with structlog.testing.capture_logs() as events:
        for days in (1, 2):
            keep_up(root, NOON + timedelta(days=days), lambda _: None)

    assert _found(root) == 2
    assert [it for it in events if it["event"].startswith("bounds")] == [
        {"event": "bounds_corrected", "log_level": "info", "tables": [RELATION], "files": 1}
    ]
    assert Warehouse(root).version(RELATION) == 2


def test_what_spark_wrote_is_corrected_after_the_micro_batch(root: Path) -> None:
    tables = Warehouse(root)
    tables.written_by_spark(RELATION)

    assert correct_files(tables, tables.of_spark) == {RELATION}

    assert _found(root) == 2
    assert tables.of_spark == frozenset()


def test_a_table_that_cannot_be_corrected_costs_no_micro_batch(root: Path) -> None:
    (file,) = (root / "raw" / "sales").glob("*.parquet")
    file.unlink()

    with structlog.testing.capture_logs() as events:
        assert correct_files(Warehouse(root), [RELATION, "raw.gone"]) == set()

    assert [(it["event"], it["table"]) for it in events] == [
        ("bounds_not_corrected", "raw.gone"),
        ("bounds_not_corrected", RELATION),
    ]
