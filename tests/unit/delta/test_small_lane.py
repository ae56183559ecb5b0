"""Change sets that become one commit without Spark, on tables of deltalake."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, WEIGHT
from livemart.conflicts import TableChangedError
from livemart.delta.log import write_entry
from livemart.delta.open_tables import open_table
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.storage.storage import Storage
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
from tests.services.bucket import Buckets
from tests.storages import SURE_STORAGES, bucket_server, storage_in_bucket  # noqa: F401
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag

# Many on the disk, the first one in a bucket as well; the gate plays that one alone.
HISTORIES = [
    ("disk", 0),
    *(
        pytest.param("disk", seed, marks=pytest.mark.extended)
        for seed in range(1, 12 if IS_NIGHTLY else 2)
    ),
    pytest.param("bucket", 0, marks=pytest.mark.extended),
]


@pytest.fixture(params=SURE_STORAGES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | Storage:
    """Every test here runs over a disk and a bucket."""
    if request.param == "disk":
        return tmp_path
    return storage_in_bucket(request.getfixturevalue("bucket_server"))


@pytest.mark.parametrize("partition_by", [(), ("day",), ("region", "at"), ("big", "amount")])
@pytest.mark.parametrize(("place", "seed"), HISTORIES, indirect=["place"])
def test_a_history_without_key_leaves_the_bag_it_describes(
    warehouse: Warehouse, place: Path | Storage, seed: int, partition_by: tuple[str, ...]
) -> None:
    warehouse.create(RELATION, SCHEMA, partition_by=partition_by)
    bags: list[Counter[Row]] = [Counter()]

    for batch, step in enumerate(keyless_history(seed, 6)):
        warehouse.commit(RELATION, step.diff, tag(batch))
        bags.append(step.bag)

    assert_reads_alike(warehouse, place, bags)


@pytest.mark.parametrize("key", [("big",), ("name", "day"), ("ratio",), ("at", "extra")])
@pytest.mark.parametrize(("place", "seed"), HISTORIES, indirect=["place"])
def test_a_history_with_a_key_leaves_the_bag_it_describes(
    warehouse: Warehouse, place: Path | Storage, seed: int, key: tuple[str, ...]
) -> None:
    warehouse.create(RELATION, SCHEMA, partition_by=("day",))
    bags: list[Counter[Row]] = [Counter()]

    for batch, step in enumerate(keyed_history(seed, 6, key)):
        warehouse.commit(RELATION, step.diff, tag(batch), key=key)
        bags.append(step.bag)

    assert_reads_alike(warehouse, place, bags)


def assert_reads_alike(
    warehouse: Warehouse, place: Path | Storage, bags: list[Counter[Row]]
) -> None:
    """Every version, and every change between two, read warm, cold and by deltalake itself."""
    cold = Warehouse(place)
    assert warehouse.version(RELATION) == len(bags) - 1
    for version, bag in enumerate(bags):
        assert bag_of(warehouse.read(RELATION, version)) == bag
        assert cold.row_count(RELATION, version) == sum(bag.values())
    library = open_table(warehouse.storage(RELATION))
    names = SCHEMA.names
    assert bag_of(pa.table(library.scan(columns=names)).cast(SCHEMA)) == bags[-1]
    last = len(bags) - 1
    for start, end in [*pairwise(range(len(bags))), (0, last), (1, last - 1), (last, last)]:
        expected = difference(bags[start], bags[end])
        assert weights_of(warehouse.changes(RELATION, start, end)) == expected
        assert weights_of(cold.changes(RELATION, start, end)) == expected


def test_another_writer_in_between_is_an_error_that_asks_for_a_replay(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.create(RELATION, SMALL)
    table = open_table(warehouse.storage(RELATION))

    def commit_late(*args: Any, **options: Any) -> None:
        write_deltalake(table, pa.table({"id": [9], "name": ["x"]}), mode="append")
        write_entry(*args, **options)

    monkeypatch.setattr("livemart.delta.small_lane.write_entry", commit_late)
    with pytest.raises(TableChangedError, match="TABLE_CHANGED") as caught:
        warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))
    monkeypatch.undo()

    assert caught.value.is_retriable
    assert not warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1)).skipped
    assert warehouse.row_count(RELATION) == 2


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


def test_a_row_is_looked_for_where_all_its_columns_may_be(
    warehouse: Warehouse, place: Path | Storage
) -> None:
    """The key of text is within the bounds of both files, its number in those of one."""
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1), (1, "c", 0, 1)), tag(1))
    table = warehouse.storage(RELATION)
    (other,) = (it.name for it in table.entries() if it.name.endswith(".parquet"))
    warehouse.commit(RELATION, diff((2, "b", 0, 1)), tag(2))
    table.delete([other])

    Warehouse(place).commit(RELATION, diff((2, "b", 1, 0)), tag(3), key=("name",))

    assert warehouse.row_count(RELATION) == 2


def test_a_table_with_features_beyond_the_small_lane_is_refused(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    open_table(warehouse.storage(RELATION)).alter.add_constraint({"positive": "id > 0"})

    with pytest.raises(RefreshError, match="TABLE_NOT_WRITABLE"):
        warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))


def test_a_change_rewrites_only_files_that_hold_a_changed_row(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(4):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1), (100 - batch, "a", 0, 1)), tag(batch))
    before = set(open_table(warehouse.storage(RELATION)).file_uris())

    warehouse.commit(RELATION, diff((2, "a", 1, 0)), tag(9), key=["id"])

    after = set(open_table(warehouse.storage(RELATION)).file_uris())
    assert (len(before - after), len(after - before)) == (1, 1)


@pytest.mark.parametrize("place", ["disk"], indirect=True)
def test_appends_do_not_pile_up_small_files(warehouse: Warehouse, place: Path | Storage) -> None:
    warehouse.create(RELATION, SMALL)
    for batch in range(120):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1)), tag(batch))
    files = len(open_table(warehouse.storage(RELATION)).file_uris())
    cold = Warehouse(place)

    changes = cold.changes(RELATION, 15, 120)

    assert files <= 32
    assert cold.row_count(RELATION) == 120
    assert sorted(changes.column("id").to_pylist()) == list(range(15, 120))
    assert pc.all(pc.equal(changes.column(WEIGHT), 1)).as_py()


def test_a_large_file_of_which_little_is_read_is_cut_by_time_with_the_next_change(
    warehouse: Warehouse, place: Path | Storage
) -> None:
    numbers = np.random.default_rng(5).permutation(150_000)
    rows = pa.table([pa.array(numbers, pa.int64()), pa.repeat("a", len(numbers))], schema=SMALL)
    warehouse.create(RELATION, SMALL)
    write_deltalake(open_table(warehouse.storage(RELATION)), rows, mode="append")
    narrow = {"filter": pds.field("id") < 100, "columns": ["id"]}

    found = warehouse.read(RELATION, **narrow)
    warehouse.commit(RELATION, diff((-1, "b", 0, 1)), tag(1), key=["id"])

    files = open_table(warehouse.storage(RELATION)).file_uris(
        file_pruning_predicate="id >= 0 and id < 100"
    )
    assert (found.num_rows, warehouse.read(RELATION, **narrow).num_rows) == (100, 101)
    assert len(files) == 1
    assert warehouse.row_count(RELATION) == 150_001
    assert Warehouse(place).changes(RELATION, 1, 2).to_pylist() == [
        {"id": -1, "name": "b", WEIGHT: 1}
    ]


def test_of_equal_rows_the_identical_one_goes(warehouse: Warehouse) -> None:
    schema = pa.schema([("ratio", pa.float64())])
    warehouse.overwrite(
        RELATION, pa.table({"ratio": [0.0, -0.0, math.nan, None]}, schema=schema), tag(1)
    )
    change = pa.table({"ratio": [0.0, math.nan], OLD_COUNT: [1, 1], NEW_COUNT: [0, 0]})

    warehouse.commit(RELATION, change, tag(2))

    assert sorted(map(str, warehouse.read(RELATION)["ratio"].to_pylist())) == ["-0.0", "None"]


def test_a_row_goes_by_its_equal_key(warehouse: Warehouse) -> None:
    warehouse.overwrite(RELATION, pa.table({"ratio": [-0.0, 1.0], "n": [1, 2]}), tag(1))
    change = pa.table({"ratio": [0.0], "n": [1], OLD_COUNT: [1], NEW_COUNT: [0]})

    warehouse.commit(RELATION, change, tag(2), key=("ratio",))

    assert warehouse.read(RELATION)["n"].to_pylist() == [2]


def test_the_two_zeros_have_partitions_of_their_own(warehouse: Warehouse) -> None:
    schema = pa.schema([("ratio", pa.float64()), ("n", pa.int64())])
    warehouse.create(RELATION, schema, partition_by=("ratio",))
    rows = pa.table({"ratio": [0.0, -0.0], "n": [1, 2], OLD_COUNT: [0, 0], NEW_COUNT: [1, 1]})

    warehouse.commit(RELATION, rows, tag(2))

    stored = warehouse.read(RELATION).sort_by("n")
    assert list(map(str, stored["ratio"].to_pylist())) == ["0.0", "-0.0"]


def test_a_column_without_a_type_is_in_no_file_and_costs_no_table_its_difference(
    warehouse: Warehouse,
) -> None:
    """Spark 4.2 stores `null as v` with the type VOID, in the log alone."""

    def rows(ids: list[int], **counts: list[int]) -> pa.Table:
        columns = {"id": pa.array(ids, pa.int64()), "v": pa.nulls(len(ids)), "s": ["x"] * len(ids)}
        return pa.table(columns | counts)

    warehouse.overwrite(RELATION, rows([1, 2]), tag(1))
    warehouse.commit(RELATION, rows([1, 3], **{OLD_COUNT: [1, 0], NEW_COUNT: [0, 1]}), tag(2))

    assert warehouse.arrow_schema(RELATION).types == [pa.int64(), pa.null(), pa.string()]
    stored = warehouse.read(RELATION).sort_by("id")
    assert stored.to_pydict() == {"id": [2, 3], "v": [None, None], "s": ["x", "x"]}
    table = warehouse.storage(RELATION)
    files = [it.name for it in table.entries() if it.name.endswith(".parquet")]
    assert len(files) >= 3
    schemas = (pq.read_schema(file, filesystem=table.filesystem()) for file in files)
    assert all("v" not in schema.names for schema in schemas)
    assert set(warehouse.changes(RELATION, 1, 2).column("v").to_pylist()) == {None}


@pytest.mark.extended
@pytest.mark.parametrize("fault", ["lost", "throttled"])
def test_a_commit_that_a_bucket_answers_late_is_one_version(
    bucket_server: Buckets,  # noqa: F811
    fault: str,
) -> None:
    warehouse = Warehouse(storage_in_bucket(bucket_server))
    warehouse.create(RELATION, SMALL)
    for part in (".parquet", "_delta_log"):
        bucket_server.fail(fault, 2, part=part)

    warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))

    assert (warehouse.version(RELATION), warehouse.row_count(RELATION)) == (1, 1)
