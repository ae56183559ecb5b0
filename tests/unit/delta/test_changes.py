"""Net changes between versions, and the change feeds that others read."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from livemart.arrow.bags import WEIGHT
from livemart.delta import changes
from livemart.delta.changes import NetChanges
from livemart.delta.log import Action, log_file, log_name
from livemart.delta.open_tables import OpenTables
from livemart.delta.parquet import read_change_file
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.storage.opening import open_storage
from livemart.storage.storage import Storage
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag


def test_the_change_feed_of_deltalake_is_the_net_change(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1), (2, "b", 0, 1)), tag(1))
    warehouse.commit(RELATION, diff((1, "a", 1, 0), (1, "z", 0, 1)), tag(2), key=["id"])

    feed = pa.table(DeltaTable(str(warehouse.path(RELATION))).load_cdf(2, 2)).to_pylist()

    rows = {(row["id"], row["name"], row["_change_type"]) for row in feed}
    assert rows == {(1, "a", "delete"), (1, "z", "insert")}


def test_changes_across_a_changed_column_are_unavailable(warehouse: Warehouse) -> None:
    warehouse.overwrite(RELATION, pa.table({"id": [1], "name": ["a"]}, schema=SMALL), tag(1))
    other = pa.table({"id": [1], "name": pa.array([date(2026, 1, 1)])})
    path = str(warehouse.path(RELATION))
    write_deltalake(path, other, mode="overwrite", schema_mode="overwrite")

    with pytest.raises(RefreshError, match="CDF_UNAVAILABLE"):
        warehouse.changes(RELATION, 1, 2)


def test_an_empty_partition_of_another_writer_is_null_in_a_change_as_in_the_table(
    warehouse: Warehouse,
) -> None:
    rows = pa.table({"region": ["", None, "x"], "id": [1, 2, 3]})
    path = str(warehouse.path(RELATION))
    configuration = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(path, rows, partition_by=["region"], configuration=configuration)
    write_deltalake(path, rows, mode="append")

    change = warehouse.changes(RELATION, 0, 1)

    stored = warehouse.read(RELATION, 0).to_pylist()
    assert sorted(change.drop_columns([WEIGHT]).to_pylist(), key=str) == sorted(stored, key=str)
    assert [row["region"] for row in sorted(stored, key=lambda row: row["id"])] == [None, None, "x"]


def test_a_removed_file_that_does_not_say_its_partition_is_no_change_that_is_read(
    warehouse: Warehouse,
) -> None:
    """Delta lets a `remove` action leave it out; then NULL would not be what it was."""
    rows = pa.table({"region": ["x"], "id": [1]})
    path = str(warehouse.path(RELATION))
    for _ in range(2):
        write_deltalake(path, rows, partition_by=["region"], mode="overwrite")
    log = warehouse.path(RELATION) / log_name(1)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        for name in ("partitionValues", "extendedFileMetadata"):
            line.get("remove", {}).pop(name, None)
    log.write_text("\n".join(map(json.dumps, lines)))

    with pytest.raises(RefreshError, match=r"CDF_UNAVAILABLE.* does not say its partition"):
        warehouse.changes(RELATION, 0, 1)


def test_a_change_of_too_many_rows_is_not_read(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A year that is delivered again would fill the memory of each reader of the table."""
    read: list[str] = []

    def noted(
        table: Storage, action: Action, schema: pa.Schema, *, most_rows: int | None
    ) -> pa.Table:
        rows = read_change_file(table, action, schema, most_rows=most_rows)
        read.append(action["path"])
        return rows

    monkeypatch.setattr(changes, "read_change_file", noted)
    warehouse.create(RELATION, SMALL)
    rows = [(n, "a", 0, 1) for n in range(3)]
    for number in (1, 2):
        warehouse.commit(RELATION, diff(*rows[number - 1 :]), tag(number))
    warehouse.commit(RELATION, diff((1, "a", 2, 0), (2, "a", 2, 0)), tag(3))
    fresh = Warehouse(warehouse.place)
    monkeypatch.setattr(changes, "MOST_CHANGED_ROWS", 2)

    # The log says how many rows a commit adds, and a file of changes says it before it is read.
    # That a commit has too many is remembered.
    for first, last, files in ((0, 1, 0), (1, 2, 1), (1, 3, 1), (2, 3, 0)):
        read.clear()
        if (first, last) == (1, 2):
            assert fresh.changes(RELATION, first, last).num_rows == 2
        else:
            with pytest.raises(RefreshError, match=r"CDF_UNAVAILABLE.* they are more than 2 rows"):
                fresh.changes(RELATION, first, last)
        assert len(read) == files, (first, last)


def test_changes_of_the_newest_commits_alone_stay_in_memory(tmp_path: Path) -> None:
    """Each batch leaves some: over a day they would fill what all of them may take."""
    tables = OpenTables(open_storage(tmp_path), 0)
    table = tables.storage(RELATION)
    kept, schema = NetChanges(tables, 1 << 20), pa.schema([("n", pa.int64())])
    # Some versions are of others: none of those is kept.
    for version in (*range(0, 60, 3), *range(60, 80)):
        # A reader of the log finds no row.
        table.put(log_name(version), b'{"commitInfo": {}}')
        kept.keep(RELATION, version, pa.table({"n": [version], WEIGHT: [1]}))

    def found(version: int) -> bool:
        file = log_file(table, version)
        return file is not None and bool(
            kept.between(RELATION, schema, version - 1, version).num_rows
        )

    assert [version for version in range(1, 80) if found(version)] == list(range(64, 80))
