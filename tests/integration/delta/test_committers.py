"""Both lanes under one contract, read back by Spark and by deltalake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, net_rows
from livemart.arrow.types import plain_schema
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit, Warehouse
from livemart.errors import RefreshError
from livemart.spark.arrow_views import to_view
from livemart.spark.large_lane import LargeLane
from tests.bag_histories import (
    SCHEMA,
    Row,
    Step,
    bag_of,
    difference,
    keyed_history,
    keyless_history,
    weights_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RELATION = "mart.totals"
SMALL = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Lane(Protocol):
    """One way to commit, the same for both lanes."""

    warehouse: Warehouse

    def commit(self, diff: pa.Table, tag: Tag, key: Sequence[str] = ()) -> Commit: ...

    def overwrite(self, rows: pa.Table, tag: Tag) -> Commit: ...


class SmallLane:
    def __init__(self, spark: SparkSession, warehouse: Warehouse) -> None:
        self.warehouse = warehouse

    def commit(self, diff: pa.Table, tag: Tag, key: Sequence[str] = ()) -> Commit:
        return self.warehouse.commit(RELATION, diff, tag, key=key)

    def overwrite(self, rows: pa.Table, tag: Tag) -> Commit:
        return self.warehouse.overwrite(RELATION, rows, tag)


class SparkLane:
    def __init__(self, spark: SparkSession, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._spark = spark
        self._lane = LargeLane(spark, warehouse)

    def commit(self, diff: pa.Table, tag: Tag, key: Sequence[str] = ()) -> Commit:
        to_view(self._spark, "diff", diff)
        return self._lane.commit(RELATION, "diff", tag, key=key)

    def overwrite(self, rows: pa.Table, tag: Tag) -> Commit:
        to_view(self._spark, "all_rows", rows)
        return self._lane.overwrite(RELATION, "select * from all_rows", tag)


class BothLanes:
    """The small and the large lane in turn, on one table."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self._lanes: list[Lane] = [SmallLane(spark, warehouse), SparkLane(spark, warehouse)]

    def commit(self, diff: pa.Table, tag: Tag, key: Sequence[str] = ()) -> Commit:
        return self._as_in_a_batch(lambda lane: lane.commit(diff, tag, key), tag)

    def overwrite(self, rows: pa.Table, tag: Tag) -> Commit:
        return self._as_in_a_batch(lambda lane: lane.overwrite(rows, tag), tag)

    def _as_in_a_batch(self, write: Callable[[Lane], Commit], tag: Tag) -> Commit:
        with self.warehouse.only_writer():
            if self.warehouse.exists(RELATION):
                self.warehouse.version(RELATION)
            commit = write(self._lanes[tag.version % 2])
            newest = DeltaTable(str(self.warehouse.path(RELATION))).version()
            assert (commit.version, self.warehouse.version(RELATION)) == (newest, newest)
        return commit


