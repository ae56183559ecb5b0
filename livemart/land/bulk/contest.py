"""Which version of each key wins, where the versions are more than the driver holds.

The order is that of `ordering`. Ties of one key and sequence, which need the canonical row text,
are settled by it, in shares that the driver holds. Of rows that are equal the first in file and
line order stands for all, as in small batches.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from livemart.arrow.types import plain_table
from livemart.land.records.schema import LANDING_FIELDS, ORIGIN, RESCUED
from livemart.land.upsert.deletes import deletes_relation
from livemart.land.upsert.winners import Versions, decide
from livemart.project.graph import SourceTable, StreamSpec
from livemart.spark.arrow_views import to_view
from livemart.spark.tables_before import TablesBefore
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KIND, IS_DELETE, RANK = "_kind", "_is_delete", "_rank"
STORED, REMEMBERED, ARRIVED = 0, 1, 2
_TIES_AT_ONCE = 400_000
_LOSERS = pa.schema([pa.field(KIND, pa.int32()), pa.field(ORIGIN, pa.string())])


class Contest:
    """All that is known of the keys of some records: stored, remembered as deleted, arrived.

    Args:
        source: a source with keys.
        before: the tables.
        columns: of the landed table.
        arrived: good records in these columns.
        is_delete: SQL condition on them, never NULL.
    """

    def __init__(
        self,
        source: SourceTable,
        before: TablesBefore,
        columns: pa.Schema,
        arrived: DataFrame,
        is_delete: str,
    ) -> None:
        self._source = source
        self._spec = source.arrival
        self._before = before
        self._columns = columns
        self._arrived = arrived
        self._is_delete = is_delete

    def versions(self) -> DataFrame:
        """Return every version in the columns of the landed table, with `KIND` and `IS_DELETE`."""
        from pyspark.sql import functions as sql

        keys = list(self._spec.keys)
        versions = self._arrived.selectExpr(
            "*", f"{ARRIVED} as {KIND}", f"{self._is_delete} as {IS_DELETE}"
        )
        for relation, kind in (
            (self._source.relation, STORED),
            (deletes_relation(self._source), REMEMBERED),
        ):
            if self._before.has_rows(relation):
                known = self._before.frame(relation)
                marked = known.join(self._arrived.select(*keys), keys, "left_semi").select(
                    "*",
                    sql.lit(kind).alias(KIND),
                    sql.lit(kind == REMEMBERED).alias(IS_DELETE),
                )
                versions = versions.unionByName(marked, allowMissingColumns=True)
        return versions

    def winners(self, versions: DataFrame) -> DataFrame:
        """Return the newest version of each key; of ties that are no deletes only one may be in."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        newest_first = [sql.col(quoted(name)).desc() for name in self._spec.sequence_by]
        order = [*newest_first, sql.col(IS_DELETE).desc(), sql.col(KIND), *_in_files()]
        window = Window.partitionBy(*map(quoted, self._spec.keys)).orderBy(*order)
        ranked = versions.withColumn(RANK, sql.row_number().over(window))
        return ranked.where(f"{RANK} = 1").drop(RANK)

    def without_losers(self, versions: DataFrame) -> DataFrame:
        """Leave out versions that lose against another of the same key and sequence."""
        from pyspark.sql import functions as sql

        losers = self._losers(versions)
        if not losers.num_rows:
            return versions
        view = f"_losers_{uuid.uuid4().hex}"
        spark = self._before.spark
        to_view(spark, view, losers)
        return versions.join(sql.broadcast(spark.table(view)), [KIND, ORIGIN], "left_anti")

    def _losers(self, versions: DataFrame) -> pa.Table:
        """Return kind and origin of the rows that lose a tie."""
        from pyspark.sql import functions as sql

        names = [*dict.fromkeys([*self._spec.keys, *self._spec.sequence_by])]
        tied = versions.groupBy(*map(quoted, names)).count().where("count > 1").persist()
        try:
            shares = -(-tied.count() // _TIES_AT_ONCE)
            share = sql.pmod(sql.xxhash64(*map(quoted, self._spec.keys)), sql.lit(max(1, shares)))
            losers = [_LOSERS.empty_table()]
            for number in range(shares):
                keys = sql.broadcast(tied.where(share == number).select(*map(quoted, names)))
                rows = plain_table(versions.join(keys, names, "left_semi").toArrow())
                losers.append(self._settle(rows))
        finally:
            tied.unpersist()
        return pa.concat_tables(losers).combine_chunks()

    def _settle(self, rows: pa.Table) -> pa.Table:
        kinds = rows.column(KIND).to_numpy()
        parts = [rows.filter(pa.array(kinds == kind)) for kind in range(3)]
        landing = {field.name for field in LANDING_FIELDS} - {RESCUED}
        arrived = _sorted_by_origin(parts[ARRIVED])
        # Every sequence is a contest of its own here, so it counts among the keys.
        keys = tuple(dict.fromkeys([*self._spec.keys, *self._spec.sequence_by]))
        outcome = decide(
            Versions(
                keys,
                self._spec.sequence_by,
                tuple(name for name in self._columns.names if name not in landing),
                parts[STORED],
                parts[REMEMBERED],
                arrived,
                arrived.column(IS_DELETE).to_numpy(zero_copy_only=False).astype(bool),
            )
        )
        is_loser = np.ones(arrived.num_rows, dtype=bool)
        is_loser[outcome.written] = is_loser[outcome.deleting] = False
        # A beaten row that is stored loses to an arrived one by its kind's place in the order.
        beaten = parts[STORED].take(pa.array(outcome.removed))
        return pa.concat_tables(
            [
                arrived.filter(pa.array(is_loser)).select(_LOSERS.names).cast(_LOSERS),
                beaten.select(_LOSERS.names).cast(_LOSERS),
            ]
        )


def _in_files() -> list[Column]:
    """Return what sorts rows by file and line: as text, line 10 would be before line 2."""
    from pyspark.sql import functions as sql

    line = f"substring_index({ORIGIN}, ':', -1)"
    return [
        sql.expr(f"substring({ORIGIN}, 1, length({ORIGIN}) - length({line}))"),
        sql.expr(f"try_cast({line} as bigint)"),
    ]


def _sorted_by_origin(rows: pa.Table) -> pa.Table:
    places = [origin.rpartition(":") for origin in rows.column(ORIGIN).to_pylist()]
    order = sorted(range(len(places)), key=lambda row: (places[row][0], int(places[row][2])))
    return rows.take(pa.array(order, pa.int64()))


def find_moved_by_spark(spec: StreamSpec, event_time: str, versions: DataFrame) -> DataFrame:
    """Return the arrived of `versions` (of `Contest`) that give their key another event time."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    time = sql.col(quoted(event_time))
    sequence = [sql.col(quoted(name)) for name in spec.sequence_by]
    order = [sql.col(KIND), *sequence, time.asc_nulls_last()]
    window = Window.partitionBy(*map(quoted, spec.keys)).orderBy(*order)
    rows = versions.where(f"not {IS_DELETE}")
    first = rows.withColumn(RANK, sql.first(time).over(window))
    return first.where(f"{KIND} = {ARRIVED} and not ({RANK} <=> {quoted(event_time)})").drop(RANK)
