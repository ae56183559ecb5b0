"""Every encoding of a connector gives the value of the database."""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from livemart.land.records.debezium.encodings import decode
from livemart.land.records.exact_values import converter, parse_json
from livemart.land.records.untyped_values import MisfitError, Number
from livemart.project.graph import EnvelopeOptions
from livemart.project.spark_types import parse_type
from tests.disagreeing_values import KINDS, days, microseconds

NOWHERE = EnvelopeOptions()
NOON = datetime(2026, 3, 1, 12, 0, 0, 250_000)
DAYS = 20_513
MILLIS = 1_772_366_400_250


def named(name: str, kind: str = "int64", **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": name, **more}


def connect(name: str, kind: str = "int64", **more: Any) -> dict[str, Any]:
    return named(f"org.apache.kafka.connect.data.{name}", kind, **more)


def debezium(name: str, kind: str = "int64", **more: Any) -> dict[str, Any]:
    return named(f"io.debezium.{name}", kind, **more)


def landed(
    value: Any, kind: str, schema: dict[str, Any] | None, options: EnvelopeOptions = NOWHERE
) -> Any:
    """Return what a value of a record lands as in a column."""
    spark_type = parse_type(kind)
    plain = decode(parse_json(json.dumps(value).encode()), "x", spark_type, schema, options)
    return converter(spark_type, True)(plain, "x", {})


def options(mode: str | None = None, digits: int | None = None, **more: Any) -> EnvelopeOptions:
    told = () if digits is None else (("*", digits),)
    return EnvelopeOptions(time_precision=mode, timestamp_digits=told, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("AfQ=", connect("Decimal", "bytes", parameters={"scale": "2"}), "5.00"),
        ("/w==", connect("Decimal", "bytes", parameters={"scale": "2"}), "-0.01"),
        ("AA==", connect("Decimal", "bytes", parameters={"scale": "0"}), "0.00"),
        ("BQ==", connect("Decimal", "bytes", parameters={"scale": "-2"}), "500.00"),
        (12.5, connect("Decimal", "bytes", parameters={"scale": "2"}), "12.50"),
        ({"scale": 1, "value": "fQ=="}, debezium("data.VariableScaleDecimal", "struct"), "12.50"),
        ("12.50", {"type": "string"}, "12.50"),
        (12.5, {"type": "double"}, "12.50"),
    ],
)
def test_decimals_by_their_schema(value: Any, schema: dict[str, Any], expected: str) -> None:
    assert landed(value, "decimal(12,2)", schema) == Decimal(expected)
    assert Decimal(landed(value, "string", schema)) == Decimal(expected)


def test_a_decimal_of_any_length_keeps_every_digit() -> None:
    digits = 10**37 + 1
    text = base64.b64encode(digits.to_bytes(16, "big", signed=True)).decode()
    schema = connect("Decimal", "bytes", parameters={"scale": "5"})

    assert landed(text, "decimal(38,5)", schema) == Decimal(f"{digits}E-5")


@pytest.mark.parametrize(
    ("value", "handling", "expected"),
    [
        ("AfQ=", "precise", "5.00"),
        ({"scale": 3, "value": "MDQ="}, "precise", "12.340"),
        (12.5, "precise", "12.5"),
        ("12.50", "string", "12.50"),
        ("1234", "string", "1234"),
        (12.5, "double", "12.5"),
    ],
)
def test_decimals_by_the_options(value: Any, handling: Any, expected: str) -> None:
    told = options(decimal_handling=handling)

    assert landed(value, "decimal(12,2)", None, told) == Decimal(expected)
    assert landed([value], "array<decimal(12,2)>", None, told) == [Decimal(expected)]
    assert landed({"a": value}, "map<string,decimal(12,2)>", None, told) == [
        ("a", Decimal(expected))
    ]
    assert landed({"a": value, "b": 1}, "struct<a:decimal(12,2)>", None, told) == {
        "a": Decimal(expected)
    }


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (DAYS, debezium("time.Date", "int32")),
        (DAYS, connect("Date", "int32")),
        ("2026-03-01Z", debezium("time.IsoDate", "string")),
        ("2026-03-01", {"type": "string"}),
    ],
)
def test_dates(value: Any, schema: dict[str, Any]) -> None:
    assert landed(value, "date", schema) == date(2026, 3, 1)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (MILLIS, debezium("time.Timestamp")),
        (MILLIS, connect("Timestamp")),
        (MILLIS * 1_000, debezium("time.MicroTimestamp")),
        (MILLIS * 1_000_000 + 999, debezium("time.NanoTimestamp")),
        ("2026-03-01T12:00:00.250Z", debezium("time.IsoTimestamp", "string")),
    ],
)
def test_local_times(value: Any, schema: dict[str, Any]) -> None:
    assert landed(value, "timestamp_ntz", schema) == NOON
    assert landed(value, "timestamp", schema).replace(tzinfo=None) == NOON
    assert landed(value, "string", schema).startswith("2026-03-01T12:00:00.25")


