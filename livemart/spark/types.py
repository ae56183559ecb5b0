"""Spells Arrow types as Spark's: in a schema, in SQL.

Used wherever Arrow rows meet Spark's SQL. Its inverse is `arrow/types.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema; timestamps with a zone are TIMESTAMP, without one TIMESTAMP_NTZ."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(field.name, _spark_type(field.type), field.nullable) for field in schema]
    )


def type_text(kind: DataType) -> str:
    """Return how SQL spells a type: the names of fields in quotes, as Spark itself leaves out."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return f"array<{type_text(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{type_text(kind.keyType)},{type_text(kind.valueType)}>"
    if isinstance(kind, StructType):
        fields = (f"{quoted(field.name)}:{type_text(field.dataType)}" for field in kind.fields)
        return f"struct<{','.join(fields)}>"
    return str(kind.simpleString())


def arrow_type_text(kind: pa.DataType) -> str:
    """Return how SQL spells an Arrow type: `bigint` for int64."""
    return type_text(_spark_type(kind))


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
