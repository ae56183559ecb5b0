"""Commits change sets and whole tables by Spark: the large lane.

Used for change sets that do not fit a driver, and for tables that the small lane cannot write. The
contract is that of `delta/warehouse.py`, and one suite tests both: one commit a batch, skipped if
the table carries its tag.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.types import schema_mismatch
from livemart.conflicts import CONFLICTS, TableChangedError, speaks_of
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit, Warehouse
from livemart.errors import RefreshError
from livemart.project.declared.partition_columns import (
    BINARY_HINT,
    CODE,
    kept_time,
    lost_bytes,
    lost_time,
)
from livemart.spark.arrow_views import rows_of
from livemart.spark.differences import comparable, identity
from livemart.spark.types import spark_schema, type_text
from livemart.spark_sql import literal, quoted, stored_name, unquoted
from livemart.storage.fence import require_right_to_write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

_APP_ID = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_OPERATION = "__livemart_operation"
_COPY = "__livemart_copy"
# Spark's note on a column of sessions.
_SESSION = "spark.sessionWindow"


class LargeLane:
    """Reads and commits of Spark on the tables of a warehouse."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse) -> None:
        self._spark = spark
        self._warehouse = warehouse
        # The tag is a setting of the session: two writes at once would take each other's.
        self._lock = threading.Lock()

    def commit(
        self,
        relation: str,
        diff_view: str,
        tag: Tag,
        *,
        key: Sequence[str] = (),
    ) -> Commit:
        """Apply a change set in one Delta commit, at most once per tag.

        Args:
            relation: an existing table.
            diff_view: view with the table's columns plus `OLD_COUNT` and `NEW_COUNT` (bigint):
                one row for each distinct row whose multiplicity changes.
            tag: skipped if the table carries this version of the application id, or a higher one.
            key: columns unique in the table before and after; empty: a row is all its columns.

        Raises:
            RefreshError: TABLE_MISSING, SCHEMA_MISMATCH, or TABLE_CHANGED (retriable).
        """
        if self._warehouse.is_tagged(relation, tag):
            return Commit(self._warehouse.version(relation), skipped=True)
        schema = spark_schema(self._warehouse.arrow_schema(relation))
        checks = self._checks(relation, schema, diff_view)
        diff = self._spark.table(diff_view).where(f"{OLD_COUNT} <> {NEW_COUNT}").persist()
        try:
            rows, old_rows, misplaced, *lost = diff.selectExpr(
                "count(*)",
                f"count_if({OLD_COUNT} > 0)",
                self._misplaced(relation, schema),
                *(check for _, check in checks),
            ).collect()[0]
            for (name, _), count in zip(checks, lost, strict=True):
                if count:
                    raise schema_mismatch(
                        relation, f"column {name}: {count} values do not fit its type"
                    )
            if rows == 0:
                return Commit(self._warehouse.version(relation))
            if misplaced or (old_rows and any("`" in name for name in schema.names)):
                # Delta's MERGE cannot spell such a column of a change feed. And Spark would store
                # other times, of these rows and of those that stay in their files.
                return self._warehouse.commit(relation, rows_of(diff), tag, key=key)
            staged = f"_diff_{uuid.uuid4().hex}"
            diff.createOrReplaceTempView(staged)
            statement = self._statement(relation, staged, schema, key, has_old=old_rows > 0)
            with self._writing(relation, tag.counting(rows)):
                self._spark.sql(statement)
        finally:
            diff.unpersist()
        return Commit(self._warehouse.version(relation), rows)

    def append(self, relation: str, rows: DataFrame, tag: Tag) -> Commit:
        """Add rows (columns of the table, in its types) in one commit, in the files they are in."""
        if self._warehouse.is_tagged(relation, tag):
            return Commit(self._warehouse.version(relation), skipped=True)
        before = self._warehouse.row_count(relation)
        with self._writing(relation, tag):
            rows.write.format("delta").mode("append").save(
                self._warehouse.location(relation).spark_url
            )
        version = self._warehouse.version(relation)
        added = self._warehouse.row_count(relation, version) - before
        return Commit(version, added)

    def overwrite(
        self,
        relation: str,
        query_sql: str,
        tag: Tag,
        *,
        partition_by: Sequence[str] = (),
    ) -> Commit:
        """Make the table hold exactly a query's rows, in one commit; create it if it is missing.

        The table takes the schema of the query.

        Raises:
            RefreshError: PARTITION_VALUES_LOST; TABLE_CHANGED (retriable).
            PySparkException: a partition column holds a time that would be lost (`kept_time`).
        """
        exists = self._warehouse.exists(relation)
        if exists and self._warehouse.is_tagged(relation, tag):
            return Commit(self._warehouse.version(relation), skipped=True)
        from pyspark.sql.functions import expr

        query = with_plain_sessions(self._spark.sql(query_sql))
        if exists:
            partition_by = partition_by or self._warehouse.partition_columns(relation)
        types = dict(query.dtypes)
        for finding in lost_bytes(partition_by, types):
            raise RefreshError(CODE, f"{relation}: partition_by: {finding}", hint=BINARY_HINT)
        names = [unquoted(name) for name in partition_by]
        spelled = [stored_name(name, query.columns) or name for name in names]
        for name in spelled:
            if (checked := kept_time(name, types.get(name, ""), relation)) is not None:
                query = query.withColumn(name, expr(checked))
        writer = query.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        if partition_by:
            writer = writer.partitionBy(*spelled)
        with self._writing(relation, tag):
            writer.save(self._warehouse.location(relation).spark_url)
        version = self._warehouse.version(relation)
        return Commit(version, self._warehouse.row_count(relation, version))

    def _statement(
        self, relation: str, staged: str, schema: StructType, key: Sequence[str], *, has_old: bool
    ) -> str:
        """Return the one statement that applies the staged change set."""
        table = f"delta.{quoted(self._warehouse.location(relation).spark_url)}"
        columns = ", ".join(quoted(name) for name in schema.names)
        typed = ", ".join(
            f"cast({quoted(f.name)} as {type_text(f.dataType)}) as {quoted(f.name)}" for f in schema
        )
        copies = f"explode(sequence(1L, {NEW_COUNT})) as {_COPY}"
        if not has_old:
            return (
                f"insert into {table} ({columns}) select {columns} from "
                f"(select {typed}, {copies} from {staged} where {NEW_COUNT} > 0)"
            )
        looked_up = list(key) or schema.names
        conditions = [
            f"{mine} <=> {theirs}"
            for f in schema
            if f.name in looked_up
            for mine, theirs in zip(
                *(_compared(f"{side}.{quoted(f.name)}", f, is_key=bool(key)) for side in "ts"),
                strict=True,
            )
        ]
        conditions += self._bounds(staged, schema, looked_up)
        values = ", ".join(f"s.{quoted(name)}" for name in schema.names)
        return (
            f"merge into {table} t using ("
            f"select {typed}, 'D' as {_OPERATION} from {staged} where {OLD_COUNT} > 0 union all "
            f"select {columns}, 'I' as {_OPERATION} from "
            f"(select {typed}, {copies} from {staged} where {NEW_COUNT} > 0)) s "
            f"on s.{_OPERATION} = 'D' and {' and '.join(conditions)} "
            f"when matched then delete "
            f"when not matched and s.{_OPERATION} = 'I' then insert ({columns}) values ({values})"
        )

    def _bounds(self, staged: str, schema: StructType, looked_up: Sequence[str]) -> Iterator[str]:
        """Yield literal bounds of the rows to delete: only literals prune files."""
        kinds = {f.name: f.dataType.simpleString() for f in schema if f.name in looked_up}
        pruning = ("date", "timestamp", "int", "bigint", "string")
        bounded = {name: kind for name, kind in kinds.items() if kind in pruning}
        if not bounded:
            return
        texts = [
            f"cast(min({quoted(name)}) as string), cast(max({quoted(name)}) as string), "
            f"count_if({quoted(name)} is null) > 0"
            for name in bounded
        ]
        row = self._spark.sql(
            f"select {', '.join(texts)} from {staged} where {OLD_COUNT} > 0"
        ).collect()[0]
        for position, (name, kind) in enumerate(bounded.items()):
            low, high, has_null = row[3 * position : 3 * position + 3]
            column = f"t.{quoted(name)}"
            parts = [f"{column} is null"] if has_null else []
            if low is not None:
                parts.append(
                    f"({column} >= cast({literal(low)} as {kind}) "
                    f"and {column} <= cast({literal(high)} as {kind}))"
                )
            yield f"({' or '.join(parts)})"

    def _misplaced(self, relation: str, schema: StructType) -> str:
        """Return SQL that counts the rows in partitions whose times Spark stores as others."""
        kinds = {f.name: f.dataType.simpleString() for f in schema}
        columns = self._warehouse.partition_columns(relation)
        conditions = [it for name in columns if (it := lost_time(name, kinds[name])) is not None]
        return f"count_if({' or '.join(conditions) or 'false'})"

    def _checks(self, relation: str, schema: StructType, view: str) -> list[tuple[str, str]]:
        """Return SQL that counts lost values, for each column of another type than the table's."""
        types = {f.name: f.dataType for f in self._spark.table(view).schema}
        if set(types) - {OLD_COUNT, NEW_COUNT} != set(schema.names):
            raise schema_mismatch(
                relation, f"columns {sorted(types)}, the table has {schema.names}"
            )
        checks = []
        for f in schema:
            name, kind = quoted(f.name), f.dataType.simpleString()
            if not f.nullable:
                checks.append((f.name, f"count_if({name} is null and {NEW_COUNT} > 0)"))
            if types[f.name].simpleString() not in (kind, "void"):
                back = (
                    f"cast(cast({name} as {type_text(f.dataType)}) as {type_text(types[f.name])})"
                )
                checks.append((f.name, f"count_if(not ({back} <=> {name}))"))
        return checks

    @contextmanager
    def _writing(self, relation: str, tag: Tag) -> Iterator[None]:
        """Mark the Delta write inside; nothing outside may run meanwhile on this session.

        Raises:
            TableChangedError: TABLE_CHANGED, which lets the batch be replayed.
        """
        settings = {
            _APP_ID: tag.app_id,
            _VERSION: str(tag.version),
            _METADATA: json.dumps(dict(tag.metadata), sort_keys=True),
        }
        with self._lock:
            require_right_to_write(self._warehouse.place)
            self._warehouse.written_beside()
            try:
                for name, value in settings.items():
                    self._spark.conf.set(name, value)
                yield
            except Exception as error:
                if not speaks_of(error, CONFLICTS):
                    raise
                raise TableChangedError(
                    "TABLE_CHANGED",
                    f"{relation}: another writer committed during the batch",
                    hint="nothing to do: the batch is replayed",
                ) from error
            finally:
                for name in settings:
                    self._spark.conf.unset(name)
        self._warehouse.written_by_spark(relation)


def _compared(name: str, field: StructField, *, is_key: bool) -> list[str]:
    """Return SQL by which a row to delete is found: keys are equal, whole rows identical."""
    return [comparable(name, field.dataType)] if is_key else identity(name, field.dataType)


def with_plain_sessions(query: DataFrame) -> DataFrame:
    """Return a query whose sessions are pairs of times, without the note that they are sessions.

    By the note Spark merges sessions that meet in any group above, even in another model.
    """
    from pyspark.sql.functions import col

    for field in query.schema.fields:
        if _SESSION in (field.metadata or {}):
            plain = col(quoted(field.name)).cast(field.dataType.simpleString())
            query = query.withColumn(field.name, plain)
    return query
