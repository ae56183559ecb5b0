"""The warehouse: what all readers and writers of tables go through."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pds
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType, StructType

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.delta.log import log_name
from livemart.delta.properties import is_checkpointed
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from tests.bag_histories import bag_of, weights_of
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag


def test_folders_with_commits_are_tables_and_hidden_ones_hold_none(tmp_path: Path) -> None:
    for name in ("mart/b", "mart/a", "bronze/_deletes_x", "_livemart/snapshots", ".tmp/c"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
        (tmp_path / name / log_name(0)).write_text("")
    (tmp_path / "mart" / "no_commit" / "_delta_log").mkdir(parents=True)
    (tmp_path / "mart" / "file").write_text("")

    assert Warehouse(tmp_path).relations() == ["bronze._deletes_x", "mart.a", "mart.b"]
    assert Warehouse(tmp_path).relations("a") == ["mart.a"]
    assert Warehouse(tmp_path / "missing").relations() == []


def test_a_text_of_a_declared_length_has_a_kind_of_its_own(tmp_path: Path) -> None:
    declared = {"a": "varchar(5)", "b": "CHAR(3)", "c": "struct<char:varchar(5)>", "d": ""}
    text = PrimitiveType("string")
    row = StructType([Field("char", text)])
    fields = [
        Field(name, row if name == "c" else text, metadata={"__CHAR_VARCHAR_TYPE_STRING": it})
        for name, it in declared.items()
    ]
    warehouse = Warehouse(tmp_path)
    DeltaTable.create(warehouse.path(RELATION), Schema(fields))

    kinds = warehouse.column_kinds(RELATION)
    assert kinds is not None
    assert [kinds[name] for name in ("a", "b", "d")] == ["sized string", "sized string", "string"]
    assert kinds["c"].startswith("sized struct<char: string")


def test_a_commit_of_the_same_or_an_older_batch_is_skipped(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(5))

    again = [warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(batch)) for batch in (5, 4)]

    assert [commit.skipped for commit in again] == [True, True]
    assert warehouse.row_count(RELATION) == 1
    assert warehouse.is_tagged(RELATION, tag(5))
    assert not warehouse.is_tagged(RELATION, tag(6))


def test_a_change_set_without_change_commits_nothing(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)

    commit = warehouse.commit(RELATION, diff((1, "a", 2, 2)), tag(1))

    assert (commit.version, commit.skipped, commit.rows_changed) == (0, False, 0)


def test_overwrite_makes_the_table_then_replaces_its_rows(warehouse: Warehouse) -> None:
    first = pa.table({"id": [1, 2], "name": ["a", "b"]}, schema=SMALL)
    second = pa.table({"id": [2, 3], "name": ["b", "c"]}, schema=SMALL)
    warehouse.overwrite(RELATION, first, tag(1))
    before = warehouse.version(RELATION)

    after = warehouse.overwrite(RELATION, second, tag(2))

    assert bag_of(warehouse.read(RELATION)) == bag_of(second)
    changes = weights_of(warehouse.changes(RELATION, before, after.version))
    assert changes == {(1, "a"): -1, (3, "c"): 1}
    assert warehouse.overwrite(RELATION, first, tag(2)).skipped


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (pa.table({"id": ["x"], "name": ["a"]}), "column id"),
        (pa.table({"id": [2**40], "name": ["a"], "more": [1]}), "columns"),
        (pa.table({"id": [1]}), "columns"),
    ],
)
def test_rows_that_do_not_fit_are_refused_not_nulled(
    warehouse: Warehouse, rows: pa.Table, found: str
) -> None:
    warehouse.create(RELATION, SMALL)
    change = rows.append_column(OLD_COUNT, pa.array([0])).append_column(NEW_COUNT, pa.array([1]))

    with pytest.raises(RefreshError, match="SCHEMA_MISMATCH") as caught:
        warehouse.commit(RELATION, change, tag(1))

    assert found in caught.value.message
    assert warehouse.version(RELATION) == 0


def test_null_in_a_column_that_forbids_it_is_refused(warehouse: Warehouse) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    warehouse.create(RELATION, schema)

    with pytest.raises(RefreshError, match="SCHEMA_MISMATCH"):
        warehouse.overwrite(RELATION, pa.table({"id": pa.array([None], pa.int64())}), tag(1))


def test_a_missing_table_is_named(warehouse: Warehouse) -> None:
    with pytest.raises(RefreshError, match="TABLE_MISSING"):
        warehouse.version(RELATION)

    assert not warehouse.exists(RELATION)


def test_a_version_whose_files_are_gone_is_named(warehouse: Warehouse) -> None:
    warehouse.overwrite(RELATION, pa.table({"id": [1], "name": ["a"]}, schema=SMALL), tag(1))
    old = warehouse.version(RELATION)
    warehouse.overwrite(RELATION, pa.table({"id": [2], "name": ["b"]}, schema=SMALL), tag(2))
    table = DeltaTable(str(warehouse.path(RELATION)))
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    cold = Warehouse(warehouse.root)

    with pytest.raises(RefreshError, match="VERSION_GONE"):
        cold.read(RELATION, old)
    with pytest.raises(RefreshError, match="CDF_UNAVAILABLE"):
        cold.changes(RELATION, old, old + 1)
    with pytest.raises(RefreshError, match="VERSION_GONE"):
        cold.read(RELATION, 99)


def test_what_others_did_is_told_from_what_changes_no_data(warehouse: Warehouse) -> None:
    path = str(warehouse.path(RELATION))
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(7, note="ours"))
    write_deltalake(
        path,
        pa.table({"id": [2], "name": ["b"]}),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": "theirs"}),
    )
    DeltaTable(path).optimize.compact()
    DeltaTable(path).restore(1)

    found = warehouse.data_changed_between(RELATION, 0, 4)

    assert [entry and (entry.version, dict(entry.transactions)) for entry in found] == [
        (1, {tag(7).app_id: 7}),
        (2, {}),
        (4, {}),
    ]
    assert warehouse.metadata_of(RELATION, 1) == {"note": "ours"}
    assert warehouse.metadata_of(RELATION, 2) == {"userMetadata": "theirs"}
    (warehouse.path(RELATION) / log_name(2)).unlink()
    assert warehouse.data_changed_between(RELATION, 1, 2) == [None]


def test_checkpoints_keep_the_log_short(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(1, 12):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1)), tag(batch))

    last = json.loads((warehouse.path(RELATION) / "_delta_log" / "_last_checkpoint").read_text())

    (turn,) = [version for version in range(1, 11) if is_checkpointed(RELATION, version)]
    assert last["version"] == turn


def test_tables_that_are_committed_together_take_turns_with_their_checkpoints() -> None:
    names = [f"mart.model_{number}" for number in range(100)]

    in_a_batch = [sum(is_checkpointed(it, version) for it in names) for version in range(10)]

    assert sum(in_a_batch) == 100
    assert max(in_a_batch) < 20


def test_files_that_two_versions_share_are_not_read_to_tell_them_apart(
    warehouse: Warehouse,
) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(3):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1)), tag(batch))
    old, shared = warehouse.version(RELATION), warehouse.files(RELATION)
    warehouse.commit(RELATION, diff((1, "a", 1, 0), (1, "b", 0, 1)), tag(3), key=["id"])
    new = warehouse.version(RELATION)
    cold = Warehouse(warehouse.root)
    kept = {it.path for it in cold.files(RELATION).files()}
    shared.storage.delete(it.path for it in shared.files() if it.path in kept)

    assert cold.rows_apart(RELATION, old, new).to_pylist() == [{"id": 1, "name": "a"}]
    assert cold.rows_apart(RELATION, new, old).to_pylist() == [{"id": 1, "name": "b"}]
    assert cold.rows_apart(RELATION, new, new).to_pylist() == []
    assert cold.rows_apart(RELATION, 0, None).schema.equals(SMALL)
    with pytest.raises(RefreshError, match="VERSION_GONE"):
        cold.rows_apart(RELATION, new, 0)


@pytest.mark.extended
def test_no_commit_leaves_an_object_or_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream commits for months."""
    # Full after the first batches.
    monkeypatch.setattr("livemart.delta.open_tables._CACHED_INDEXES", 8)
    warehouse = Warehouse(tmp_path, 64 * 1024)
    warehouse.create(RELATION, SMALL)
    place = pds.field("id")

    def refresh(batch: int) -> None:
        rows = [(batch * 100 + number, "new", 0, 1) for number in range(100)]
        before = warehouse.version(RELATION)
        gone = [((batch - 1) * 100 + number, "new", 1, 0) for number in range(100)]
        commit = warehouse.commit(RELATION, diff(*rows, *gone), tag(batch), key=["id"])
        for version in (before, commit.version):
            warehouse.read(RELATION, version, filter=place >= batch * 100)
        warehouse.changes(RELATION, before, commit.version)

    def held() -> tuple[int, int]:
        gc.collect()
        return sys.getallocatedblocks(), pa.total_allocated_bytes()

    warehouse.commit(RELATION, diff(*((number, "new", 0, 1) for number in range(100))), tag(0))
    for batch in range(1, 41):
        refresh(batch)
    objects, rows_bytes = held()
    for batch in range(41, 81):
        refresh(batch)
    later_objects, later_bytes = held()

    # One object that stays is two or three blocks of memory.
    assert later_objects - objects < 2.5 * 40
    assert later_bytes - rows_bytes < 256 * 1024
