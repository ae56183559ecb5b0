"""A declared type has one Arrow type; landing adds its columns at the end."""

from __future__ import annotations

import pyarrow as pa
import pytest

from livemart.land.records.schema import LANDING_FIELDS, RecordSchema, arrow_type
from livemart.project.landing_columns import LANDING_COLUMNS
from livemart.project.spark_types import SCALARS, parse_type
from tests.deliveries import EVENTS


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("array<int>", pa.list_(pa.field("element", pa.int32()))),
        ("map<string,date>", pa.map_(pa.string(), pa.date32())),
        (
            "struct<a:bigint,b:array<float>>",
            pa.struct(
                [("a", pa.int64()), ("b", pa.list_(pa.field("element", pa.float32())))],
            ),
        ),
    ],
)
def test_a_declared_type_has_one_arrow_type(declared: str, expected: pa.DataType) -> None:
    assert arrow_type(parse_type(declared)) == expected


def test_every_scalar_has_an_arrow_type() -> None:
    for word in SCALARS:
        arrow_type(parse_type(word))


def test_a_landed_row_has_the_declared_columns_then_landings_own() -> None:
    schema = RecordSchema.of(EVENTS, [("tip", parse_type("string"))])

    assert schema.names == [*(column.name for column in EVENTS.columns), "tip"]
    assert schema.landed.names == [*schema.names, *LANDING_COLUMNS]
    assert schema.arrow.field("tip").type == pa.string()
    assert tuple(field.name for field in LANDING_FIELDS) == LANDING_COLUMNS
