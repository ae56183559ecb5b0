"""Each Arrow type that a table has is one Spark type, nested ones included."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, IntegerType

from livemart.spark.types import spark_schema, type_text


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.string(), "string"),
        (pa.int8(), "tinyint"),
        (pa.int64(), "bigint"),
        (pa.float32(), "float"),
        (pa.decimal128(38, 10), "decimal(38,10)"),
        (pa.date32(), "date"),
        (pa.timestamp("us", tz="UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.binary(), "binary"),
        (pa.list_(pa.timestamp("us")), "array<timestamp_ntz>"),
        (pa.map_(pa.string(), pa.timestamp("us", tz="UTC")), "map<string,timestamp>"),
        (pa.struct([("a", pa.int32()), ("b c", pa.bool_())]), "struct<a:int,b c:boolean>"),
    ],
)
def test_a_type_has_its_name_in_spark(kind: pa.DataType, name: str) -> None:
    (field,) = spark_schema(pa.schema([("column", kind)]))

    assert field.dataType.simpleString() == name


def test_what_may_be_null_may_be_null_in_spark() -> None:
    element = pa.field("element", pa.int32(), nullable=False)
    (field,) = spark_schema(pa.schema([pa.field("column", pa.list_(element), nullable=False)]))

    assert not field.nullable
    assert field.dataType == ArrayType(IntegerType(), containsNull=False)


def test_sql_quotes_the_names_of_fields() -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.struct([("größe", pa.int32()), ("a`b", pa.string())])))
    (field,) = spark_schema(pa.schema([("column", kind)]))

    assert type_text(field.dataType) == "map<string,array<struct<`größe`:int,`a``b`:string>>>"
