"""Runs the upsert over ranges of keys in Spark's workers.

Used by bulk loads of sources with keys. Each partition of Spark holds all versions of its keys:
stored, remembered as deleted, and arrived; a worker decides it as the driver decides a small batch.
Ranges, not hashes, so that a file of the table holds neighbours and later look-ups open few files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.types import plain_schema
from livemart.land.records.origin import in_arrival_order
from livemart.land.records.worker import require_staged, stage_tables
from livemart.land.upsert.upsert import Upsert
from livemart.project.landing_columns import ORIGIN
from livemart.spark_sql import quoted
from livemart.storage.location import Location, StoragePlace
from livemart.storage.scratch import empty_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A key's later versions rewrite the file that holds it, so files are small.
ROWS_PER_RANGE = 20_000
KIND, IS_DELETE, ACTION = "_kind", "_is_delete", "_action"
STORED, REMEMBERED, ARRIVED = 0, 1, 2
WRITTEN, DELETING, REMOVED = "written", "deleting", "removed"
FORGOTTEN, REFUSED = "forgotten", "refused"
_OPEN_COST = "spark.sql.files.openCostInBytes"
STAGED_RANGES = "action string, records bigint"


@dataclass(frozen=True, slots=True)
class DecideRange:
    """Turns the versions of a range of keys into the rows that change, each with its `ACTION`.

    `columns`: of what it gets, which Spark hands over by number; `names`: of the landed table.
    """

    upsert: Upsert
    columns: tuple[str, ...]
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = list(batches)
        if not pieces:
            return
        versions = pa.Table.from_batches(pieces).rename_columns(list(self.columns))
        versions = versions.cast(plain_schema(versions.schema)).combine_chunks()
        kinds = versions.column(KIND).to_numpy()
        rows = versions.select(self.names)
        stored, remembered, arrived = (
            rows.filter(pa.array(kinds == kind)) for kind in (STORED, REMEMBERED, ARRIVED)
        )
        order = in_arrival_order(arrived.column(ORIGIN))
        is_delete = pc.filter(versions.column(IS_DELETE), pa.array(kinds == ARRIVED))
        arrived = arrived.take(order)
        is_delete = is_delete.take(order).to_numpy(zero_copy_only=False).astype(bool)
        change = self.upsert.change(stored, remembered, arrived, is_delete)
        for action, changed in (
            (WRITTEN, change.written),
            (DELETING, change.deleting),
            (REMOVED, change.removed),
            (FORGOTTEN, change.forgotten),
            (REFUSED, arrived.filter(pa.array(change.is_refused))),
        ):
            if len(changed):
                actions = pa.repeat(pa.scalar(action), len(changed))
                yield from changed.append_column(ACTION, actions).to_batches()


@dataclass(frozen=True, slots=True)
class StageRanges:
    """Decides the ranges of a partition and writes the rows that change to a file of `folder`.

    The worker writes the file itself: its rows need not pass through the JVM. A partition that is
    tried twice has one file all the same. Gives rows of `STAGED_RANGES`.
    """

    decide: DecideRange
    folder: StoragePlace

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        pieces = list(self.decide(batches))
        if not pieces:
            return
        changed = pa.Table.from_batches(pieces)
        stage_tables(self.folder, context.partitionId(), changed.schema, [changed])
        counts = changed.group_by(ACTION).aggregate([(ACTION, "count")])
        yield from counts.rename_columns(["action", "records"]).to_batches()


@contextmanager
def a_partition_per_file(spark: SparkSession) -> Iterator[None]:
    """Let Spark read each file of decided ranges as a separate partition while the block runs.

    It would put small files together by their size, and rows of far keys into one file of a table.
    """
    cost = spark.conf.get("spark.sql.files.maxPartitionBytes")
    before = spark.conf.get(_OPEN_COST)
    spark.conf.set(_OPEN_COST, str(cost))
    try:
        yield
    finally:
        spark.conf.set(_OPEN_COST, str(before))


def decide_ranges(
    versions: DataFrame, upsert: Upsert, names: tuple[str, ...], rows: int, folder: StoragePlace
) -> tuple[DataFrame, Mapping[str, int]]:
    """Return the rows that change, with `ACTION`, and how many there are of each.

    Args:
        versions: columns `names`, `KIND` and `IS_DELETE` of all versions of the arrived keys.
        upsert: the rules of the source.
        names: columns of the landed table.
        rows: about how many rows there are.
        folder: where the rows are kept, created here; the caller removes it.

    Raises:
        ConfigError: EXECUTOR_UNFIT.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    empty_folder(folder)
    fields = [versions.schema[name] for name in names]
    schema = StructType([*fields, StructField(ACTION, StringType(), False)])
    ranges = max(1, -(-rows // ROWS_PER_RANGE))
    keys = [quoted(name) for name in upsert.rules.keys]
    by_range = versions.repartitionByRange(ranges, *keys)
    columns = tuple(by_range.columns)
    # PySpark takes `a.b` for a field of a struct there, and stumbles over a back-tick.
    numbered = by_range.toDF(*(f"c{place}" for place, _ in enumerate(columns)))
    stage = StageRanges(DecideRange(upsert, columns, names), folder)
    counts: Counter[str] = Counter()
    for row in numbered.mapInArrow(stage, STAGED_RANGES).collect():
        counts[row.action] += row.records
    require_staged(folder, counts.total())
    if not counts:
        # A folder of a bucket without any file does not exist.
        return versions.sparkSession.createDataFrame([], schema), counts
    read = versions.sparkSession.read.schema(schema)
    return read.parquet(Location.of(folder).spark_url), counts
