"""One Arrow form for each Spark type; rows that do not fit a table are refused, never NULL."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from livemart.arrow.types import (
    align,
    compared_as,
    compares_exactly,
    plain_schema,
    plain_table,
    plain_type,
    widens,
)
from livemart.errors import RefreshError

UTC_TIME = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
        (pa.binary(3), pa.binary()),
        (pa.timestamp("ns", tz="Europe/Lisbon"), UTC_TIME),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.struct([("a", pa.large_binary())]), pa.struct([("a", pa.binary())])),
        (pa.large_list(pa.large_string()), pa.list_(pa.field("element", pa.string()))),
        (pa.map_(pa.large_string(), pa.timestamp("ms")), pa.map_(pa.string(), pa.timestamp("us"))),
        (pa.decimal128(38, 2), pa.decimal128(38, 2)),
    ],
)
def test_variants_of_a_type_are_one(kind: pa.DataType, plain: pa.DataType) -> None:
    assert plain_type(kind) == plain
    assert plain_type(plain) == plain


def test_rows_keep_their_values_in_plain_types() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    rows = pa.table({"at": pa.array([noon, None], pa.timestamp("ms", tz="Asia/Tokyo"))})

    plain = plain_table(pa.concat_tables([rows, rows]))

    assert plain.schema == plain_schema(rows.schema) == pa.schema([("at", UTC_TIME)])
    assert plain.column("at").to_pylist() == [noon, None] * 2
    assert plain.column("at").num_chunks == 1


def test_columns_take_order_and_types_of_the_table() -> None:
    schema = pa.schema([("id", pa.int32()), ("name", pa.string())])

    aligned = align(pa.table({"name": ["a"], "id": [1]}), schema, "mart.totals")

    assert aligned.schema == schema
    assert aligned.to_pylist() == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [2**40]}, "column id"),
        ({"id": [None]}, "NOT NULL"),
        ({"id": [1], "more": [1]}, "columns"),
        ({"other": [1]}, "columns"),
    ],
)
def test_what_does_not_fit_is_refused(columns: dict[str, list[int]], message: str) -> None:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False)])

    with pytest.raises(RefreshError, match="SCHEMA_MISMATCH") as caught:
        align(pa.table(columns), schema, "mart.totals")

    assert message in caught.value.message
    assert caught.value.message.startswith("mart.totals: ")


def _decimal(digits: int, scale: int) -> pa.DataType:
    return pa.decimal128(digits, scale)


@pytest.mark.parametrize(
    ("left", "right", "common", "is_exact"),
    [
        (pa.string(), pa.large_string(), pa.string(), True),
        (pa.null(), pa.date32(), pa.date32(), True),
        (pa.int8(), pa.int64(), pa.int64(), True),
        (pa.int32(), _decimal(12, 2), _decimal(12, 2), True),
        (pa.int64(), _decimal(12, 2), _decimal(22, 2), True),
        (pa.int64(), _decimal(38, 18), _decimal(38, 18), True),
        (_decimal(10, 4), _decimal(12, 2), _decimal(14, 4), True),
        # Spark rounds what would take more than 38 digits.
        (pa.int64(), _decimal(38, 19), None, False),
        (_decimal(38, 0), _decimal(38, 18), None, False),
        # As doubles, 2^53 and 2^53 + 1 are one number; as floats, 2^24 and 2^24 + 1.
        (pa.int64(), pa.float64(), pa.float64(), False),
        (pa.int32(), pa.float32(), pa.float32(), False),
        (_decimal(38, 18), pa.float64(), pa.float64(), False),
        (_decimal(10, 2), pa.float32(), pa.float64(), False),
        (pa.float32(), pa.float64(), pa.float64(), False),
        (pa.float64(), pa.float64(), pa.float64(), True),
        # Text is read as the other type: '7', '07' and ' 7' are one number.
        (pa.string(), pa.int64(), None, False),
        (pa.string(), pa.date32(), None, False),
        (pa.string(), pa.binary(), None, False),
        (pa.bool_(), pa.int32(), None, False),
        (pa.date32(), UTC_TIME, UTC_TIME, True),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us"), True),
        (pa.timestamp("us"), UTC_TIME, UTC_TIME, True),
        (pa.int64(), UTC_TIME, None, False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), None, False),
    ],
)
def test_how_spark_compares_two_types(
    left: pa.DataType, right: pa.DataType, common: pa.DataType | None, is_exact: bool
) -> None:
    for one, other in ((left, right), (right, left)):
        assert compared_as(one, other) == common
        assert compares_exactly(one, other) is is_exact


@pytest.mark.parametrize(
    ("stored", "declared"),
    [
        (pa.int8(), pa.int16()),
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.int64(), pa.decimal128(20, 0)),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(12, 2)),
        (pa.decimal128(10, 2), pa.decimal128(12, 4)),
        (pa.list_(pa.field("element", pa.int8())), pa.list_(pa.field("element", pa.int16()))),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())),
        (pa.struct([("a", pa.int8())]), pa.struct([("b", pa.string()), ("a", pa.int64())])),
    ],
)
def test_a_wider_type_holds_every_value_and_the_narrower_one_does_not(
    stored: pa.DataType, declared: pa.DataType
) -> None:
    assert widens(stored, stored) and widens(stored, declared)
    assert not widens(declared, stored)


@pytest.mark.parametrize(
    ("stored", "declared"),
    [
        (pa.int64(), pa.float64()),
        (pa.int32(), pa.float32()),
        (pa.int32(), pa.decimal128(10, 2)),
        (pa.decimal128(10, 2), pa.decimal128(11, 4)),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.int32(), pa.string()),
        (pa.date32(), pa.timestamp("us")),
        (pa.struct([("a", pa.int8())]), pa.struct([("A", pa.int8())])),
        (
            pa.struct([("a", pa.int8())]),
            pa.struct([("a", pa.int8()), ("b", pa.struct([("at", pa.timestamp("us"))]))]),
        ),
    ],
)
def test_a_type_that_would_change_or_lose_a_value_is_not_wider(
    stored: pa.DataType, declared: pa.DataType
) -> None:
    assert not widens(stored, declared)