@pytest.mark.parametrize(
    ("value", "kind", "schema", "written"),
    [
        # Infinity of a date, by a snapshot and by a change, of a timestamp(6), and of timestamptz.
        (2**31 - 1, "date", debezium("time.Date", "int32"), "+5881580-07-11"),
        (106_751_991_167, "date", debezium("time.Date", "int64"), "+292278994-08-17"),
        (9_223_371_331_200_000_000, "timestamp", None, "+294247-01-02T00:00:00"),
        (9_223_371_331_199_999_000, "timestamp_ntz", None, "+294247-01-01T23:59:59.999000"),
        (
            -62_135_596_800_001,
            "timestamp",
            debezium("time.Timestamp"),
            "0000-12-31T23:59:59.999000",
        ),
        ("infinity", "timestamp", debezium("time.ZonedTimestamp", "string"), "infinity"),
        ("NaN", "decimal(10,2)", {"type": "string"}, "NaN"),
    ],
)
def test_a_value_that_spark_does_not_have_is_refused_and_lands_as_text(
    value: Any, kind: str, schema: dict[str, Any] | None, written: str
) -> None:
    schema = schema or debezium("time.MicroTimestamp")

    with pytest.raises(MisfitError) as refusal:
        landed(value, kind, schema)
    assert str(refusal.value) == f'x: "{written}" does not fit {kind}'
    assert landed(value, "string", schema) == written


def test_nanoseconds_are_cut_in_a_time_and_whole_in_a_text() -> None:
    schema = debezium("time.NanoTimestamp")

    assert landed(-1, "timestamp_ntz", schema) == datetime(1969, 12, 31, 23, 59, 59, 999_999)
    assert landed(-1, "string", schema) == "1969-12-31T23:59:59.999999999"


def test_the_end_of_a_day_is_a_time() -> None:
    assert landed(86_400_000_000, "string", debezium("time.MicroTime")) == "24:00:00"


def test_a_time_with_a_zone_is_an_instant() -> None:
    schema = debezium("time.ZonedTimestamp", "string")

    actual = landed("2026-03-01T13:00:00.25+01:00", "timestamp", schema)

    assert actual.replace(tzinfo=None) == NOON
    with pytest.raises(MisfitError):
        landed("2026-03-01T12:00:00Z", "timestamp_ntz", schema)


def test_times_before_the_epoch() -> None:
    schema = debezium("time.MicroTimestamp")

    assert landed(-1, "timestamp_ntz", schema) == datetime(1969, 12, 31, 23, 59, 59, 999_999)
    assert landed(-1, "date", debezium("time.Date")) == date(1969, 12, 31)


