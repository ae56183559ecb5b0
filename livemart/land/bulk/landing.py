"""Bulk landing: Spark lands what is too much for the driver, to the rows of small batches.

Workers call the very parser of small batches; the records they give are staged once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.types import plain_table
from livemart.delta.tags import Tag
from livemart.land.bulk.contest import ARRIVED, IS_DELETE, KIND, Contest, find_moved_by_spark
from livemart.land.commit_note import Stamp
from livemart.land.records.judge import RECORD, SIZE, verdict
from livemart.land.records.schema import BATCH_ID, LANDED_AT, ORIGIN, RESCUED
from livemart.land.upsert.deletes import deletes_relation
from livemart.land.upsert.event_time import MOVED, moved_detail
from livemart.project.graph import SourceTable
from livemart.spark.large_lane import LargeLane
from livemart.spark.tables_before import TablesBefore
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# A key's later versions rewrite the file that holds it, so files are small.
ROWS_PER_FILE = 20_000


@dataclass(frozen=True, slots=True)
class Taken:
    """How many records there are, how many a source takes and as deletes, and their newest time."""

    produced: int
    good: int
    deletes: int
    newest_event_time: datetime | None

    @property
    def refused(self) -> int:
        """How many records become dead letters."""
        return self.produced - self.good


class BulkLanding:
    """Lands the staged records of one source: dead letters, remembered deletes, rows.

    Args:
        before: the tables before the batch.
        staged: judged records of the source's group.
        source: a streaming source; its table has every column that the records bring.
        position: of the source in the group.
        stamp: batch id and arrival time.
    """

    def __init__(
        self,
        before: TablesBefore,
        staged: DataFrame,
        source: SourceTable,
        position: int,
        stamp: Stamp,
    ) -> None:
        self._before = before
        self._lane = LargeLane(before.spark, before.warehouse)
        self._source = source
        self._spec = source.arrival
        self._stamp = stamp
        self._code = quoted(verdict("code", position))
        self._detail = quoted(verdict("detail", position))
        self._staged = staged
        self._schema = before.warehouse.arrow_schema(source.relation)
        self._moved: DataFrame | None = None

    def take(self) -> Taken:
        """Count the records; called first."""
        time = self._source.event_time
        if self._spec.event_time_is_fixed and time is not None:
            moved = find_moved_by_spark(self._spec, time, self._contest().versions())
            self._moved = moved.select(ORIGIN).persist()
        newest = f"max(timestamp({quoted(time)}))" if time else "cast(null as timestamp)"
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

        refused = self._letters(
            self._staged.where(f"{self._code} is not null"),
            sql.expr(self._code),
            sql.expr(self._detail),
        )
        if self._moved is None:
            return refused
        records = self._staged.join(sql.broadcast(self._moved), [ORIGIN], "left_semi")
        detail = sql.lit(moved_detail(self._source))
        return refused.unionByName(self._letters(records, sql.lit(MOVED), detail))

    def _letters(self, records: DataFrame, code: Column, detail: Column) -> DataFrame:
        from pyspark.sql import functions as sql

        return records.select(
            sql.lit(self._source.relation).alias("source"),
            sql.col(ORIGIN).alias("origin"),
            code.alias("code"),
            detail.alias("detail"),
            sql.col(RECORD).alias("record"),
            sql.col(SIZE).alias("record_bytes"),
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
                known[name].alias(name) if name in known else sql.col(quoted(name))
                for name in self._schema.names
            )
        )
        if self._moved is None:
            return good
        return good.join(sql.broadcast(self._moved), [ORIGIN], "left_anti").select(
            *map(quoted, self._schema.names)
        )

    def _contest(self) -> Contest:
        return Contest(self._source, self._before, self._schema, self.arrived(), self._is_delete)

    def deletes(self) -> pa.Table:
        """Return the change set of remembered deletes, for a source whose records hold some."""
        from pyspark.sql import functions as sql

        relation = deletes_relation(self._source)
        names = self._before.warehouse.arrow_schema(relation).names
        keys = list(self._spec.keys)
        contest = self._contest()
        versions = contest.versions()
        concerned = versions.where(f"{IS_DELETE} and {KIND} = {ARRIVED}").select(*keys)
        winners = contest.winners(
            versions.join(sql.broadcast(concerned.distinct()), keys, "left_semi")
        )
        deleting = winners.where(f"{IS_DELETE} and {KIND} = {ARRIVED}")
        changed = deleting.select(*map(quoted, names), *_counts(0, 1))
        if self._before.has_rows(relation):
            replaced = self._before.frame(relation).join(deleting.select(*keys), keys, "left_semi")
            changed = changed.unionByName(replaced.select(*map(quoted, names), *_counts(1, 0)))
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
        keys = [sql.col(quoted(name)) for name in self._spec.keys]
        parts = max(1, -(-rows // ROWS_PER_FILE))
        contest = self._contest()
        versions = contest.without_losers(contest.versions())
        winners = contest.winners(versions.repartitionByRange(parts, *keys))
        winners = winners.where(f"{KIND} = {ARRIVED}")
        written = winners.where(f"not {IS_DELETE}").select(*map(quoted, names))
        if not self._before.has_rows(relation):
            return self._lane.append(relation, written, tag(None)).rows_changed
        winners = winners.persist()
        try:
            old = self._before.frame(relation)
            old = old.join(winners.select(*keys), [*self._spec.keys], "left_semi")
            diff = written.select("*", *_counts(0, 1)).unionByName(
                old.select(*map(quoted, names), *_counts(1, 0))
            )
            view = f"_landing_{uuid.uuid4().hex}"
            diff.createOrReplaceTempView(view)
            count = written.count()
            self._lane.commit(relation, view, tag(count), key=self._spec.keys)
        finally:
            winners.unpersist()
        return count


def _counts(old: int, new: int) -> list[Column]:
    from pyspark.sql import functions as sql

    return [
        sql.lit(old).cast("bigint").alias(OLD_COUNT),
        sql.lit(new).cast("bigint").alias(NEW_COUNT),
    ]
