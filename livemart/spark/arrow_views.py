"""Rows in memory handed to Spark: the one place that calls `createDataFrame` with Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.arrow.types import plain_schema
from livemart.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def to_view(spark: SparkSession, name: str, table: pa.Table, *, in_one_part: bool = False) -> None:
    """Hand an Arrow table to Spark as a temporary view, rows and types unchanged.

    `in_one_part`: Spark knows that it is all in one partition, and shuffles nothing of it.

    PySpark 4.2.0 drops in silence everything after the first empty record batch, so the table is
    made one chunk a column first; no other code may call `createDataFrame` with Arrow.
    """
    schema = plain_schema(table.schema)
    aligned = table.cast(schema) if table.schema != schema else table
    struct = spark_schema(schema)
    if aligned.num_rows == 0:
        frame = spark.createDataFrame([], struct)
    else:
        frame = spark.createDataFrame(aligned.combine_chunks(), struct)
    (frame.coalesce(1) if in_one_part else frame).createOrReplaceTempView(name)
    make_active(type(spark)._instantiatedSession)


def make_active(spark: SparkSession | None) -> None:
    """Let this thread's statements that name no session be those of `spark`.

    `createDataFrame` makes its session the active one for good, and the settings of the active
    session count even where another session was asked.
    """
    if spark is not None:
        type(spark)._activeSession = spark
        kind = type(spark)._get_j_spark_session_class(spark._jvm)
        kind.setActiveSession(spark._jsparkSession)
