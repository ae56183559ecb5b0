"""Reads values of Avro's logical types whole, by types of our own beside those of fastavro.

Used for files and messages of Avro. fastavro's readers raise in the middle of a record for a time
that Python does not have, and the rest of the record can then not be found. They do not know some
other types, and of the values that a map has for one key they keep the last.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from decimal import MAX_PREC, Context, Decimal
from functools import cache
from typing import Any
from uuid import UUID

from livemart.epoch import time_text
from livemart.land.records.typed.calendars import ISO, SPARK_2, Calendar
from livemart.land.records.untyped_values import PackedInterval, Unreadable, whole_map
from livemart.project.record_logs.avro_types import ENTRIES, objects_in

# A column has at most 38 digits; the time to read more grows with the square of their number.
_MOST_DECIMAL_BYTES = 1_024
_MOST_SCALE = 1_024
_EXACT = Context(prec=MAX_PREC)
_INTERVAL_BYTES = 12
_OWN = "livemart-"
_PREFIXES = {ISO: _OWN, SPARK_2: f"{_OWN}spark-2-"}
_BIG_DECIMAL = {
    "type": "record",
    "name": "big_decimal",
    "fields": [{"name": "digits", "type": "bytes"}, {"name": "scale", "type": "int"}],
}

# Takes a value as it is encoded and the schema of its type; raises nothing.
_Read = Callable[[Any, Any], Any]


def with_own_types(text: str, calendar: Calendar = ISO) -> str:
    """Return a schema, as JSON, in which logical types have our names where we read them.

    Raises:
        ValueError: it is no JSON.
    """
    _register()
    schema = json.loads(text)
    readers = _readers(calendar)
    entry = f"livemart_entry_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    for number, content in enumerate(objects_in(schema)):
        # No reader needs it, and it would have to fit the type.
        content.pop("default", None)
        if str(content.get("logicalType")).startswith(_OWN):
            # A name of ours that the writer put there promises nothing.
            del content["logicalType"]
        if content.get("type") == "map" and "values" in content:
            _spell_out_entries(content, f"{entry}_{number}")
        kind, logical = content.get("type"), content.get("logicalType")
        is_known = isinstance(kind, str) and isinstance(logical, str)
        # A decimal that says no scale is wrong, as fastavro says then.
        if is_known and f"{kind}-{logical}" in readers and _has_scale(content):
            content["logicalType"] = f"{_PREFIXES[calendar]}{logical}"
    return json.dumps(schema)


def _spell_out_entries(schema: dict[str, Any], name: str) -> None:
    """Make the array of a map, whose bytes are the same, with records of this name."""
    fields = [{"name": "key", "type": "string"}, {"name": "value", "type": schema.pop("values")}]
    items = {"type": "record", "name": name, "fields": fields}
    schema.update({"type": "array", "items": items, "logicalType": ENTRIES})


def _has_scale(schema: Any) -> bool:
    if schema["logicalType"] != "decimal":
        return True
    scale, precision = schema.get("scale", 0), schema.get("precision")
    return type(scale) is int and type(precision) is int and 0 <= scale <= precision


@cache
def _register() -> None:
    """Make our types known to fastavro, which has a table for that; its own stay as they are."""
    from fastavro.read import LOGICAL_READERS

    for calendar, prefix in _PREFIXES.items():
        for name, read in _readers(calendar).items():
            kind, logical = name.split("-", 1)
            LOGICAL_READERS[f"{kind}-{prefix}{logical}"] = _for_fastavro(read)
    LOGICAL_READERS[f"array-{ENTRIES}"] = _for_fastavro(_whole_map)


def _for_fastavro(read: _Read) -> Callable[..., Any]:
    return lambda data, schema, _=None: read(data, schema)


@cache
def _readers(calendar: Calendar) -> dict[str, _Read]:
    """Return the function that reads a value, by the names of its type and its logical type."""
    readers: dict[str, _Read] = {
        "int-date": lambda days, _: calendar.day(days),
        "int-time-millis": lambda count, _: time_text(count * 1_000_000),
        "long-time-micros": lambda count, _: time_text(count * 1_000),
        "bytes-decimal": _decimal,
        "fixed-decimal": _decimal,
        "bytes-big-decimal": _big_decimal,
        "string-uuid": _uuid_of_text,
        "fixed-uuid": lambda data, _: UUID(bytes=data) if len(data) == 16 else data,
        "fixed-duration": lambda data, _: (
            PackedInterval(data) if len(data) == _INTERVAL_BYTES else data
        ),
    }
    for name, unit in {"millis": 1_000_000, "micros": 1_000, "nanos": 1}.items():
        for local, zone in {"": "+00:00", "local-": ""}.items():
            readers[f"long-{local}timestamp-{name}"] = _moment(calendar, unit, zone)
    return readers


def _whole_map(entries: Any, _: Any) -> Any:
    return whole_map([(entry["key"], entry["value"]) for entry in entries])


def _moment(calendar: Calendar, unit: int, zone: str) -> _Read:
    return lambda count, _: calendar.moment(count * unit, zone)


def _decimal(data: bytes, schema: Any) -> Any:
    """Return a decimal as it is; fastavro's own reader rounds it to the digits of the schema."""
    return _scaled(data, schema.get("scale") or 0)


def _big_decimal(data: bytes, _: Any) -> Any:
    """Return a decimal that says its own scale."""
    from fastavro import schemaless_reader

    try:
        parts: Any = schemaless_reader(io.BytesIO(data), _BIG_DECIMAL, None)
    except (EOFError, ValueError, IndexError):
        return Unreadable(f"a big-decimal of {len(data)} bytes that has no scale")
    return _scaled(parts["digits"], parts["scale"])


def _scaled(digits: bytes, scale: int) -> Decimal | Unreadable:
    if len(digits) > _MOST_DECIMAL_BYTES or abs(scale) > _MOST_SCALE:
        return Unreadable(f"a decimal of {len(digits)} bytes and scale {scale}")
    return Decimal(int.from_bytes(digits, "big", signed=True)).scaleb(-scale, _EXACT)


def _uuid_of_text(text: str, _: Any) -> UUID | str:
    try:
        return UUID(text)
    except ValueError:
        return text