@pytest.fixture(params=[SmallLane, SparkLane, BothLanes])
def lane(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Lane:
    make: Callable[[SparkSession, Warehouse], Lane] = request.param
    return make(spark, Warehouse(tmp_path))


# In the gate both lanes in turn on one table: what one of them writes the other one reads.
IN_TURN = pytest.mark.parametrize(
    "lane",
    [
        BothLanes,
        pytest.param(SmallLane, marks=pytest.mark.extended),
        pytest.param(SparkLane, marks=pytest.mark.extended),
    ],
    indirect=True,
)


@IN_TURN
@pytest.mark.parametrize(
    ("seed", "partition_by"),
    [
        (2, ("region", "at")),
        pytest.param(0, (), marks=pytest.mark.nightly),
        pytest.param(1, ("day",), marks=pytest.mark.nightly),
        pytest.param(3, ("amount",), marks=pytest.mark.nightly),
    ],
)
def test_a_history_without_key(
    lane: Lane, spark: SparkSession, seed: int, partition_by: tuple[str, ...]
) -> None:
    lane.warehouse.create(RELATION, SCHEMA, partition_by=partition_by)

    play(lane, spark, list(keyless_history(seed, 4)), key=())


@IN_TURN
@pytest.mark.parametrize(
    ("seed", "key"),
    [
        (3, ("ratio", "extra")),
        pytest.param(1, ("name", "day"), marks=pytest.mark.nightly),
        pytest.param(0, ("big",), marks=pytest.mark.nightly),
        pytest.param(2, ("at",), marks=pytest.mark.nightly),
    ],
)
def test_a_history_with_a_key(
    lane: Lane, spark: SparkSession, seed: int, key: tuple[str, ...]
) -> None:
    lane.warehouse.create(RELATION, SCHEMA, partition_by=("day",))

    play(lane, spark, list(keyed_history(seed, 4, key)), key=key)


def play(lane: Lane, spark: SparkSession, steps: list[Step], key: tuple[str, ...]) -> None:
    """Commit each step twice; then every reader must find the rows, and the feed the change."""
    bags: list[Counter[Row]] = [Counter()]
    for batch, step in enumerate(steps):
        first = lane.commit(step.diff, tag(batch), key)
        again = lane.commit(step.diff, tag(batch), key)
        bags.append(step.bag)

        assert (first.skipped, first.rows_changed) == (False, step.diff.num_rows)
        assert (again.skipped, again.version) == (True, first.version)
        assert lane.warehouse.version(RELATION) == len(bags) - 1

    path = str(lane.warehouse.path(RELATION))
    cold = Warehouse(lane.warehouse.root)
    last = len(bags) - 1
    assert bag_of(spark_rows(spark, f"delta.`{path}`")) == bags[-1]
    assert bag_of(cold.read(RELATION)) == bags[-1]
    scanned = pa.table(DeltaTable(path).scan(columns=SCHEMA.names))
    assert bag_of(scanned.cast(SCHEMA)) == bags[-1]
    for start, end in [(0, last), (last - 1, last), (1, 2)]:
        expected = difference(bags[start], bags[end])
        assert weights_of(lane.warehouse.changes(RELATION, start, end)) == expected
        assert weights_of(cold.changes(RELATION, start, end)) == expected
        assert weights_of(changes_of_spark(spark, path, start, end)) == expected


def test_overwrite_replaces_all_rows_and_its_feed_is_the_difference(
    lane: Lane, spark: SparkSession
) -> None:
    first = pa.table({"id": [1, 2, None], "name": ["a", "b", None]}, schema=SMALL)
    second = pa.table({"id": [2, 3], "name": ["b", "c"]}, schema=SMALL)
    before = lane.overwrite(first, tag(1)).version

    after = lane.overwrite(second, tag(2))
    again = lane.overwrite(first, tag(2))

    expected = {(1, "a"): -1, (None, None): -1, (3, "c"): 1}
    assert again.skipped and again.version == after.version
    assert bag_of(spark_rows(spark, f"delta.`{lane.warehouse.path(RELATION)}`")) == bag_of(second)
    assert weights_of(lane.warehouse.changes(RELATION, before, after.version)) == expected


def test_a_change_set_without_change_commits_nothing(lane: Lane) -> None:
    lane.warehouse.create(RELATION, SMALL)

    commit = lane.commit(diff((1, "a", 2, 2)), tag(1))

    assert (commit.version, commit.rows_changed) == (0, 0)


def test_the_tag_is_in_the_history_that_spark_shows(lane: Lane, spark: SparkSession) -> None:
    lane.warehouse.create(RELATION, SMALL)

    version = lane.commit(diff((1, "a", 0, 1)), tag(4, batch="4")).version

    path = lane.warehouse.path(RELATION)
    history = spark.sql(f"describe history delta.`{path}`").where(f"version = {version}")
    assert [row.userMetadata for row in history.collect()] == ['{"batch": "4"}']
    assert lane.warehouse.metadata_of(RELATION, version) == {"batch": "4"}
    assert lane.warehouse.is_tagged(RELATION, tag(4))
    (entry,) = lane.warehouse.data_changed_between(RELATION, 0, version)
    assert entry is not None and dict(entry.transactions) == {tag(4).app_id: 4}


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": ["x"], "name": ["a"]}),
        pa.table({"id": [1.5], "name": ["a"]}),
        pa.table({"id": [1]}),
        pa.table({"id": [1], "name": ["a"], "more": [1]}),
    ],
)
def test_rows_that_do_not_fit_are_refused_not_nulled(lane: Lane, rows: pa.Table) -> None:
    lane.warehouse.create(RELATION, SMALL)
    change = rows.append_column(OLD_COUNT, pa.array([0])).append_column(NEW_COUNT, pa.array([1]))

    with pytest.raises(RefreshError, match="SCHEMA_MISMATCH"):
        lane.commit(change, tag(1))

    assert lane.warehouse.version(RELATION) == 0


