"""The views one model's refresh reads: slices of stored tables under names of their own.

Small lane: a slice is read into Arrow and Spark sees it as a temporary view. Large lane: the view
is a query on the Delta table at its pinned version. The SQL above them is the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.delta.row_filter import EVERY_ROW, RowFilter
from livemart.delta.warehouse import Warehouse
from livemart.spark.arrow_views import ArrowViews, to_view_of
from livemart.spark.differences import row_of_literals
from livemart.spark.types import spark_schema
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A whole table up to this many rows is read into memory; a larger one is read by Spark.
SMALL_ROWS = 400_000
# A view of so many rows, made once, costs less than one of its own for every batch.
_FEW_ROWS = 5_000


class SharedViews:
    """Whole small tables as views that stay from one batch to the next, by version."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, int], pa.Table] = {}
        self._lock = threading.Lock()
        self._registered: set[tuple[SparkSession, str, int]] = set()
        # By fingerprint: whether the sums of an additive model are exact, asked of Spark once.
        self.exact: dict[str, bool] = {}

    def rows(self, warehouse: Warehouse, relation: str, version: int) -> pa.Table:
        """Return the rows of a whole table at a version, read at most once."""
        with self._lock:
            found = self._tables.get((relation, version))
            if found is None:
                found = self._tables[relation, version] = warehouse.read(relation, version)
            return found

    def register(self, spark: SparkSession, relation: str, version: int) -> None:
        """Give a session the view of a table that `rows` has returned."""
        with self._lock:
            if (spark, relation, version) not in self._registered:
                rows = self._tables[relation, version]
                to_view_of(spark, whole_name(relation, version), rows)
                self._registered.add((spark, relation, version))

    def keep(self, versions: dict[str, int]) -> None:
        """Drop the views of versions that no later batch reads."""
        with self._lock:
            for relation, version in list(self._tables):
                if versions.get(relation) != version:
                    del self._tables[relation, version]
            for spark, relation, version in list(self._registered):
                if (relation, version) not in self._tables:
                    spark.catalog.dropTempView(whole_name(relation, version))
                    self._registered.discard((spark, relation, version))


def whole_name(relation: str, version: int) -> str:
    """Return the name of the view of a whole table."""
    return f"__whole_{relation.replace('.', '__')}_{version}"


class BatchViews:
    """Views of one model in one batch; dropped together by `close`."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        prefix: str,
        shared: SharedViews,
        *,
        is_large: bool = False,
    ) -> None:
        self._warehouse = warehouse
        self._prefix = prefix
        self._shared = shared
        # The large lane: Spark reads stored tables itself.
        self.is_large = is_large
        self._slices = ArrowViews(spark)
        self._whole: dict[tuple[str, int], int] = {}
        # True once Spark reads a table itself: how many rows that is, nobody counts.
        self._reads_tables = False

    @property
    def shared(self) -> SharedViews:
        return self._shared

    def query(self, sql: str) -> pa.Table:
        """Return the rows of a statement over these views, planned for as many as they have."""
        spark = self._slices.session(None if self._reads_tables else sum(self._whole.values()))
        for relation, version in self._whole:
            self._shared.register(spark, relation, version)
        return spark.sql(sql).toArrow()

    def of_rows(self, label: str, rows: pa.Table) -> str:
        """Return the view of rows in memory."""
        return self._slices.add(f"{self._prefix}_{label}", rows)

    def padded(self, label: str, rows: pa.Table, schema: pa.Schema) -> str:
        """Return a view of rows whose unread columns were left out; they are NULL in it."""
        name = self.of_rows(label, rows)
        if len(rows.column_names) == len(schema.names):
            return name
        present = set(rows.column_names)
        fields = spark_schema(schema).fields
        selected = ", ".join(
            quoted(field.name)
            if field.name in present
            else f"cast(null as {field.dataType.simpleString()}) as {quoted(field.name)}"
            for field in fields
        )
        return f"(select {selected} from {name})"

    def whole(self, relation: str, version: int) -> str:
        """Return a name or subquery that reads a whole table at a version."""
        if not self.is_large and self._warehouse.row_count(relation, version) <= SMALL_ROWS:
            rows = self._shared.rows(self._warehouse, relation, version)
            # Spark folds such a row, the clock's above all, into the statement; it would run a job
            # for each place that asks a view for it.
            if (spelled_out := row_of_literals(rows)) is not None:
                return spelled_out
            self._whole[relation, version] = rows.num_rows
            return whole_name(relation, version)
        return self.stored(relation, version, EVERY_ROW)

    def matching(self, label: str, relation: str, version: int, rows: RowFilter) -> str:
        """Return a view of a table looked up by key: at least the rows that pass a filter.

        A small table is kept in memory from batch to batch and filtered there.
        """
        if self.is_large or rows.is_whole:
            return self.whole(relation, version)
        if self._warehouse.row_count(relation, version) > SMALL_ROWS:
            return self.slice(label, relation, version, rows)
        known = self._shared.rows(self._warehouse, relation, version)
        if known.num_rows <= _FEW_ROWS:
            return self.whole(relation, version)
        return self.of_rows(label, known.filter(rows.matches(known)).combine_chunks())

    def stored(self, relation: str, version: int, rows: RowFilter) -> str:
        """Return a subquery on the Delta table itself, pruned by literals."""
        self._reads_tables = True
        where = "" if rows.is_whole else f" where {rows.sql()}"
        return f"(select * from {self._warehouse.sql_at(relation, version)}{where})"

    def slice(
        self,
        label: str,
        relation: str,
        version: int,
        rows: RowFilter,
        columns: Iterable[str] | None = None,
    ) -> str:
        """Return the view of the rows that pass a filter."""
        if rows.is_whole:
            return self.whole(relation, version)
        if self.is_large:
            return self.stored(relation, version, rows.bounded())
        schema = self._warehouse.arrow_schema(relation, version)
        return self.padded(label, self.read(relation, version, rows, columns), schema)

    def read(
        self,
        relation: str,
        version: int,
        rows: RowFilter,
        columns: Iterable[str] | None = None,
    ) -> pa.Table:
        """Return the rows that pass a filter; only some columns, if fewer are enough."""
        names = None
        if columns is not None:
            wanted = {name.lower() for name in columns}
            schema = self._warehouse.arrow_schema(relation, version)
            names = [name for name in schema.names if name.lower() in wanted] or None
        return self._warehouse.read(relation, version, columns=names, filter=rows.expression())

    def close(self) -> None:
        self._slices.close()
        self._whole.clear()
        self._reads_tables = False
