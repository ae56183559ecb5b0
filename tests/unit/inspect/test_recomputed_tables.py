"""A recomputed model reads its inputs under names of this room: one for each relation."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from livemart.delta.warehouse import Warehouse
from livemart.inspect.recomputed_tables import RecomputedTables
from livemart.project.graph import Project
from livemart.state.snapshots import Snapshot

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SNAPSHOT = Snapshot(1, "e", 0, "build", None, {}, {}, {}, "published", NOON, NOON)


class Rows:
    """Stands for a frame, and keeps the views that are made."""

    def __init__(self, views: dict[str, Rows], *columns: str) -> None:
        self.columns = columns
        self._views = views

    def createOrReplaceTempView(self, name: str) -> None:
        """Make a view, as Spark spells it."""
        self._views[name] = self


def test_a_seed_that_is_a_source_too_takes_no_other_name(tmp_path: Path) -> None:
    spark: Any = None
    project = Project("shop", ".", "shop", {}, {}, {}, {})
    tables = RecomputedTables(spark, Warehouse(tmp_path), project, SNAPSHOT, tmp_path)
    views: dict[str, Rows] = {}
    named: list[Any] = [Rows(views, "id"), Rows(views, "id"), Rows(views, "cost")]

    for relation, rows in zip(["raw.stores", "raw.stores", "raw.supplies"], named, strict=True):
        tables.name(relation, rows)

    assert views[tables.names["raw.stores"]] is named[1]
    assert views[tables.names["raw.supplies"]] is named[2]
