"""Values of Avro's logical types are read whole; none of them takes the record with it."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
from fastavro.read import LOGICAL_READERS

from livemart.land.records.typed.avro_values import with_own_types
from livemart.land.records.typed.calendars import SPARK_2, Calendar
from livemart.land.records.untyped_values import PackedInterval, Unreadable
from livemart.limits import MAX_NESTING
from livemart.project.record_logs.avro_types import RefusedSchemaError, parse_schemas


def read(encoded: Any, logical: str, calendar: Calendar | None = None, **kind: Any) -> Any:
    """Return a value of a logical type; `encoded`: one of the type below it."""
    plain = {"name": "t", **kind}
    file = io.BytesIO()
    fastavro.schemaless_writer(file, plain, encoded)
    text = json.dumps({**plain, "logicalType": logical})
    own = with_own_types(text) if calendar is None else with_own_types(text, calendar)
    return fastavro.schemaless_reader(io.BytesIO(file.getvalue()), parse_schemas([own]), None)


@pytest.mark.parametrize("kind", ["bytes", "fixed"])
def test_a_decimal_is_read_as_it_is_and_not_rounded_to_its_precision(kind: str) -> None:
    def decimal(size: int) -> Any:
        encoded = b"\xff\x7f" + b"\xff" * (size - 2)
        return read(encoded, "decimal", type=kind, size=size, precision=4, scale=2)

    assert decimal(3) == Decimal("-327.69")
    assert decimal(16) == Decimal((1, tuple(map(int, str(2**119 + 1))), -2))
    assert decimal(1_025) == Unreadable("a decimal of 1025 bytes and scale 2")


def test_a_decimal_of_any_scale_is_not_written_out() -> None:
    wide = read(b"\1", "decimal", type="bytes", precision=2_000, scale=1_025)

    assert wide == Unreadable("a decimal of 1 bytes and scale 1025")


def test_a_decimal_without_a_scale_that_it_can_have_is_as_fastavro_says() -> None:
    with pytest.raises(fastavro.schema.SchemaParseException, match="scale"):
        read(b"\1", "decimal", type="bytes", precision=4, scale="2")


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (b"\x02\x0f\x02", "1.5"),
        (b"\x04\xff\x7f\x04", "-1.29"),
        (b"\x02\x05\x03", "500"),
        (b"\x02\x00\x00", "0"),
        (b"\x80\x20" + b"\0" * 2_048 + b"\0", "a decimal of 2048 bytes and scale 0"),
        (b"\x02\x05\xff\xff\x03", "a decimal of 1 bytes and scale -32768"),
        (b"", "a big-decimal of 0 bytes that has no scale"),
        (b"\x02", "a big-decimal of 1 bytes that has no scale"),
        (b"\xff" * 20, "a big-decimal of 20 bytes that has no scale"),
    ],
)
def test_a_big_decimal_says_its_own_scale(encoded: bytes, value: str) -> None:
    expected: Any = Unreadable(value) if value.startswith("a ") else Decimal(value)

    assert read(encoded, "big-decimal", type="bytes") == expected


def test_a_uuid_is_one_in_text_and_in_sixteen_bytes() -> None:
    value = UUID("00112233-4455-6677-8899-aabbccddeeff")

    assert read(value.bytes, "uuid", type="fixed", size=16) == value
    assert read(str(value).upper(), "uuid", type="string") == value
    assert read("none", "uuid", type="string") == "none"
    assert read(b"123", "uuid", type="fixed", size=3) == b"123"


def test_a_duration_is_an_interval() -> None:
    data = bytes([1, 0, 0, 0, 2, 0, 0, 0, 0xAC, 0x0D, 0, 0])
    interval = read(data, "duration", type="fixed", size=12)

    assert type(interval) is PackedInterval
    assert (interval, str(interval)) == (data, "P1M2DT3.5S")
    assert str(PackedInterval(bytes(12))) == "P0M0DT0S"


def test_old_days_of_another_calendar_are_no_values() -> None:
    """Spark notes it in files of Avro as in those of Parquet."""
    day = -141_428
    assert read(day, "date", type="int") == "1582-10-14"
    old = read(day, "date", SPARK_2, type="int")
    assert isinstance(old, Unreadable) and old.detail.startswith("1582-10-14 is of the calendar")
    assert read(day + 1, "date", SPARK_2, type="int") == "1582-10-15"


def test_maps_of_any_values_are_read_with_all_their_entries() -> None:
    leaf = {"type": "record", "name": "Leaf", "fields": [{"name": "n", "type": "int"}]}
    fields = [
        {"name": "leaf", "type": leaf},
        {"name": "leaves", "type": {"type": "map", "values": "Leaf"}, "default": {"d": {"n": 1}}},
        {
            "name": "maps",
            "type": ["null", {"type": "map", "values": {"type": "map", "values": "int"}}],
        },
        {"name": "days", "type": {"type": "map", "values": {"type": "int", "logicalType": "date"}}},
    ]
    schema = {"type": "record", "name": "r", "namespace": "shop", "fields": fields}
    record = {
        "leaf": {"n": 1},
        "leaves": {"b": {"n": 2}, "a": {"n": 3}},
        "maps": {"x": {}, "y": {"z": 4}},
        "days": {},
    }
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), record)
    own = parse_schemas([with_own_types(json.dumps(schema))])

    actual: Any = fastavro.schemaless_reader(io.BytesIO(file.getvalue()), own, None)

    assert actual == record
    assert list(actual["leaves"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("items", "value"),
    [
        (
            {
                "type": "record",
                "name": "Entry",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
            },
            [{"key": 1, "value": "a"}, {"key": 1, "value": "b"}],
        ),
        ("int", [1, 2]),
    ],
)
def test_an_array_whose_schema_calls_it_a_map_is_an_array(items: Any, value: Any) -> None:
    kind = {"type": "array", "items": items, "logicalType": "map"}
    schema = {"type": "record", "name": "r", "fields": [{"name": "pairs", "type": kind}]}
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), {"pairs": value})
    own = parse_schemas([with_own_types(json.dumps(schema))])

    actual: Any = fastavro.schemaless_reader(io.BytesIO(file.getvalue()), own, None)

    assert actual == {"pairs": value}


def test_types_of_fastavro_stay_as_they_are() -> None:
    before = dict(LOGICAL_READERS)

    with_own_types('{"type": "int", "logicalType": "date"}')

    names = {name for name in LOGICAL_READERS if "livemart" not in name}
    assert {name: LOGICAL_READERS[name] for name in names} == {
        name: read for name, read in before.items() if "livemart" not in name
    }
    assert LOGICAL_READERS["int-date"].__module__.startswith("fastavro")


def test_a_logical_type_of_another_type_than_it_should_be_is_none() -> None:
    assert read("12", "timestamp-micros", type="string") == "12"
    assert read(12, "date", type="long") == 12


def test_maps_nest_as_deep_as_other_values() -> None:
    def nested(levels: int) -> Any:
        return {"type": "map", "values": nested(levels - 1)} if levels else "int"

    def read_back(levels: int) -> Any:
        schema: Any = nested(levels)
        value: Any = 7
        for _ in range(levels):
            value = {"k": value}
        file = io.BytesIO()
        fastavro.schemaless_writer(file, schema, value)
        own = parse_schemas([with_own_types(json.dumps(schema))])
        found = fastavro.schemaless_reader(io.BytesIO(file.getvalue()), own, None)
        return found, value

    found, value = read_back(MAX_NESTING)
    assert found == value
    with pytest.raises(RefusedSchemaError, match="more than 64 levels"):
        read_back(MAX_NESTING + 1)
    chain: Any = {"type": "map", "values": {"type": "record", "name": "r", "fields": []}}
    chain["values"]["fields"] = [{"name": "again", "type": {"type": "map", "values": "r"}}]
    with pytest.raises(RefusedSchemaError, match="contains itself"):
        parse_schemas([with_own_types(json.dumps(chain))])


@pytest.mark.parametrize(
    ("kind", "logical", "value"),
    [
        ({"type": "array", "items": "int"}, "livemart-entries", [1]),
        ({"type": "long"}, "livemart-timestamp-millis", 1),
    ],
)
def test_a_name_of_ours_in_a_file_means_nothing(kind: Any, logical: str, value: Any) -> None:
    assert read(value, logical, **kind) == value
