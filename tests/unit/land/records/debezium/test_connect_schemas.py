"""A schema of Avro says what the same one says that Connect's JsonConverter writes."""

from __future__ import annotations

from typing import Any

import pytest

from livemart.land.records.debezium.connect_schemas import connect_schema, without_logical_types
from tests.change_records import AVRO_DECIMAL

CONNECT = "org.apache.kafka.connect.data"


def test_an_envelope_is_a_struct_of_structs_with_the_names_that_connect_gave_them() -> None:
    value = {
        "type": "record",
        "name": "Value",
        "namespace": "shop.public.orders",
        "fields": [
            {"name": "id", "type": {"type": "long", "connect.default": 0}, "default": 0},
            {"name": "total", "type": ["null", AVRO_DECIMAL], "default": None},
            {
                "name": "day",
                "type": [
                    "null",
                    {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"},
                ],
                "default": None,
            },
        ],
        "connect.name": "shop.public.orders.Value",
    }
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "op", "type": "string"},
        ],
        "connect.name": "shop.public.orders.Envelope",
    }

    assert connect_schema(envelope) == {
        "type": "struct",
        "name": "shop.public.orders.Envelope",
        "fields": [
            {
                "field": "before",
                "type": "struct",
                "name": "shop.public.orders.Value",
                "fields": [
                    {"field": "id", "type": "int64"},
                    {
                        "field": "total",
                        "type": "bytes",
                        "name": f"{CONNECT}.Decimal",
                        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
                    },
                    {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
                ],
            },
            {"field": "op", "type": "string"},
        ],
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("int", {"type": "int32"}),
        ("boolean", {"type": "boolean"}),
        (["string", "null"], {"type": "string"}),
        # Connect writes none of these; the value then says its type itself.
        (["null", "string", "long"], {"type": "union"}),
        (["null"], {"type": "union"}),
        ({"type": ["null", "long"]}, {"type": "int64"}),
        ({"type": {"type": {"type": "string"}}}, {"type": "string"}),
        ({"type": "fixed", "name": "f", "size": 4}, {"type": "bytes"}),
        ({"type": "enum", "name": "e", "symbols": ["a"]}, {"type": "string"}),
        (
            {"type": "array", "items": ["null", "int"]},
            {"type": "array", "items": {"type": "int32"}},
        ),
        (
            {"type": "map", "values": {"type": "array", "items": AVRO_DECIMAL | {"scale": 0}}},
            {
                "type": "map",
                "values": {
                    "type": "array",
                    "items": {
                        "type": "bytes",
                        "name": f"{CONNECT}.Decimal",
                        "parameters": AVRO_DECIMAL["connect.parameters"],
                    },
                },
            },
        ),
    ],
)
def test_each_type_has_its_name_in_connect(schema: Any, expected: dict[str, Any]) -> None:
    assert connect_schema(schema) == expected


@pytest.mark.parametrize(
    ("logical", "kind", "name"),
    [
        ("date", "int", f"{CONNECT}.Date"),
        ("time-millis", "int", f"{CONNECT}.Time"),
        ("time-micros", "long", "io.debezium.time.MicroTime"),
        ("timestamp-millis", "long", f"{CONNECT}.Timestamp"),
        ("timestamp-micros", "long", "io.debezium.time.MicroTimestamp"),
        ("local-timestamp-millis", "long", "io.debezium.time.Timestamp"),
        ("local-timestamp-micros", "long", "io.debezium.time.MicroTimestamp"),
        ("uuid", "string", None),
    ],
)
def test_without_names_of_connect_the_logical_type_says_how_a_value_is_encoded(
    logical: str, kind: str, name: str | None
) -> None:
    schema = {"type": kind, "logicalType": logical}

    assert connect_schema(schema).get("name") == name
    # A name that a producer gives is nearer to the database than what Avro has for it.
    named = {**schema, "connect.name": "io.debezium.time.NanoTimestamp"}
    assert connect_schema(named)["name"] == "io.debezium.time.NanoTimestamp"


@pytest.mark.parametrize(("given", "scale"), [({"scale": 3}, "3"), ({}, "0")])
def test_the_scale_of_a_decimal_is_told_as_connect_tells_it(
    given: dict[str, int], scale: str
) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 10, **given}

    assert connect_schema(schema)["parameters"] == {"scale": scale}


def test_without_logical_types_nothing_else_is_lost_at_any_depth() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": ["null", AVRO_DECIMAL]},
            {
                "name": "b",
                "type": {"type": "map", "values": {"type": "array", "items": AVRO_DECIMAL}},
            },
        ],
    }
    plain = {name: value for name, value in AVRO_DECIMAL.items() if name != "logicalType"}

    assert without_logical_types(schema) == {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "a", "type": ["null", plain]},
            {"name": "b", "type": {"type": "map", "values": {"type": "array", "items": plain}}},
        ],
    }
