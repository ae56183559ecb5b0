"""Writes a schema of Avro as Kafka Connect's JsonConverter writes the same one.

Used for change records in Avro: what they hold is then read as in JSON, by the schema beside it.
Connect's AvroConverter (AvroData) keeps the names of Connect's types as `connect.name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from livemart.land.records.debezium.encodings import Schema

_PRIMITIVES = {"int": "int32", "long": "int64", "fixed": "bytes", "enum": "string"}
# Where a producer leaves Connect's names out (`connect.meta.data=false`).
_NAMES = {
    "decimal": "org.apache.kafka.connect.data.Decimal",
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-millis": "io.debezium.time.Timestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
}


def connect_schema(schema: Any) -> Schema:
    """Return a schema of Avro, with its named types in their places, as one of Connect.

    >>> connect_schema(["null", {"type": "int", "connect.name": "io.debezium.time.Date"}])
    {'type': 'int32', 'name': 'io.debezium.time.Date'}
    """
    match schema:
        case list():
            members = [member for member in schema if member != "null"]
            # Connect's own have one type beside null.
            return connect_schema(members[0]) if len(members) == 1 else {"type": "union"}
        case {"type": dict() | list() as inner}:
            return connect_schema(inner)
        case {"type": "record", "fields": fields}:
            parts: dict[str, Any] = {
                "fields": [{"field": it["name"], **connect_schema(it["type"])} for it in fields]
            }
            return {"type": "struct", **_named(schema, schema.get("name")), **parts}
        case {"type": "array", "items": items}:
            return {"type": "array", "items": connect_schema(items), **_named(schema)}
        case {"type": "map", "values": values}:
            return {"type": "map", "values": connect_schema(values), **_named(schema)}
        case {"type": str() as kind}:
            return {"type": _PRIMITIVES.get(kind, kind), **_named(schema), **_parameters(schema)}
        case _:
            return {"type": _PRIMITIVES.get(str(schema), str(schema))}


def without_logical_types(schema: Any) -> Any:
    """Return a schema by which values stay as they were encoded."""
    match schema:
        case list():
            return [without_logical_types(member) for member in schema]
        case dict():
            return {
                name: without_logical_types(value)
                for name, value in schema.items()
                if name != "logicalType"
            }
        case _:
            return schema


def _named(schema: Mapping[str, Any], name: object = None) -> dict[str, Any]:
    full_name = schema.get("connect.name") or _NAMES.get(str(schema.get("logicalType"))) or name
    return {"name": full_name} if full_name else {}


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    parameters = schema.get("connect.parameters")
    if parameters is None and schema.get("logicalType") == "decimal":
        parameters = {"scale": str(schema.get("scale", 0))}
    return {"parameters": parameters} if parameters else {}
