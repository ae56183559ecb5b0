"""Gives the Spark schema of a table in memory.

Used wherever Arrow rows meet Spark's SQL. Its inverse is `arrow/types.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema; timestamps with a zone are TIMESTAMP, without one TIMESTAMP_NTZ."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(field.name, _spark_type(field.type), field.nullable) for field in schema]
    )


def _spark_type(kind: pa.DataType) -> DataType:
    from pyspark.sql import types as spark
    from pyspark.sql.pandas.types import from_arrow_type

    if pa.types.is_struct(kind):
        fields = [
            spark.StructField(field.name, _spark_type(field.type), field.nullable) for field in kind
        ]
        return spark.StructType(fields)
    if pa.types.is_map(kind):
        return spark.MapType(
            _spark_type(kind.key_type), _spark_type(kind.item_type), kind.item_field.nullable
        )
    if pa.types.is_list(kind):
        return spark.ArrayType(_spark_type(kind.value_type), kind.value_field.nullable)
    if pa.types.is_timestamp(kind):
        return spark.TimestampType() if kind.tz is not None else spark.TimestampNTZType()
    return from_arrow_type(kind)
