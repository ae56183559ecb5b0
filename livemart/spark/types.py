"""Spells Arrow types as Spark's: in a schema, in SQL.

Used wherever Arrow rows meet Spark's SQL. Its inverse is `arrow/types.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.arrow.variants import marked_schema, marked_type
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema; timestamps with a zone are TIMESTAMP, without one TIMESTAMP_NTZ."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(marked_schema(schema))


def parts_of_type(kind: DataType) -> Iterator[DataType]:
    """Yield a type and those of all that its values hold."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    yield kind
    inner: Sequence[DataType] = ()
    if isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, MapType):
        inner = [kind.keyType, kind.valueType]
    elif isinstance(kind, StructType):
        inner = [field.dataType for field in kind.fields]
    for part in inner:
        yield from parts_of_type(part)


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


def spelled_columns(schema: pa.Schema) -> list[tuple[str, str, str]]:
    """Return the name of each column, and how SQL spells its name and its type."""
    fields = spark_schema(schema).fields
    return [(field.name, quoted(field.name), type_text(field.dataType)) for field in fields]


def arrow_type_text(kind: pa.DataType) -> str:
    """Return how SQL spells an Arrow type: `bigint` for int64."""
    from pyspark.sql.pandas.types import from_arrow_type

    return type_text(from_arrow_type(marked_type(kind)))
