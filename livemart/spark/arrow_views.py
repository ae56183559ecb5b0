"""Hands rows in memory to Spark as temporary views, and takes rows back.

Used by refresh and landing. No other code calls `createDataFrame` with Arrow, since PySpark loses
rows of a table in several batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from livemart.arrow.types import plain_schema, plain_table
from livemart.arrow.variants import as_structs
from livemart.spark.quick_session import ReadRows, is_quick, session_for
from livemart.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# As `spark.sql.execution.arrow.maxRecordsPerBatch` has it.
_ROWS_OF_A_PART = 10_000


def to_view(spark: SparkSession, name: str, table: pa.Table, *, in_one_part: bool = False) -> None:
    """Hand an Arrow table to Spark as a temporary view, rows and types unchanged.

    `in_one_part`: Spark knows that it is all in one partition, and shuffles nothing of it.
    """
    frame = to_frame(spark, table)
    (frame.coalesce(1) if in_one_part else frame).createOrReplaceTempView(name)


def to_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Hand an Arrow table to Spark as a frame, rows and types unchanged.

    Hands rows over as `createDataFrame` of PySpark 4.2.0 does. That asks the JVM for eight settings
    first, in forty calls, and drops all rows after an empty record batch in silence.
    """
    from pyspark.sql import DataFrame as Frame
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = plain_schema(table.schema)
    aligned = table.cast(schema) if table.schema != schema else table
    struct = spark_schema(schema)
    if aligned.num_rows == 0:
        frame = spark.createDataFrame([], struct)
        make_active(type(spark)._instantiatedSession)
        return frame
    is_wide = spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes") == "true"
    in_spark = to_arrow_schema(struct, timezone="UTC", prefers_large_types=is_wide)
    batches = as_structs(aligned).combine_chunks().cast(in_spark).to_batches(_ROWS_OF_A_PART)
    jvm: Any = spark._jvm
    utils = jvm.PythonSQLUtils
    parts = spark._sc._serialize_to_jvm(
        batches,
        ArrowStreamSerializer(),
        utils.readArrowStreamFromFile,
        lambda: jvm.ArrowIteratorServer(),
    )
    return Frame(utils.toDataFrame(parts, struct.json(), spark._jsparkSession), spark)


def rows_of(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame in the types that tables have, one chunk a column.

    As they arrive, in the types that Spark gives them. `toArrow` of PySpark 4.2.0 asks the JVM for
    two settings and the schema first, and cannot cast a NULL variant.
    """
    arrow: Any = frame
    batches = arrow._collect_as_arrow(empty_list_if_zero_records=False)
    return plain_table(pa.Table.from_batches(batches))


def make_active(spark: SparkSession | None) -> None:
    """Let this thread's statements that name no session be those of `spark`.

    `createDataFrame` makes its session the active one for good, and the settings of the active
    session count even where another session was asked.
    """
    if spark is not None:
        type(spark)._activeSession = spark
        kind = type(spark)._get_j_spark_session_class(spark._jvm)
        kind.setActiveSession(spark._jsparkSession)


def to_view_of(spark: SparkSession, name: str, rows: pa.Table) -> None:
    """Give either session a view of rows, laid out as its statements are planned."""
    to_view(spark, name, rows, in_one_part=is_quick(spark))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows in memory, as `session_for` asks for them."""

    rows: pa.Table
    is_plain: bool = True

    @property
    def row_count(self) -> int:
        return int(self.rows.num_rows)

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema


class ArrowViews:
    """Rows in memory under names; the session of a statement gets them when it is known."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables: dict[str, pa.Table] = {}
        self._registered: set[tuple[SparkSession, str]] = set()

    def __len__(self) -> int:
        return len(self._tables)

    def add(self, name: str, rows: pa.Table) -> str:
        """Give rows a name, and return it; they replace earlier rows of this name."""
        if self._tables.get(name, rows) is not rows:
            for pair in [pair for pair in self._registered if pair[1] == name]:
                pair[0].catalog.dropTempView(name)
                self._registered.discard(pair)
        self._tables[name] = rows
        return name

    def session(
        self,
        texts: Sequence[str],
        others: Sequence[ReadRows] | None,
        names: Sequence[str] | None = None,
        *,
        is_repeated: bool = False,
    ) -> SparkSession:
        """Return the session for statements; it has the views that they name.

        Args:
            texts: the statements.
            others: tables that they read besides; None if their number is unknown.
            names: of the views that they read, one for each place; None: any, each in a separate
                statement.
            is_repeated: they have run before, names of views aside.
        """
        spark = self._spark
        named = {it: rows for it, rows in self._tables.items() if names is None or it in names}
        if others is not None:
            tables = (*map(_Rows, named.values()), *others)
            places = 1 if names is None else len(names)
            spark = session_for(spark, tables, places, texts, is_repeated=is_repeated)
        for name, rows in named.items():
            if (spark, name) not in self._registered:
                to_view_of(spark, name, rows)
                self._registered.add((spark, name))
        return spark

    def close(self) -> None:
        for spark, name in self._registered:
            spark.catalog.dropTempView(name)
        self._registered.clear()
        self._tables.clear()