def test_spark_leaves_no_tag_behind(spark: SparkSession, tmp_path: Path) -> None:
    lane = SparkLane(spark, Warehouse(tmp_path))
    lane.warehouse.create(RELATION, SMALL)
    lane.commit(diff((1, "a", 0, 1)), tag(1))

    spark.sql(f"insert into delta.`{lane.warehouse.path(RELATION)}` values (2, 'b')")

    assert lane.warehouse.row_count(RELATION) == 2


def test_spark_goes_on_where_the_small_lane_stopped(spark: SparkSession, tmp_path: Path) -> None:
    """Checkpoints, log entries and statistics of the small lane are Spark's to read."""
    warehouse = Warehouse(tmp_path)
    warehouse.create(RELATION, SMALL)
    for batch in range(25):
        warehouse.commit(RELATION, diff((batch, "a", 0, 1)), tag(batch))
    path = warehouse.path(RELATION)

    spark.sql(f"delete from delta.`{path}` where id < 5")
    spark.sql(f"optimize delta.`{path}`")
    warehouse.commit(RELATION, diff((7, "a", 1, 0)), tag(25), key=["id"])

    found = spark.sql(f"select min(id), max(id), count(*) from delta.`{path}`").collect()
    assert [tuple(row) for row in found] == [(5, 24, 19)]
    assert warehouse.row_count(RELATION) == 19


def test_rows_after_an_empty_record_batch_reach_spark(spark: SparkSession) -> None:
    """PySpark 4.2.0 loses them in silence if the table comes as it is."""
    batch = pa.record_batch({"id": [1, 2, 3]})
    gaps = pa.Table.from_batches([batch, batch.slice(0, 0), batch, batch])

    to_view(spark, "gaps", gaps)

    assert spark.table("gaps").count() == 9
    if spark.version == "4.2.0":  # when this fails, the reason for combine_chunks is gone
        assert spark.createDataFrame(gaps).count() == 3


@pytest.mark.parametrize("rows", [0, 1, 30_000])
def test_views_keep_types_and_values(spark: SparkSession, rows: int) -> None:
    (step,) = keyed_history(7, 1, ("big", "small"))
    table = step.diff.select(SCHEMA.names)
    table = pa.concat_tables([table] * (rows // table.num_rows + 1)).slice(0, rows)
    wide = table.set_column(0, "name", table.column("name").cast(pa.large_string()))

    to_view(spark, "typed", wide)

    types = {field.name: field.dataType.simpleString() for field in spark.table("typed").schema}
    assert types["at"] == "timestamp" and types["local_at"] == "timestamp_ntz"
    assert types["extra"] == "map<string,int>" and types["amount"] == "decimal(38,18)"
    assert bag_of(spark_rows(spark, "typed")) == bag_of(table)


def spark_rows(spark: SparkSession, relation: str) -> pa.Table:
    table = spark.sql(f"select * from {relation}").toArrow()
    return table.cast(plain_schema(table.schema))


def changes_of_spark(spark: SparkSession, path: str, start: int, end: int) -> pa.Table:
    """Return the net change between two versions as Spark reads it in the table's change feed."""
    feed = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", start + 1)
        .option("endingVersion", end)
        .load(path)
    )
    feed.createOrReplaceTempView("feed")
    is_new = "_change_type in ('insert', 'update_postimage')"
    rows = spark_rows(spark, f"(select *, if({is_new}, 1L, -1L) as _one from feed)")
    return net_rows(rows.select(SCHEMA.names), rows.column("_one"))


def tag(version: int, **metadata: str) -> Tag:
    return Tag("e1/mart.totals/0", version, metadata)


def diff(*rows: tuple[int, str, int, int]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    names = ["id", "name", OLD_COUNT, NEW_COUNT]
    return pa.table(dict(zip(names, map(list, columns), strict=True)))
