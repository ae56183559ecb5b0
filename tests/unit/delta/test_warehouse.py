"""The small lane on tables of deltalake, without a JVM."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.delta.conflicts import TableChangedError
from livemart.delta.log import VersionTakenError, log_path, write_entry
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from tests.bag_histories import (
    SCHEMA,
    Row,
    bag_of,
    difference,
    keyed_history,
    keyless_history,
    weights_of,
)
from tests.conftest import IS_NIGHTLY

RELATION = "mart.totals"
SMALL = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path)


@pytest.mark.parametrize("partition_by", [(), ("day",), ("region", "at"), ("big", "amount")])
@pytest.mark.parametrize("seed", range(12 if IS_NIGHTLY else 2))
def test_a_history_without_key_leaves_the_bag_it_describes(
    warehouse: Warehouse, seed: int, partition_by: tuple[str, ...]
) -> None:
    warehouse.create(RELATION, SCHEMA, partition_by=partition_by)
    bags: list[Counter[Row]] = [Counter()]

    for batch, step in enumerate(keyless_history(seed, 6)):
        warehouse.commit(RELATION, step.diff, tag(batch))
        bags.append(step.bag)

    assert_reads_alike(warehouse, bags)


@pytest.mark.parametrize("key", [("big",), ("name", "day"), ("ratio",), ("at", "extra")])
@pytest.mark.parametrize("seed", range(12 if IS_NIGHTLY else 2))
def test_a_history_with_a_key_leaves_the_bag_it_describes(
    warehouse: Warehouse, seed: int, key: tuple[str, ...]
) -> None:
    warehouse.create(RELATION, SCHEMA, partition_by=("day",))
    bags: list[Counter[Row]] = [Counter()]

    for batch, step in enumerate(keyed_history(seed, 6, key)):
        warehouse.commit(RELATION, step.diff, tag(batch), key=key)
        bags.append(step.bag)

    assert_reads_alike(warehouse, bags)


def assert_reads_alike(warehouse: Warehouse, bags: list[Counter[Row]]) -> None:
    """Every version, and every change between two, read warm, cold and by deltalake itself."""
    cold = Warehouse(warehouse.root)
    assert warehouse.version(RELATION) == len(bags) - 1
    for version, bag in enumerate(bags):
        assert bag_of(warehouse.read(RELATION, version)) == bag
        assert cold.row_count(RELATION, version) == sum(bag.values())
    library = DeltaTable(str(warehouse.path(RELATION)))
    names = SCHEMA.names
    assert bag_of(pa.table(library.scan(columns=names)).cast(SCHEMA)) == bags[-1]
    last = len(bags) - 1
    for start, end in [*pairwise(range(len(bags))), (0, last), (1, last - 1), (last, last)]:
        expected = difference(bags[start], bags[end])
        assert weights_of(warehouse.changes(RELATION, start, end)) == expected
        assert weights_of(cold.changes(RELATION, start, end)) == expected


def test_an_empty_string_in_a_partition_column_is_null_as_delta_has_it(
    warehouse: Warehouse,
) -> None:
    warehouse.create(RELATION, SMALL, partition_by=["name"])

    warehouse.commit(RELATION, diff((1, "", 0, 1)), tag(1))

    assert warehouse.read(RELATION).to_pylist() == [{"id": 1, "name": None}]
    assert weights_of(warehouse.changes(RELATION, 0, 1)) == {(1, None): 1}


def test_the_change_feed_of_deltalake_is_the_net_change(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1), (2, "b", 0, 1)), tag(1))
    warehouse.commit(RELATION, diff((1, "a", 1, 0), (1, "z", 0, 1)), tag(2), key=["id"])

    feed = pa.table(DeltaTable(str(warehouse.path(RELATION))).load_cdf(2, 2)).to_pylist()

    rows = {(row["id"], row["name"], row["_change_type"]) for row in feed}
    assert rows == {(1, "a", "delete"), (1, "z", "insert")}


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


def test_another_writer_in_between_is_an_error_that_asks_for_a_replay(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.create(RELATION, SMALL)
    path = warehouse.path(RELATION)

    def commit_late(*args: Any, **options: Any) -> None:
        write_deltalake(str(path), pa.table({"id": [9], "name": ["x"]}), mode="append")
        write_entry(*args, **options)

    monkeypatch.setattr("livemart.delta.small_lane.write_entry", commit_late)
    with pytest.raises(TableChangedError, match="TABLE_CHANGED") as caught:
        warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))
    monkeypatch.undo()

    assert caught.value.is_retriable
    assert not warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1)).skipped
    assert warehouse.row_count(RELATION) == 2


def test_a_version_is_written_once(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    path = warehouse.path(RELATION)
    before = log_path(path, 0).read_text()

    with pytest.raises(VersionTakenError):
        write_entry(
            path, 0, [], operation="WRITE", app_id="a", app_version=1, metadata={}, metrics={}
        )

    assert log_path(path, 0).read_text() == before
    assert [name.name for name in (path / "_delta_log").iterdir()] == [log_path(path, 0).name]


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


@pytest.mark.parametrize(
    ("change", "key"),
    [((3, "c", 1, 0), ()), ((3, "c", 1, 0), ("id",)), ((1, "a", 1, 0), ("id",))],
)
def test_rows_that_are_not_as_the_change_set_has_them_are_not_touched(
    warehouse: Warehouse, change: tuple[int, str, int, int], key: tuple[str, ...]
) -> None:
    """A key that is not unique would lose its other row, a row not found would be doubled."""
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1), (1, "b", 0, 1)), tag(1))

    with pytest.raises(RefreshError, match="STORED_ROWS_DIFFER"):
        warehouse.commit(RELATION, diff(change), tag(2), key=key)

    assert warehouse.version(RELATION) == 1


def test_a_table_with_features_beyond_the_small_lane_is_refused(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    DeltaTable(str(warehouse.path(RELATION))).alter.add_constraint({"positive": "id > 0"})

    with pytest.raises(RefreshError, match="TABLE_NOT_WRITABLE"):
        warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))


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


def test_changes_across_a_changed_column_are_unavailable(warehouse: Warehouse) -> None:
    warehouse.overwrite(RELATION, pa.table({"id": [1], "name": ["a"]}, schema=SMALL), tag(1))
    other = pa.table({"id": [1], "name": pa.array([date(2026, 1, 1)])})
    path = str(warehouse.path(RELATION))
    write_deltalake(path, other, mode="overwrite", schema_mode="overwrite")

    with pytest.raises(RefreshError, match="CDF_UNAVAILABLE"):
        warehouse.changes(RELATION, 1, 2)


def test_a_filter_keeps_the_last_microsecond_of_a_file_that_spark_wrote(
    warehouse: Warehouse,
) -> None:
    """Spark cuts a timestamp's maximum to milliseconds; deltalake's dataset then loses rows."""
    last = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=UTC)
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    warehouse.overwrite(RELATION, pa.table({"at": [last]}, schema=schema), tag(1))
    entry = log_path(warehouse.path(RELATION), 1)
    written = entry.read_text()
    entry.write_text(written.replace("2026-01-02T00:00:00.000Z", "2026-01-01T23:59:59.999Z"))
    assert entry.read_text() != written
    cold = Warehouse(warehouse.root)

    found = cold.read(
        RELATION, filter=pds.field("at") > pa.scalar(last.replace(microsecond=999_500))
    )

    assert found.num_rows == 1


def test_a_filter_reads_only_files_that_can_hold_its_rows(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(4):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1)), tag(batch))
    (wanted,) = DeltaTable(str(warehouse.path(RELATION))).file_uris(file_pruning_predicate="id = 3")
    for file in warehouse.path(RELATION).glob("*.parquet"):
        if not wanted.endswith(file.name):
            file.unlink()

    found = warehouse.read(RELATION, filter=pds.field("id") == 3, columns=["name", "id"])

    assert found.to_pylist() == [{"name": "a", "id": 3}]


def test_a_change_rewrites_only_files_that_hold_a_changed_row(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(4):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1), (100 - batch, "a", 0, 1)), tag(batch))
    before = set(DeltaTable(str(warehouse.path(RELATION))).file_uris())

    warehouse.commit(RELATION, diff((2, "a", 1, 0)), tag(9), key=["id"])

    after = set(DeltaTable(str(warehouse.path(RELATION))).file_uris())
    assert (len(before - after), len(after - before)) == (1, 1)


def test_appends_do_not_pile_up_small_files(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(120):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1)), tag(batch))
    files = len(DeltaTable(str(warehouse.path(RELATION))).file_uris())
    cold = Warehouse(warehouse.root)

    changes = cold.changes(RELATION, 15, 120)

    assert files <= 32
    assert cold.row_count(RELATION) == 120
    assert sorted(changes.column("id").to_pylist()) == list(range(15, 120))
    assert pc.all(pc.equal(changes.column("_weight"), 1)).as_py()


def test_what_is_read_again_is_what_is_stored(warehouse: Warehouse) -> None:
    kinds = pa.schema(
        [("at", pa.timestamp("us", tz="UTC")), ("day", pa.string()), ("n", pa.int64())]
    )
    warehouse.create(RELATION, kinds, partition_by=["day"])
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def rows(batch: int, old: int, new: int) -> pa.Table:
        days = ["a", "b", None]
        values = [(noon.replace(minute=batch), day, batch) for day in days]
        table = pa.Table.from_pylist(
            [dict(zip(kinds.names, value, strict=True)) for value in values], kinds
        )
        for name, count in ((OLD_COUNT, old), (NEW_COUNT, new)):
            table = table.append_column(name, pa.repeat(pa.scalar(count, pa.int64()), 3))
        return table

    for batch in range(6):
        warehouse.commit(RELATION, rows(batch, 0, 1), tag(2 * batch))
        if batch > 1:
            warehouse.commit(RELATION, rows(batch - 1, 1, 0), tag(2 * batch + 1))
        for _ in range(3):
            passing = (pds.field("n") <= 3) & (pds.field("day") == "a")
            warm = warehouse.read(RELATION, filter=passing, columns=["n", "day", "at"])
            cold = Warehouse(warehouse.root).read(
                RELATION, filter=passing, columns=["n", "day", "at"]
            )
            assert warm.sort_by("n").equals(cold.sort_by("n"))


def test_a_large_file_of_which_little_is_read_is_cut_by_time_with_the_next_change(
    warehouse: Warehouse,
) -> None:
    numbers = np.random.default_rng(5).permutation(150_000)
    rows = pa.table([pa.array(numbers, pa.int64()), pa.repeat("a", len(numbers))], schema=SMALL)
    warehouse.create(RELATION, SMALL)
    write_deltalake(str(warehouse.path(RELATION)), rows, mode="append")
    narrow = {"filter": pds.field("id") < 100, "columns": ["id"]}

    found = warehouse.read(RELATION, **narrow)
    warehouse.commit(RELATION, diff((-1, "b", 0, 1)), tag(1), key=["id"])

    files = DeltaTable(str(warehouse.path(RELATION))).file_uris(
        file_pruning_predicate="id >= 0 and id < 100"
    )
    assert (found.num_rows, warehouse.read(RELATION, **narrow).num_rows) == (100, 101)
    assert len(files) == 1
    assert warehouse.row_count(RELATION) == 150_001
    assert Warehouse(warehouse.root).changes(RELATION, 1, 2).to_pylist() == [
        {"id": -1, "name": "b", "_weight": 1}
    ]


def test_a_table_made_anew_is_seen_as_another(warehouse: Warehouse) -> None:
    warehouse.overwrite(RELATION, pa.table({"id": [1], "name": ["a"]}, schema=SMALL), tag(1))
    first = warehouse.table_id(RELATION)
    shutil.rmtree(warehouse.path(RELATION))
    Warehouse(warehouse.root).overwrite(
        RELATION, pa.table({"id": [2], "name": ["b"]}, schema=SMALL), tag(1)
    )

    assert warehouse.table_id(RELATION) != first
    assert warehouse.read(RELATION, 1).to_pylist() == [{"id": 2, "name": "b"}]


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
    log_path(warehouse.path(RELATION), 2).unlink()
    assert warehouse.data_changed_between(RELATION, 1, 2) == [None]


def test_checkpoints_keep_the_log_short(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(1, 12):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1)), tag(batch))

    last = json.loads((warehouse.path(RELATION) / "_delta_log" / "_last_checkpoint").read_text())

    assert last["version"] == 10


def test_floats_are_told_apart_as_spark_groups_them(warehouse: Warehouse) -> None:
    schema = pa.schema([("ratio", pa.float64())])
    warehouse.overwrite(
        RELATION, pa.table({"ratio": [0.0, -0.0, math.nan, None]}, schema=schema), tag(1)
    )
    change = pa.table({"ratio": [0.0, math.nan], OLD_COUNT: [2, 1], NEW_COUNT: [1, 0]})

    warehouse.commit(RELATION, change, tag(2))

    assert bag_of(warehouse.read(RELATION)) == Counter({(0.0,): 1, (None,): 1})


def tag(version: int, **metadata: str) -> Tag:
    return Tag("e1/mart.totals/0", version, metadata)


def diff(*rows: tuple[int, str, int, int]) -> pa.Table:
    names = ["id", "name", OLD_COUNT, NEW_COUNT]
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(names, map(list, columns), strict=True)))
