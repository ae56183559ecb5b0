"""Runs the upsert over ranges of keys in Spark's workers.

Used by bulk loads of sources with keys. Each partition of Spark holds all versions of its keys:
stored, remembered as deleted, and arrived; a worker decides it as the driver decides a small batch.
Ranges, not hashes, so that a file of the table holds neighbours and later look-ups open few files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.types import plain_schema
from livemart.land.records.origin import in_arrival_order
from livemart.land.upsert.upsert import Upsert
from livemart.project.landing_columns import ORIGIN
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A key's later versions rewrite the file that holds it, so files are small.
ROWS_PER_RANGE = 20_000
KIND, IS_DELETE, ACTION = "_kind", "_is_delete", "_action"
STORED, REMEMBERED, ARRIVED = 0, 1, 2
WRITTEN, DELETING, REMOVED = "written", "deleting", "removed"
FORGOTTEN, REFUSED = "forgotten", "refused"


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
        is_moved, winners = self.upsert.change(stored, remembered, arrived, is_delete)
        for action, of_action, positions in (
            (WRITTEN, arrived, winners.written),
            (DELETING, arrived, winners.deleting),
            (REMOVED, stored, winners.removed),
            (FORGOTTEN, remembered, winners.forgotten),
            (REFUSED, arrived, np.flatnonzero(is_moved)),
        ):
            if len(positions):
                changed = of_action.take(pa.array(positions, pa.int64()))
                actions = pa.repeat(pa.scalar(action), len(positions))
                yield from changed.append_column(ACTION, actions).to_batches()


def decide_ranges(
    versions: DataFrame, upsert: Upsert, names: tuple[str, ...], rows: int
) -> DataFrame:
    """Return the rows that change, with `ACTION`, in as many partitions as ranges.

    Args:
        versions: columns `names`, `KIND` and `IS_DELETE` of all versions of the arrived keys.
        upsert: the rules of the source.
        names: columns of the landed table.
        rows: about how many rows there are.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    fields = [versions.schema[name] for name in names]
    schema = StructType([*fields, StructField(ACTION, StringType(), False)])
    ranges = max(1, -(-rows // ROWS_PER_RANGE))
    keys = [quoted(name) for name in upsert.spec.keys]
    by_range = versions.repartitionByRange(ranges, *keys)
    columns = tuple(by_range.columns)
    # PySpark takes `a.b` for a field of a struct there, and stumbles over a back-tick.
    numbered = by_range.toDF(*(f"c{place}" for place, _ in enumerate(columns)))
    return numbered.mapInArrow(DecideRange(upsert, columns, names), schema)
