"""Gives Spark the rows that one model's refresh reads, under separate names.

Used by every strategy. Small lane: a slice is read into Arrow and Spark sees it as a temporary
view. Large lane: the view is a query on the Delta table at its pinned version. The SQL above them
is the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa

from livemart.delta.row_filter import EVERY_ROW, RowFilter
from livemart.limits import FEW_LOOKUP_ROWS, ROWS_IN_MEMORY
from livemart.plan.sql.template import Template
from livemart.refresh.pinned_table import PinnedTable
from livemart.spark.arrow_views import ArrowViews, rows_of, to_view_of
from livemart.spark.differences import row_of_literals
from livemart.spark.types import spelled_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Statements of more models than a project has; with a literal of the clock they differ each batch.
_KNOWN_STATEMENTS = 1_000


@dataclass(frozen=True, slots=True)
class SparkView:
    """A relation that a statement reads: its name in Spark, and its name in every batch.

    `table`: of a whole table that is kept from batch to batch; `is_stored`: Spark reads it where it
    is stored.
    """

    name: str
    label: str
    is_stored: bool = False
    table: PinnedTable | None = None


Statement = Template[SparkView]


class SharedViews:
    """Whole small tables as views that stay from one batch to the next, by version.

    Also which statements over views have run before.
    """

    def __init__(self) -> None:
        self._statements: OrderedDict[int, None] = OrderedDict()
        self._rows: dict[PinnedTable, pa.Table] = {}
        self._lock = threading.Lock()
        self._registered: set[tuple[SparkSession, PinnedTable]] = set()

    def is_repeated(self, text: str) -> bool:
        """Return whether a statement ran before, known by its text with labels; note it."""
        with self._lock:
            key = hash(text)
            is_known = key in self._statements
            self._statements[key] = None
            self._statements.move_to_end(key)
            if len(self._statements) > _KNOWN_STATEMENTS:
                self._statements.popitem(last=False)
            return is_known

    def rows(self, table: PinnedTable) -> pa.Table:
        """Return the rows of a whole table, read at most once."""
        with self._lock:
            if (rows := self._rows.get(table)) is None:
                rows = self._rows[table] = table.read(EVERY_ROW)
            return rows

    def register(self, spark: SparkSession, table: PinnedTable) -> None:
        """Give a session the view of a table that `rows` has returned."""
        with self._lock:
            if (spark, table) not in self._registered:
                to_view_of(spark, whole_name(table), self._rows[table])
                self._registered.add((spark, table))

    def keep(self, versions: Mapping[str, int]) -> None:
        """Drop the views of versions that no later batch reads."""
        with self._lock:
            for table in list(self._rows):
                if versions.get(table.relation) != table.version:
                    del self._rows[table]
            for spark, table in list(self._registered):
                if table not in self._rows:
                    spark.catalog.dropTempView(whole_name(table))
                    self._registered.discard((spark, table))


def whole_name(table: PinnedTable) -> str:
    """Return the name of the view of a whole table."""
    hidden = f"_{crc32(','.join(sorted(table.hidden)).encode()):x}" if table.hidden else ""
    return f"__whole_{table.relation.replace('.', '__')}_{table.version}{hidden}"


class BatchViews:
    """Views of one model in one batch; dropped together by `close`."""

    def __init__(
        self,
        spark: SparkSession,
        prefix: str,
        shared: SharedViews,
        *,
        is_large: bool = False,
    ) -> None:
        self._prefix = prefix
        self._shared = shared
        # The large lane: Spark reads stored tables itself.
        self.is_large = is_large
        self._spark = spark
        self._slices = ArrowViews(spark)

    def query(self, statement: Statement) -> pa.Table:
        """Return the rows of a statement, planned for as many as its views have."""
        return rows_of(self.frame(statement))

    def frame(self, statement: Statement) -> DataFrame:
        """Return a statement that Spark has analysed and not run, to see its columns first."""
        views = statement.holes
        sql, lasting = (statement.render(attrgetter(part)) for part in ("name", "label"))
        is_stored = any(view.is_stored for view in views)
        spark = self._slices.session(
            [sql],
            None if is_stored else [view.table for view in views if view.table is not None],
            [view.name for view in views],
            is_repeated=self._shared.is_repeated(lasting),
        )
        for view in dict.fromkeys(views):
            if view.table is not None:
                self._shared.register(spark, view.table)
        return spark.sql(sql)

    def types(self, selected: str, query: str) -> list[pa.DataType]:
        """Return the types of a select list over a query; Spark analyses it, and runs nothing."""
        from pyspark.sql.pandas.types import to_arrow_type

        schema = self._spark.sql(f"select {selected} from ({query})").schema
        return [to_arrow_type(field.dataType) for field in schema.fields]

    def of_rows(self, label: str, rows: pa.Table) -> Statement:
        """Return the view of rows in memory."""
        return Template((self._view(label, rows),))

    def padded(self, label: str, rows: pa.Table, schema: pa.Schema) -> Statement:
        """Return a view of rows whose unread columns were left out; they are NULL in it."""
        view = self._view(label, rows)
        if len(rows.column_names) == len(schema.names):
            return Template((view,))
        present = set(rows.column_names)
        selected = ", ".join(
            column if it in present else f"cast(null as {kind}) as {column}"
            for it, column, kind in spelled_columns(schema)
        )
        return Template((f"(select {selected} from ", view, ")"))

    def _view(self, label: str, rows: pa.Table) -> SparkView:
        return SparkView(self._slices.add(f"{self._prefix}_{label}", rows), label)

    def whole(self, table: PinnedTable) -> Statement:
        """Return a name or subquery that reads a whole table."""
        if self.is_large or not table.is_plain or table.row_count > ROWS_IN_MEMORY:
            return self.stored(table, EVERY_ROW)
        rows = self._shared.rows(table)
        # Spark folds such a row, the clock's above all, into the statement; it would run a job
        # for each place that asks a view for it.
        if (spelled_out := row_of_literals(rows)) is not None:
            return Template((spelled_out,))
        view = SparkView(whole_name(table), table.relation, table=table)
        return Template((view,))

    def matching(self, label: str, table: PinnedTable, rows: RowFilter) -> Statement:
        """Return a view of a table looked up by key: at least the rows that pass a filter.

        A small table is kept in memory from batch to batch and filtered there.
        """
        if self.is_large or rows.is_whole:
            return self.whole(table)
        if table.row_count > ROWS_IN_MEMORY:
            return self.slice(label, table, rows)
        table_rows = self._shared.rows(table)
        if table_rows.num_rows <= FEW_LOOKUP_ROWS:
            return self.whole(table)
        return self.of_rows(label, table_rows.filter(rows.matches(table_rows)).combine_chunks())

    def stored(self, table: PinnedTable, rows: RowFilter) -> Statement:
        """Return a subquery on the Delta table itself, pruned by literals."""
        where = "" if rows.is_whole else f" where {rows.sql()}"
        return Template(
            ("(select * from ", SparkView(table.sql, table.sql, is_stored=True), f"{where})")
        )

    def slice(
        self,
        label: str,
        table: PinnedTable,
        rows: RowFilter,
        columns: Sequence[str] | None = None,
    ) -> Statement:
        """Return the view of the rows that pass a filter."""
        if rows.is_whole:
            return self.whole(table)
        if self.is_large:
            return self.stored(table, rows.bounded())
        return self.padded(label, table.read(rows, columns), table.schema)

    def close(self) -> None:
        self._slices.close()
