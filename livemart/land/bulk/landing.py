"""Lands deliveries that are too large for the driver by Spark, to the same rows.

Used by micro-batches over a limit of bytes. Workers call the very parser and the very upsert of
small batches; the records that they parse are staged once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.types import plain_table
from livemart.delta.tags import Tag
from livemart.land.bulk.key_ranges import (
    ACTION,
    ARRIVED,
    DELETING,
    FORGOTTEN,
    IS_DELETE,
    KIND,
    REFUSED,
    REMEMBERED,
    REMOVED,
    STORED,
    WRITTEN,
    a_partition_per_file,
    decide_ranges,
)
from livemart.land.letters.dead_letters import LETTERS, from_judged
from livemart.land.letters.held_letters import Letters
from livemart.land.letters.seen_drift import REFUSED_VALUE, WITHOUT_VALUE, Sightings
from livemart.land.reasons import LetterReason
from livemart.land.records.exact_values import PASSED_OVER
from livemart.land.records.judge import RECORD, SIZE, verdict
from livemart.land.records.worker import require_staged, stage_tables
from livemart.land.upsert.change import BatchSource
from livemart.land.upsert.deletes import deletes_relation, remember
from livemart.land.upsert.upsert import MOVED, Upsert, moved_detail
from livemart.project.landing_columns import BATCH_ID, LANDED_AT, ORIGIN, RESCUED
from livemart.spark.large_lane import LargeLane
from livemart.spark.types import spark_schema
from livemart.spark_sql import quoted
from livemart.state.counts import Counts
from livemart.state.drift import Drift
from livemart.storage.location import StoragePlace
from livemart.storage.scratch import empty_folder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

# More names than a message shows.
_MOST_NAMES = 1_000


class BulkLanding:
    """Lands the staged records of one source: dead letters, remembered deletes, rows.

    It answers as `SourceChange` does for a small batch.

    Args:
        of_source: its table has every column that the records bring.
        staged: judged records of the source's group.
        folder: for letters and what changes, until committed; the caller removes it.
    """

    def __init__(self, of_source: BatchSource, staged: DataFrame, folder: StoragePlace) -> None:
        position = of_source.position
        self._of_source = of_source
        self._folder = folder
        self._before = of_source.before
        self._lane = LargeLane(self._before.spark, self._before.warehouse)
        self._source = of_source.source
        self._rules = self._source.row_rules
        self._stamp = of_source.stamp
        self._code = quoted(verdict("code", position))
        self._is_refused = f"{self._code} <> '{PASSED_OVER}'"
        self._is_misfit = f"{self._code} = '{LetterReason.TYPE_MISMATCH}'"
        self._detail = quoted(verdict("detail", position))
        self._staged = staged
        self._schema = of_source.schema

    @cached_property
    def _looked_at(self) -> Row:
        """Return the facts that one look at all records finds."""
        time = self._source.event_time
        newest = f"timestamp({quoted(time)})" if time else "cast(null as timestamp)"
        is_good = f"{self._code} is null"
        # A delete may well hold no more than its key.
        is_live = f"{is_good} and not {self._is_delete}"
        counts = (f"count_if({quoted(name)} is not null and {is_live})" for name in self._filled)
        return self._staged.selectExpr(
            "count(*) as produced",
            f"count_if({is_good}) as good",
            f"count_if({self._is_refused}) as refused",
            f"max({newest}) filter (where {is_good}) as newest",
            f"count({RESCUED}) as rescued",
            f"count_if({self._is_misfit}) as misfits",
            f"count_if({is_live}) as live",
            f"array({', '.join(counts)}) as filled",
        ).collect()[0]

    @cached_property
    def drift(self) -> Drift:
        look = self._looked_at
        # Fields that became columns with these very records are still among the rescued ones.
        fields = self._distinct(f"explode(map_keys({RESCUED}))") if look.rescued else []
        shapes = f"regexp_replace({self._detail}, '{REFUSED_VALUE}', '$1{WITHOUT_VALUE}')"
        return self._of_source.drift(
            Sightings(
                [field for field in fields if field not in self._schema.names],
                self._distinct(shapes, self._is_misfit) if look.misfits else [],
                look.live,
                dict(zip(self._filled, look.filled, strict=True)),
            )
        )

    @cached_property
    def _filled(self) -> list[str]:
        """Columns whose values are counted: of no others could one say that they are missing."""
        names = [column.name for column in self._source.columns]
        before = self._of_source.files_before
        return [name for name in names if before.null_share(name) is not None]

    def _distinct(self, expression: str, condition: str = "true") -> list[str]:
        """Return values of an expression, each once, the first of them in their order."""
        values = self._staged.where(condition).selectExpr(f"{expression} as value").distinct()
        return [row.value for row in values.orderBy("value").limit(_MOST_NAMES).collect()]

    @property
    def _is_delete(self) -> str:
        condition = self._rules.apply_as_deletes
        return f"coalesce(({condition}), false)" if condition else "false"

    @cached_property
    def _changed(self) -> tuple[DataFrame, Mapping[str, int]]:
        """The rows that change with their `ACTION`, and how many there are of each."""
        upsert, names = Upsert.of(self._source), tuple(self._schema.names)
        return decide_ranges(
            self._versions(), upsert, names, self._looked_at.good, self._folder / "changed"
        )

    @property
    def _actions(self) -> Mapping[str, int]:
        return self._changed[1]

    def _of(self, action: str) -> DataFrame:
        return self._changed[0].where(f"{ACTION} = '{action}'").drop(ACTION)

    @property
    def _refused(self) -> int:
        """How many records become dead letters."""
        refused: int = self._looked_at.refused
        return refused + (self._actions.get(REFUSED, 0) if self._rules.keys else 0)

    @cached_property
    def counts(self) -> Counts:
        produced, landed = self._looked_at.produced, self._looked_at.good
        if self._rules.keys:
            landed = self._actions.get(WRITTEN, 0) + self._actions.get(DELETING, 0)
        return Counts(produced, landed, produced - self._refused - landed, self._refused)

    @cached_property
    def newest_event_time(self) -> datetime | None:
        time = self._source.event_time
        if not self._has_moved or time is None:
            return _utc(self._looked_at.newest)
        accepted = self._arrived().join(self._moved(), [ORIGIN], "left_anti")
        return _utc(accepted.selectExpr(f"max(timestamp({quoted(time)}))").collect()[0][0])

    def _moved(self) -> DataFrame:
        """Return the origins of the records that move their key's time."""
        from pyspark.sql import functions as sql

        return sql.broadcast(self._of(REFUSED).select(ORIGIN))

    @property
    def _has_moved(self) -> bool:
        return bool(self._rules.keys and self._actions.get(REFUSED))

    @cached_property
    def deletes(self) -> pa.Table | None:
        """The change set of remembered deletes; None for a source whose records hold none."""
        if not self._rules.keys or not self._actions.get(DELETING):
            return None
        names = self._before.warehouse.arrow_schema(deletes_relation(self._source)).names
        return remember(
            *(
                plain_table(self._of(action).select(*map(quoted, names)).toArrow())
                for action in (DELETING, FORGOTTEN)
            )
        )

    @cached_property
    def letters(self) -> Letters:
        """Refused records, of which each worker makes letters in a file, as the driver does."""
        from pyspark import TaskContext
        from pyspark.sql import functions as sql

        position, source, stamp = self._of_source.position, self._source.relation, self._stamp
        code, detail = verdict("code", position), verdict("detail", position)
        folder = empty_folder(self._folder / "letters")
        if not self._refused:
            return Letters(folder)
        refused = self._staged.where(self._is_refused)
        if self._has_moved:
            why = {code: sql.lit(MOVED.value), detail: sql.lit(moved_detail(self._source))}
            records = self._staged.join(self._moved(), [ORIGIN], "left_semi").withColumns(why)
            refused = refused.unionByName(records)

        def stage_letters(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            assert context is not None
            tables = (pa.Table.from_batches([batch]) for batch in batches)
            letters = (from_judged(rows, position, source, stamp) for rows in tables)
            stage_tables(folder, context.partitionId(), LETTERS, letters)
            return iter(())

        columns = refused.select(ORIGIN, RECORD, SIZE, code, detail)
        columns.mapInArrow(stage_letters, spark_schema(LETTERS)).collect()
        require_staged(folder, self._refused)
        return Letters(folder)

    def _arrived(self) -> DataFrame:
        """Return good records in the schema of the landed table."""
        from pyspark.sql import functions as sql

        staged = set(self._staged.columns)
        columns = {
            LANDED_AT: sql.lit(self._stamp.landed_at),
            BATCH_ID: sql.lit(self._stamp.batch_id).cast("bigint"),
        }
        # Columns that drift brought with these very records are still among the rescued fields.
        adopted = [name for name in self._schema.names if name not in {*staged, *columns}]
        for name in adopted:
            columns[name] = sql.element_at(RESCUED, sql.lit(name))
        if adopted:
            left = sql.map_filter(RESCUED, lambda name, _: ~name.isin(adopted))
            columns[RESCUED] = sql.when(sql.size(left) > 0, left)
        return self._staged.where(f"{self._code} is null").select(
            *(
                columns[name].alias(name) if name in columns else sql.col(quoted(name))
                for name in self._schema.names
            )
        )

    def _versions(self) -> DataFrame:
        """Return every version of the arrived keys, with `KIND` and `IS_DELETE`."""
        from pyspark.sql import functions as sql

        keys = list(self._rules.keys)
        arrived = self._arrived()
        marks = (f"{ARRIVED} as {KIND}", f"{self._is_delete} as {IS_DELETE}")
        versions = arrived.selectExpr("*", *marks)
        for relation, kind in (
            (self._source.relation, STORED),
            (deletes_relation(self._source), REMEMBERED),
        ):
            if self._before.has_rows(relation):
                rows = self._before.frame(relation).join(
                    arrived.select(*map(quoted, keys)), keys, "left_semi"
                )
                marked = rows.select(
                    "*", sql.lit(kind).alias(KIND), sql.lit(kind == REMEMBERED).alias(IS_DELETE)
                )
                versions = versions.unionByName(marked, allowMissingColumns=True)
        return versions

    def commit(self, tag: Tag) -> None:
        """Commit the rows in one commit."""
        relation = self._source.relation
        if not self._rules.keys:
            self._lane.append(relation, self._arrived(), tag)
            return
        with a_partition_per_file(self._before.spark):
            if not self._before.has_rows(relation):
                self._lane.append(relation, self._of(WRITTEN), tag)
                return
            view = f"_landing_{uuid.uuid4().hex}"
            written = self._of(WRITTEN).select("*", *_counts(0, 1))
            diff = written.unionByName(self._of(REMOVED).select("*", *_counts(1, 0)))
            diff.createOrReplaceTempView(view)
            self._lane.commit(relation, view, tag, key=self._rules.keys)


def _utc(moment: datetime | None) -> datetime | None:
    # Spark hands out local wall-clock times of this process.
    return moment.astimezone(UTC) if moment is not None else None


def _counts(old: int, new: int) -> list[Column]:
    from pyspark.sql import functions as sql

    return [
        sql.lit(old).cast("bigint").alias(OLD_COUNT),
        sql.lit(new).cast("bigint").alias(NEW_COUNT),
    ]
