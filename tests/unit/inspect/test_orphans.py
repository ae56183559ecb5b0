"""The table of a removed model is named; other folders of the warehouse are not."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.inspect.orphans import Orphan, find_orphans
from livemart.state.snapshots import ModelState, SetAside, Snapshot, SnapshotLog

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Tables:
    """A warehouse with a log; a row names tables by relation."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warehouse, self.log = Warehouse(root), SnapshotLog(root)
        self.count = 0

    def make(self, relation: str) -> str:
        rows = pa.table({"n": [1]})
        self.warehouse.overwrite(relation, rows, Tag(f"e/{relation}/0", 0, {}))
        return self.warehouse.table_id(relation)

    def append(self, models: dict[str, str], **other: Any) -> None:
        self.count += 1
        states = {
            f"model.m.{name}": ModelState(0, "f", "signed", None, 1, 2, 0, table_id)
            for name, table_id in models.items()
        }
        values: dict[str, Any] = {
            "snapshot_id": self.count,
            "epoch": "e",
            "batch_id": self.count,
            "kind": "refresh",
            "as_of": None,
            "sources": {"raw.orders": 0},
            "models": states,
            "tests": {},
            "status": "published",
            "started_at": NOON,
            "finished_at": NOON,
        }
        self.log.append(Snapshot(**(values | other)))

    def orphans(self) -> tuple[Orphan, ...]:
        return find_orphans(self.warehouse, self.log)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    tables = Tables(tmp_path)
    for relation in ("raw.orders", "raw._dead_letters", "scratch.mine"):
        tables.make(relation)
    return tables


def test_a_deleted_and_a_renamed_model_leave_their_tables(tables: Tables) -> None:
    assert tables.orphans() == ()
    ids = {name: tables.make(f"mart.{name}") for name in ("totals", "gone", "before")}
    tables.append(ids)
    assert tables.orphans() == ()

    tables.append({"totals": ids["totals"], "after": tables.make("mart.after")})

    assert tables.orphans() == (
        Orphan("mart.before", "model.m.before"),
        Orphan("mart.gone", "model.m.gone"),
    )


def test_what_a_reader_sees_and_what_waits_is_none(tables: Tables) -> None:
    ids = {name: tables.make(f"mart.{name}") for name in ("seen", "aside")}
    tables.append(ids)
    tables.append({}, status="held")
    assert tables.orphans() == ()

    aside = SetAside(3, None, "f", "model.m.aside", "no")
    tables.append({}, set_aside={"model.m.aside": aside})

    assert tables.orphans() == (Orphan("mart.seen", "model.m.seen"),)


def test_a_copy_and_the_table_of_another_target_are_somebodys(tables: Tables) -> None:
    old = tables.make("dev.totals")
    tables.append({"totals": old, "gone": tables.make("mart.gone")})
    shutil.copytree(tables.root / "mart" / "gone", tables.root / "mart" / "copy")

    tables.append({"totals": tables.make("prod.totals")})

    assert tables.orphans() == ()