@pytest.mark.parametrize(
    ("value", "told", "kind", "expected"),
    [
        (MILLIS, options("connect"), "timestamp_ntz", NOON),
        (MILLIS, options("adaptive", 3), "timestamp_ntz", NOON),
        (MILLIS * 1_000, options("adaptive", 4), "timestamp_ntz", NOON),
        (MILLIS * 1_000, options("adaptive_time_microseconds", 6), "timestamp_ntz", NOON),
        ("2026-03-01T12:00:00.25Z", options("isostring"), "timestamp_ntz", NOON),
        (DAYS, options("connect"), "date", date(2026, 3, 1)),
        (DAYS, options("adaptive"), "date", date(2026, 3, 1)),
        ("2026-03-01Z", options("isostring"), "date", date(2026, 3, 1)),
    ],
)
def test_times_by_the_options(value: Any, told: EnvelopeOptions, kind: str, expected: Any) -> None:
    assert landed(value, kind, None, told) == expected
    assert landed([value], f"array<{kind}>", None, told) == [expected]


def test_each_column_may_have_digits_of_its_own() -> None:
    told = EnvelopeOptions(time_precision="adaptive", timestamp_digits=(("*", 6), ("x", 0)))

    assert landed(MILLIS, "timestamp_ntz", None, told) == NOON


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        (45_296_789, "time.Time", "12:34:56.789"),
        (45_296_000_001, "time.MicroTime", "12:34:56.000001"),
        (45_296_000_000_000, "time.NanoTime", "12:34:56"),
        (-363_600_000_000, "time.MicroTime", "-101:00:00"),
        (2_678_400_000_000, "time.MicroDuration", "2678400000000"),
        ("P1Y2M3DT4H5M6.78S", "time.Interval", "P1Y2M3DT4H5M6.78S"),
        ("12:34:56Z", "time.ZonedTime", "12:34:56Z"),
        (2026, "time.Year", "2026"),
        ('{"a": 1}', "data.Json", '{"a": 1}'),
    ],
)
def test_what_spark_has_no_type_for_is_text(value: Any, name: str, expected: str) -> None:
    assert landed(value, "string", debezium(name)) == expected


def test_a_column_of_numbers_takes_the_numbers_of_times() -> None:
    assert landed(MILLIS, "bigint", debezium("time.Timestamp")) == MILLIS


@pytest.mark.parametrize(
    ("value", "schema", "handling"),
    [
        ("+/8=", {"type": "bytes"}, "hex"),
        ("+/8=", None, "bytes"),
        ("+/8=", {"type": "string"}, "base64"),
        ("-_8=", {"type": "string"}, "base64-url-safe"),
        ("fbff", {"type": "string"}, "hex"),
        ("fbff", None, "hex"),
    ],
)
def test_bytes(value: str, schema: dict[str, Any] | None, handling: str) -> None:
    assert landed(value, "binary", schema, options(binary_handling=handling)) == b"\xfb\xff"


def test_what_is_inside_arrays_maps_and_structs_is_read_by_its_own_schema() -> None:
    price = connect("Decimal", "bytes", parameters={"scale": "2"})
    item = {"type": "struct", "fields": [price | {"field": "price"}, {"field": "dish"}]}

    prices = landed(["AfQ=", None], "array<decimal(10,2)>", {"type": "array", "items": price})
    named_prices = landed(
        {"a": "AfQ="}, "map<string,decimal(10,2)>", {"type": "map", "values": price}
    )
    items = landed({"price": "AfQ=", "dish": "x"}, "struct<price:decimal(10,2),dish:string>", item)

    assert prices == [Decimal(5), None]
    assert named_prices == [("a", Decimal(5))]
    assert items == {"price": Decimal(5), "dish": "x"}


@pytest.mark.parametrize(
    ("value", "kind", "schema"),
    [
        ("%", "decimal(10,2)", connect("Decimal", "bytes", parameters={"scale": "2"})),
        ("", "decimal(10,2)", connect("Decimal", "bytes", parameters={"scale": "2"})),
        ("AfQ=", "decimal(10,2)", connect("Decimal", "bytes", parameters={"scale": "x"})),
        ("AfQ=", "decimal(10,2)", connect("Decimal", "bytes")),
        ("AfQ=", "decimal(2,2)", connect("Decimal", "bytes", parameters={"scale": "2"})),
        (
            {"scale": 2_000_000_000, "value": "AfQ="},
            "string",
            debezium("data.VariableScaleDecimal", "struct"),
        ),
        (2**62, "timestamp", debezium("time.Timestamp")),
        (2**62, "timestamp", debezium("time.MicroTimestamp")),
        (1.5, "timestamp", debezium("time.Timestamp")),
        (2**31, "date", debezium("time.Date")),
        (DAYS, "timestamp", {"type": "int64"}),
        ("0g", "binary", None),
    ],
)
def test_what_is_encoded_otherwise_is_refused(
    value: Any, kind: str, schema: dict[str, Any] | None
) -> None:
    with pytest.raises(MisfitError, match=r"^x: "):
        landed(value, kind, schema, options(binary_handling="hex"))


