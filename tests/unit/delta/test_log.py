"""Commits of the log: read as they are, written once."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pds
import pytest
from deltalake import DeltaTable

from livemart.delta.log import log_file, log_name, read_entry, write_entry
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.storage.opening import open_storage
from livemart.storage.storage import Taken
from tests.bag_histories import bag_of
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag
from tests.waits import PATIENCE_S


def test_a_version_is_written_once(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    table = warehouse.storage(RELATION)
    before = table.get(log_name(0))

    with pytest.raises(Taken):
        write_entry(table, 0, [], operation="WRITE", tag=Tag("a", 1))

    assert table.get(log_name(0)) == before
    assert [entry.name for entry in table.entries("_delta_log")] == [log_name(0)]


def test_of_two_writers_of_one_version_one_wins(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    table = warehouse.storage(RELATION)
    start = threading.Barrier(8, timeout=PATIENCE_S)

    def write(number: int) -> bool:
        start.wait(PATIENCE_S)
        try:
            write_entry(table, 1, [], operation="WRITE", tag=Tag(f"writer {number}", 1))
        except Taken:
            return False
        return True

    with ThreadPoolExecutor(max_workers=8) as pool:
        has_won = list(pool.map(write, range(8)))

    entry = read_entry(table, 1)
    assert has_won.count(True) == 1
    assert entry is not None
    assert dict(entry.transactions) == {f"writer {has_won.index(True)}": 1}
    assert not list((warehouse.path(RELATION) / "_delta_log").glob(".*.tmp"))


def test_an_entry_says_what_its_commit_did(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    table = warehouse.storage(RELATION)
    removed = {"remove": {"path": "a.parquet", "dataChange": False}}
    metadata = {"batch_id": "3", "relation": RELATION}
    write_entry(
        table,
        1,
        [removed],
        operation="OPTIMIZE",
        tag=Tag("e1", 3, metadata),
        metrics={"numRemovedFiles": 1},
    )

    created, optimized, missing = (read_entry(table, version) for version in (0, 1, 2))

    assert missing is None
    assert created is not None and created.table_id == warehouse.table_id(RELATION)
    assert optimized is not None and optimized.table_id is None
    assert not optimized.changes_data
    assert (dict(optimized.metadata), dict(optimized.transactions)) == (metadata, {"e1": 3})


def test_a_line_of_another_writer_ends_where_json_ends_it(tmp_path: Path) -> None:
    """Spark and deltalake write U+0085 and U+2028, line ends elsewhere, as they are."""
    table = open_storage(tmp_path)
    add = {"path": "a.parquet", "partitionValues": {"name": "a\u2028b\x85c"}, "dataChange": True}
    text = json.dumps({"add": add}, ensure_ascii=False)
    table.put(log_name(1), text.encode())

    entry = read_entry(table, 1)

    assert entry is not None and entry.adds == [add]


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_deltalake_reads_every_character_of_a_value_in_the_log(
    warehouse: Warehouse, is_partitioned: bool
) -> None:
    """deltalake 1.6.6 reads an escaped U+20BB7 as U+10BB7, one of plane 1 rightly."""
    names = ["\U00020bb7", "a\U0001f355", "a\u2028b\x85c", "\U0010ffff"]
    warehouse.create(RELATION, SMALL, partition_by=("name",) if is_partitioned else ())
    warehouse.commit(RELATION, diff(*((n, name, 0, 1) for n, name in enumerate(names))), tag(1))

    cold = Warehouse(warehouse.root)
    library = DeltaTable(str(warehouse.path(RELATION)))

    assert sorted(cold.read(RELATION)["name"].to_pylist()) == sorted(names)
    for name in names:
        found = library.to_pyarrow_table(filters=[("name", "=", name)])
        assert found["name"].to_pylist() == [name]


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        ('{"batch_id": "3"}', {"batch_id": "3"}),
        ("a note of somebody", {"userMetadata": "a note of somebody"}),
        ("[1]", {"userMetadata": "[1]"}),
        ("", {}),
    ],
)
def test_metadata_of_others_is_kept_as_they_wrote_it(
    tmp_path: Path, text: str, metadata: dict[str, str]
) -> None:
    table = open_storage(tmp_path)
    table.put(log_name(4), json.dumps({"commitInfo": {"userMetadata": text}}).encode())

    entry = read_entry(table, 4)

    assert entry is not None and entry.metadata == metadata


def test_a_log_file_made_anew_in_its_place_is_another(tmp_path: Path) -> None:
    table = open_storage(tmp_path)
    table.put(log_name(0), b"{}")
    first = log_file(table, 0)
    (tmp_path / log_name(0)).rename(tmp_path / "kept")
    table.put(log_name(0), b"{}")

    assert log_file(table, 0) != first
    assert log_file(table, 1) is None


def test_characters_of_every_plane_are_read_as_they_were_written(warehouse: Warehouse) -> None:
    """deltalake 1.6.6 reads U+20BB7, if it is escaped, as U+10BB7 (arrow-json)."""
    rows = pa.table({"city": ["𠮷野家", "\u2028"], "name": ["𠮷", "é\x85😀"]})

    warehouse.overwrite(RELATION, rows, tag(1), partition_by=["city"])

    dataset = DeltaTable(str(warehouse.path(RELATION))).to_pyarrow_dataset()
    for row in rows.to_pylist():
        (found,) = dataset.to_table(filter=pds.field("name") == row["name"]).to_pylist()
        assert found == row
    assert bag_of(warehouse.read(RELATION)) == bag_of(rows)
    entry = read_entry(warehouse.storage(RELATION), 1)
    assert entry is not None and len(entry.adds) == 2
