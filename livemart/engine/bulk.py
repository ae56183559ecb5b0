"""Bulk landing: Spark parses and writes what is too much for the driver, to the same rows.

Workers call the very parser of small batches. Records are staged once as Parquet; ties of one key
and sequence, which need the canonical row text, are settled by the code of small batches.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from livemart.engine.arrow_types import plain_schema, spark_schema
from livemart.engine.large_lane import LargeLane
from livemart.engine.ordering import Versions, decide
from livemart.engine.records.reader import RECORD, SIZE, Group, verdict
from livemart.engine.records.schema import (
    BATCH_ID,
    LANDED_AT,
    LANDING_FIELDS,
    ORIGIN,
    RESCUED,
)
from livemart.engine.records.worker import SPANS, ParseSpans
from livemart.engine.sources.files import Span, split_file
from livemart.engine.tables import NEW_COUNT, OLD_COUNT, Tag, Warehouse, to_view
from livemart.engine.upsert import MOVED_DETAIL, Stamp, deletes_relation
from livemart.project.graph import SourceTable, StreamSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# A key's later versions rewrite the file that holds it, so files are small.
ROWS_PER_FILE = 20_000
_SPAN_BYTES = 24 << 20
_TIES_AT_ONCE = 400_000
_KIND, _IS_DELETE, _RANK = "_kind", "_is_delete", "_rank"
_STORED, _REMEMBERED, _ARRIVED = 0, 1, 2
_LOSERS = pa.schema([pa.field(_KIND, pa.int32()), pa.field(ORIGIN, pa.string())])


@dataclass(frozen=True, slots=True)
class Taken:
    """How many records there are, how many a source takes and as deletes, and their newest time."""

    produced: int
    good: int
    deletes: int
    newest_event_time: datetime | None


def stage(
    spark: SparkSession, folder: Path, group: Group, files: Iterable[tuple[str, Path]]
) -> DataFrame:
    """Parse files in Spark's workers and return the judged records, kept as Parquet in `folder`.

    Args:
        spark: the session; its workers can import this package.
        folder: made anew; the caller removes it.
        group: columns and rules.
        files: name in `_origin` and place of each file.
    """
    shutil.rmtree(folder, ignore_errors=True)
    spans = [
        (name, str(path), span.start, span.end, span.first_line)
        for name, path in files
        for span in ([Span()] if group.format == "csv" else split_file(path, _SPAN_BYTES))
    ]
    tasks = spark.createDataFrame(spans, SPANS).repartition(max(1, len(spans)))
    parsed = tasks.mapInArrow(ParseSpans(group), spark_schema(group.judged))
    parsed.write.mode("overwrite").parquet(str(folder))
    return spark.read.parquet(str(folder))


class BulkLanding:
    """Lands the staged records of one source: dead letters, remembered deletes, rows."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        staged: DataFrame,
        source: SourceTable,
        position: int,
        stamp: Stamp,
        versions: Mapping[str, int],
    ) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._lane = LargeLane(spark, warehouse)
        self._source = source
        self._spec = _spec(source)
        self._stamp = stamp
        self._versions = versions
        self._code = _quote(verdict("code", position))
        self._detail = _quote(verdict("detail", position))
        self._staged = staged
        self._schema = warehouse.arrow_schema(source.relation)
        self._moved: DataFrame | None = None
        self._candidates: DataFrame | None = None

    def take(self) -> Taken:
        """Count the records; called first."""
        time = self._source.event_time
        if self._spec.event_time_is_fixed and time is not None:
            self._moved = self._find_moved(time)
        newest = f"max(timestamp({_quote(time)}))" if time else "cast(null as timestamp)"
        figures = ("count(*)", f"count_if({self._is_delete})", newest)
        if self._moved is None:
            arrived = f"filter (where {self._code} is null)"
            refused, good, deletes, moment = self._staged.selectExpr(
                f"count({self._code})",
                *(f"{each} {arrived}" for each in figures[:1]),
                f"count_if({self._code} is null and ({self._is_delete}))",
                f"{newest} {arrived}" if time else newest,
            ).collect()[0]
        else:
            (total,) = self._staged.selectExpr("count(*)").collect()[0]
            good, deletes, moment = self.arrived().selectExpr(*figures).collect()[0]
            refused = total - good
        # Spark hands out local wall-clock times of this process.
        instant = moment.astimezone(UTC) if moment is not None else None
        return Taken(refused + good, good, deletes, instant)

    @property
    def _is_delete(self) -> str:
        condition = self._spec.apply_as_deletes
        return f"coalesce(({condition}), false)" if condition else "false"

    def letters(self) -> DataFrame:
        """Return refused records in the schema of dead letters."""
        from pyspark.sql import functions as sql

        refused = self._staged.where(f"{self._code} is not null").select(
            sql.col(ORIGIN).alias("origin"),
            sql.expr(self._code).alias("code"),
            sql.expr(self._detail).alias("detail"),
            sql.col(RECORD).alias("record"),
            sql.col(SIZE).alias("record_bytes"),
        )
        if self._moved is not None:
            refused = refused.unionByName(self._moved_letters(self._moved))
        return refused.select(
            sql.lit(self._source.relation).alias("source"),
            "origin",
            "code",
            "detail",
            "record",
            "record_bytes",
            sql.lit(self._stamp.batch_id).cast("bigint").alias("batch_id"),
            sql.lit(self._stamp.landed_at).alias("landed_at"),
        )

    def arrived(self) -> DataFrame:
        """Return good records in the schema of the landed table."""
        from pyspark.sql import functions as sql

        staged = set(self._staged.columns)
        known = {
            LANDED_AT: sql.lit(self._stamp.landed_at),
            BATCH_ID: sql.lit(self._stamp.batch_id).cast("bigint"),
        }
        # Columns that drift brought with these very records are still among the rescued fields.
        adopted = [name for name in self._schema.names if name not in {*staged, *known}]
        for name in adopted:
            known[name] = sql.element_at(RESCUED, sql.lit(name))
        if adopted:
            left = sql.map_filter(RESCUED, lambda name, _: ~name.isin(adopted))
            known[RESCUED] = sql.when(sql.size(left) > 0, left)
        good = self._staged.where(f"{self._code} is null").select(
            *(
                known[name].alias(name) if name in known else sql.col(_quote(name))
                for name in self._schema.names
            )
        )
        if self._moved is None:
            return good
        return good.join(sql.broadcast(self._moved.select(ORIGIN)), [ORIGIN], "left_anti").select(
            *map(_quote, self._schema.names)
        )

    def deletes(self) -> pa.Table:
        """Return the change set of remembered deletes, for a source whose records hold some."""
        from pyspark.sql import functions as sql

        relation = deletes_relation(self._source)
        names = self._warehouse.arrow_schema(relation).names
        keys = list(self._spec.keys)
        versions = self._versions_of_keys()
        concerned = versions.where(f"{_IS_DELETE} and {_KIND} = {_ARRIVED}").select(*keys)
        winners = self._winners(
            versions.join(sql.broadcast(concerned.distinct()), keys, "left_semi")
        )
        deleting = winners.where(f"{_IS_DELETE} and {_KIND} = {_ARRIVED}")
        changed = deleting.select(*map(_quote, names), *_counts(0, 1))
        if self._has_rows(relation):
            replaced = self._table(relation).join(deleting.select(*keys), keys, "left_semi")
            changed = changed.unionByName(replaced.select(*map(_quote, names), *_counts(1, 0)))
        return plain_table(changed.toArrow())

    def land(self, rows: int, tag: Callable[[int | None], Tag]) -> int | None:
        """Commit the rows in one commit.

        Args:
            rows: about how many there are.
            tag: makes the tag, given the number of rows that are written if that is known before.

        Returns:
            How many rows the commit wrote.
        """
        from pyspark.sql import functions as sql

        relation, names = self._source.relation, self._schema.names
        if not self._spec.keys:
            self._lane.append(relation, self.arrived(), tag(rows))
            return rows
        keys = [sql.col(_quote(name)) for name in self._spec.keys]
        parts = max(1, -(-rows // ROWS_PER_FILE))
        versions = self._without_losers(self._versions_of_keys())
        winners = self._winners(versions.repartitionByRange(parts, *keys))
        winners = winners.where(f"{_KIND} = {_ARRIVED}")
        written = winners.where(f"not {_IS_DELETE}").select(*map(_quote, names))
        if not self._has_rows(relation):
            return self._lane.append(relation, written, tag(None)).rows_changed
        winners = winners.persist()
        try:
            old = self._table(relation).join(winners.select(*keys), [*self._spec.keys], "left_semi")
            diff = written.select("*", *_counts(0, 1)).unionByName(
                old.select(*map(_quote, names), *_counts(1, 0))
            )
            view = f"_landing_{uuid.uuid4().hex}"
            diff.createOrReplaceTempView(view)
            count = written.count()
            self._lane.commit(relation, view, tag(count), key=self._spec.keys)
        finally:
            winners.unpersist()
        return count

    def _versions_of_keys(self) -> DataFrame:
        """Return arrived, stored and remembered versions, marked with kind and `_is_delete`."""
        from pyspark.sql import functions as sql

        arrived = self.arrived().selectExpr(
            "*", f"{_ARRIVED} as {_KIND}", f"{self._is_delete} as {_IS_DELETE}"
        )
        keys = list(self._spec.keys)
        for relation, kind in (
            (self._source.relation, _STORED),
            (deletes_relation(self._source), _REMEMBERED),
        ):
            if self._has_rows(relation):
                known = self._table(relation).join(self.arrived().select(*keys), keys, "left_semi")
                marked = known.select(
                    "*",
                    sql.lit(kind).alias(_KIND),
                    sql.lit(kind == _REMEMBERED).alias(_IS_DELETE),
                )
                arrived = arrived.unionByName(marked, allowMissingColumns=True)
        return arrived

    def _winners(self, versions: DataFrame) -> DataFrame:
        """Return the newest version of each key; ties must be out."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        newest_first = [sql.col(_quote(name)).desc() for name in self._spec.sequence_by]
        order = [*newest_first, sql.col(_IS_DELETE).desc(), sql.col(_KIND), sql.col(ORIGIN)]
        window = Window.partitionBy(*map(_quote, self._spec.keys)).orderBy(*order)
        ranked = versions.withColumn(_RANK, sql.row_number().over(window))
        return ranked.where(f"{_RANK} = 1").drop(_RANK)

    def _without_losers(self, versions: DataFrame) -> DataFrame:
        """Leave out rows that lose against another of the same key and sequence."""
        from pyspark.sql import functions as sql

        losers = self._losers(versions)
        if not losers.num_rows:
            return versions
        view = f"_losers_{uuid.uuid4().hex}"
        to_view(self._spark, view, losers)
        return versions.join(sql.broadcast(self._spark.table(view)), [_KIND, ORIGIN], "left_anti")

    def _losers(self, versions: DataFrame) -> pa.Table:
        """Return kind and origin of the rows that lose a tie, settled as small batches do it."""
        from pyspark.sql import functions as sql

        names = [*dict.fromkeys([*self._spec.keys, *self._spec.sequence_by])]
        tied = versions.groupBy(*map(_quote, names)).count().where("count > 1").persist()
        try:
            shares = -(-tied.count() // _TIES_AT_ONCE)
            share = sql.pmod(sql.xxhash64(*map(_quote, self._spec.keys)), sql.lit(max(1, shares)))
            losers = [_LOSERS.empty_table()]
            for number in range(shares):
                keys = sql.broadcast(tied.where(share == number).select(*map(_quote, names)))
                rows = plain_table(versions.join(keys, names, "left_semi").toArrow())
                losers.append(self._settle(rows))
        finally:
            tied.unpersist()
        return pa.concat_tables(losers).combine_chunks()

    def _settle(self, rows: pa.Table) -> pa.Table:
        kinds = rows.column(_KIND).to_numpy()
        parts = [rows.filter(pa.array(kinds == kind)) for kind in range(3)]
        landing = {field.name for field in LANDING_FIELDS} - {RESCUED}
        arrived = parts[_ARRIVED]
        # Every sequence is a contest of its own here, so it counts among the keys.
        keys = tuple(dict.fromkeys([*self._spec.keys, *self._spec.sequence_by]))
        outcome = decide(
            Versions(
                keys,
                self._spec.sequence_by,
                tuple(name for name in self._schema.names if name not in landing),
                parts[_STORED],
                parts[_REMEMBERED],
                arrived,
                arrived.column(_IS_DELETE).to_numpy(zero_copy_only=False).astype(bool),
            )
        )
        is_loser = np.ones(arrived.num_rows, dtype=bool)
        is_loser[outcome.written] = is_loser[outcome.deleting] = False
        # A beaten row that is stored loses to an arrived one by its kind's place in the order.
        beaten = parts[_STORED].take(pa.array(outcome.removed))
        return pa.concat_tables(
            [
                arrived.filter(pa.array(is_loser)).select(_LOSERS.names).cast(_LOSERS),
                beaten.select(_LOSERS.names).cast(_LOSERS),
            ]
        )

    def _find_moved(self, time: str) -> DataFrame:
        """Return arrived rows that give their key another event time than it has.

        As in small batches: the stored time, or the earliest one of the lowest sequence, none last.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        sequence = [sql.col(_quote(name)) for name in self._spec.sequence_by]
        order = [sql.col(_KIND), *sequence, sql.col(_quote(time)).asc_nulls_last()]
        window = Window.partitionBy(*map(_quote, self._spec.keys)).orderBy(*order)
        rows = self._versions_of_keys().where(f"not {_IS_DELETE}")
        first = rows.withColumn(_RANK, sql.first(sql.col(_quote(time))).over(window))
        moved = first.where(f"{_KIND} = {_ARRIVED} and not ({_RANK} <=> {_quote(time)})")
        return moved.select(*map(_quote, self._schema.names)).persist()

    def _moved_letters(self, moved: DataFrame) -> DataFrame:
        from pyspark.sql import functions as sql

        landing = {field.name for field in LANDING_FIELDS}
        fields = [_quote(name) for name in self._schema.names if name not in landing]
        text = sql.to_json(sql.struct(*fields))
        return moved.select(
            sql.col(ORIGIN).alias("origin"),
            sql.lit("EVENT_TIME_MOVED").alias("code"),
            sql.lit(MOVED_DETAIL.format(self._source.event_time)).alias("detail"),
            text.alias("record"),
            sql.octet_length(text).cast("bigint").alias("record_bytes"),
        )

    def _table(self, relation: str) -> DataFrame:
        """Return a table as it was before the batch, with the columns that were added since."""
        from pyspark.sql import functions as sql

        path = str(self._warehouse.path(relation))
        reader = self._spark.read.format("delta")
        rows = reader.option("versionAsOf", self._versions[relation]).load(path)
        for field in spark_schema(self._warehouse.arrow_schema(relation)):
            if field.name not in rows.columns:
                rows = rows.withColumn(field.name, sql.lit(None).cast(field.dataType))
        return rows

    def _has_rows(self, relation: str) -> bool:
        return self._warehouse.row_count(relation, self._versions[relation]) > 0


def plain_table(table: pa.Table) -> pa.Table:
    """Return what Spark hands over with the types that tables have, one chunk a column."""
    return table.cast(plain_schema(table.schema)).combine_chunks()


def _counts(old: int, new: int) -> list[Column]:
    from pyspark.sql import functions as sql

    return [
        sql.lit(old).cast("bigint").alias(OLD_COUNT),
        sql.lit(new).cast("bigint").alias(NEW_COUNT),
    ]


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _spec(source: SourceTable) -> StreamSpec:
    assert source.stream is not None, source.unique_id
    return source.stream
