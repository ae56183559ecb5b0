"""The names and the session with which a recomputed model reads its inputs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.inspect.recomputed_tables import RecomputedTables, unsure_words
from livemart.project.graph import Project
from livemart.project.session_spec import PLAIN
from livemart.state.snapshots import Snapshot

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SNAPSHOT = Snapshot(1, "e", 0, "build", None, {}, {}, {}, "published", NOON, NOON)


class Rows:
    """Stands for a frame, and keeps the views that are made."""

    def __init__(self, views: dict[str, Rows], *columns: str) -> None:
        self.columns = columns
        self._views = views

    def createOrReplaceGlobalTempView(self, name: str) -> None:
        """Make a view, as Spark spells it."""
        self._views[f"global_temp.{name}"] = self


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


def test_each_query_has_the_session_for_its_own_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One long table, or one model with a map, leaves all others in the session for few rows."""
    warehouse, spark = Warehouse(tmp_path), SimpleNamespace()
    counts = {"raw.few": 2, "raw.many": 9, "m.few": 1, "m.long": 9, "m.many": 1}
    versions = {}
    for relation, count in counts.items():
        rows = pa.table({"n": range(count)})
        warehouse.create(relation, rows.schema)
        warehouse.overwrite(relation, rows, Tag(relation, warehouse.version(relation), {}))
        versions[relation] = warehouse.version(relation)
    monkeypatch.setattr("livemart.spark.quick_session.FEW_STATEMENT_ROWS", 5)
    monkeypatch.setattr("livemart.spark.quick_session.few_rows_session", lambda *_, **__: "few")
    snapshot = Snapshot(1, "e", 0, "build", None, versions, {}, {}, "published", NOON, NOON)
    project = Project("shop", ".", "shop", {}, {}, {}, {})
    session: Any = spark
    tables = RecomputedTables(session, warehouse, project, snapshot, tmp_path)

    def chosen(relation: str, read: str, text: str = "select n") -> Any:
        flat = SimpleNamespace(relations=(read,), occurrences=(read,), text=text)
        plan = SimpleNamespace(whole=flat)
        query: Any = SimpleNamespace(relation=relation, session=PLAIN, made_by="sql", plan=plan)
        return tables.session(query)

    assert chosen("m.few", "raw.few") == "few"
    assert chosen("m.few", "raw.few", "select map(n, n)") is spark
    assert chosen("m.many", "raw.many") is spark
    # Its stored rows are many.
    assert chosen("m.long", "raw.few") is spark
    # A table that the snapshot does not know.
    assert chosen("m.few", "raw.foreign") is spark


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from a.b |> where x > 1 |> select js:a, first, user_id", ()),
        ("from a.b |> LIMIT 3", ("limit",)),
        ("select row_number() over (order by x) from a.b", ("over",)),
        ("select max_by (x, y) from a.b", ("max_by",)),
        ("from a.b |> extend current_date as day, Uuid() as u", ("current_date", "uuid")),
        ("from a.b |> where t < timestamp' now'", ("now",)),
        ("from a.b |> extend approx_percentile(x, 0.5)", ("approx_percentile",)),
        ("select * from a.b join a.c exact nearest 1 by distance x - y", ("nearest",)),
        ("select _metadata.file_path from a.b tablesample (3 rows)", ("_metadata", "tablesample")),
    ],
)
def test_words_that_may_bring_other_rows_are_found(text: str, words: tuple[str, ...]) -> None:
    assert unsure_words(text) == words