@pytest.mark.parametrize(
    ("value", "kind", "told"),
    [
        ("AfQ=", "decimal(10,2)", NOWHERE),
        (DAYS, "date", NOWHERE),
        (DAYS, "date", options("isostring")),
        (MILLIS, "timestamp", NOWHERE),
        (MILLIS, "timestamp_ntz", options("adaptive")),
    ],
)
def test_what_neither_schema_nor_options_tell_is_refused(
    value: Any, kind: str, told: EnvelopeOptions
) -> None:
    with pytest.raises(MisfitError, match="the record has no schema: the source's envelope_opt"):
        landed(value, kind, None, told)


def _sent(value: Any, kind: pa.DataType) -> tuple[Any, dict[str, Any]]:
    """Return a value as a connector writes it exactly, and the schema of its field."""
    if pa.types.is_decimal(kind):
        units = int(value.scaleb(kind.scale, Context(prec=kind.precision)))
        size = units.bit_length() // 8 + 1
        text = base64.b64encode(units.to_bytes(size, "big", signed=True)).decode()
        return text, connect("Decimal", "bytes", parameters={"scale": str(kind.scale)})
    if pa.types.is_date32(kind):
        return days(value), debezium("time.Date", "int32")
    if pa.types.is_timestamp(kind) and kind.tz:
        return f"{value.isoformat()[:-6]}Z", debezium("time.ZonedTimestamp", "string")
    if pa.types.is_timestamp(kind):
        return microseconds(value), debezium("time.MicroTimestamp")
    if pa.types.is_binary(kind):
        return base64.b64encode(value).decode(), {"type": "bytes"}
    return value, {"type": "string" if pa.types.is_string(kind) else str(kind)}


@pytest.mark.parametrize("name", [it for it in KINDS if not pa.types.is_nested(KINDS[it].arrow)])
def test_every_value_lands_as_the_database_has_it(name: str) -> None:
    kind = KINDS[name]
    values = [it for it in kind.values if not isinstance(it, float) or math.isfinite(it)]

    pairs = [_sent(it, kind.arrow) for it in values]
    read = [landed(sent, kind.spark, schema) for sent, schema in pairs]

    # As text -0.0 is another one than 0.0.
    assert list(map(repr, read)) == list(map(repr, values))


def test_digits_are_those_of_the_column_also_of_one_with_a_dot() -> None:
    told = EnvelopeOptions(time_precision="adaptive", timestamp_digits=(("*", 6), ("a.b", 3)))
    kind = parse_type("struct<at:timestamp>")
    value = parse_json(b'{"at":1772366400250}')

    assert decode(value, "`a.b`", kind, None, told) == {"at": "2026-03-01T12:00:00.250000"}
    assert decode(value, "a.b", kind, None, told) == {"at": "1970-01-21T12:19:26.400250"}


def test_a_field_that_a_struct_does_not_name_is_read_as_one_that_no_column_names() -> None:
    day = {"field": "day", **debezium("time.Date", "int32")}
    schema = {"type": "struct", "fields": [day]}
    rescued: dict[str, str | None] = {}

    plain = decode({"day": Number(DAYS)}, "s", parse_type("struct<x:int>"), schema, NOWHERE)
    converter(parse_type("struct<x:int>"), True)(plain, "s", rescued)

    assert rescued == {"s.day": "2026-03-01"}
    assert decode(Number(DAYS), "day", parse_type("string"), day, NOWHERE) == "2026-03-01"
