"""Reads values as a connector encodes them, to values as JSON elsewhere writes them.

Used for each column of a change record: the schema that the record holds says how it is encoded,
else the column's type and the source's options do. Whether the value fits the type is judged later.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from livemart.epoch import day_text, timestamp_text
from livemart.land.records.untyped_values import (
    MisfitError,
    Number,
    first_name,
    misfit,
    name_in_path,
)
from livemart.project.graph import EnvelopeOptions
from livemart.project.spark_types import SparkType

Schema = Mapping[str, Any]
# The type by which a field is read that no column, or struct, names.
UNNAMED = SparkType("string")
_MAX_SCALE = 400
_INTEGER = re.compile(r"-?[0-9]{1,20}\Z")
_ISO_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})Z\Z")
# Numbers of these are times only where a column takes text or times; elsewhere they stay numbers.
_TIMED = frozenset({"date", "timestamp", "timestamp_ntz", "string", "text"})

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
_ISO_TIMESTAMP = "io.debezium.time.IsoTimestamp"
_DAYS = frozenset({"io.debezium.time.Date", "org.apache.kafka.connect.data.Date"})
# How many nanoseconds one of a column's numbers is.
_INSTANTS = {
    "io.debezium.time.Timestamp": 1_000_000,
    "org.apache.kafka.connect.data.Timestamp": 1_000_000,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1,
}
_TIMES = {
    "io.debezium.time.Time": 1_000_000,
    "org.apache.kafka.connect.data.Time": 1_000_000,
    "io.debezium.time.MicroTime": 1_000,
    "io.debezium.time.NanoTime": 1,
}
_SCHEMA_MISSING = "and the record has no schema: the source's envelope_options have to say it"


def decode(
    value: Any, path: str, kind: SparkType, schema: Schema | None, options: EnvelopeOptions
) -> Any:
    """Return a value as JSON writes it without an envelope: `12.50`, `"2026-03-01"`.

    Args:
        value: a JSON value with numbers as they are written.
        path: of the value: a column's own is its name, as paths spell it.
        kind: declared type.
        schema: what the record says of the value, None if it says nothing.
        options: what the source says.

    Raises:
        MisfitError: it is not encoded so.
    """
    if value is None:
        return None
    match kind.name if schema is None else schema.get("type"):
        case "array" if type(value) is list:
            inner, items = kind.element or kind, _part(schema, "items")
            return [
                decode(item, f"{path}[{index}]", inner, items, options)
                for index, item in enumerate(value)
            ]
        case "map" if type(value) is dict:
            inner, values = kind.element or kind, _part(schema, "values")
            return {
                name: decode(item, f"{path}.{name_in_path(name)}", inner, values, options)
                for name, item in value.items()
            }
        case "struct" if type(value) is dict and not _is_variable(schema):
            members, fields = dict(kind.fields), fields_of(schema)
            return {
                name: decode(
                    item,
                    f"{path}.{name_in_path(name)}",
                    members.get(name, UNNAMED),
                    fields.get(name),
                    options,
                )
                if name in members or name in fields
                else item
                for name, item in value.items()
            }
    if schema is None:
        return _by_type(value, path, kind, options)
    return _by_schema(value, path, kind, schema, options)


def fields_of(schema: Schema | None) -> dict[str, Schema]:
    """Return the schemas of a struct's fields by name; none if there is no such schema."""
    fields = schema.get("fields") if schema is not None else None
    if not isinstance(fields, list):
        return {}
    return {str(field.get("field")): field for field in fields if isinstance(field, dict)}


def is_base64(kind: SparkType, schema: Schema | None, options: EnvelopeOptions) -> bool:
    """Return whether a column holds bytes that the connector was set to write in base64."""
    if kind.name != "binary":
        return False
    if schema is None:
        return options.binary_handling.startswith("base64")
    return schema.get("type") == "string" and options.binary_handling != "hex"


def _is_variable(schema: Schema | None) -> bool:
    return schema is not None and schema.get("name") == _VARIABLE_DECIMAL


def _part(schema: Schema | None, name: str) -> Schema | None:
    part = schema.get(name) if schema is not None else None
    return part if isinstance(part, dict) else None


def _by_schema(
    value: Any, path: str, kind: SparkType, schema: Schema, options: EnvelopeOptions
) -> Any:
    name = schema.get("name")
    if name == _DECIMAL:
        scale = (_part(schema, "parameters") or {}).get("scale")
        return _unscaled(value, scale, path, kind) if type(value) is str else value
    if name == _VARIABLE_DECIMAL:
        return _variable(value, path, kind)
    if isinstance(value, Number) and kind.name in _TIMED:
        if name in _DAYS:
            return _date(value, path, kind)
        if name in _INSTANTS:
            return _instant(value, _INSTANTS[name], path, kind)
        if name in _TIMES:
            return _time(value, _TIMES[name], path, kind)
        return value
    if kind.name == "binary" and schema.get("type") == "string":
        return _binary(value, path, kind, options)
    return _without_zone(value, kind, name == _ISO_TIMESTAMP)


def _by_type(value: Any, path: str, kind: SparkType, options: EnvelopeOptions) -> Any:
    match kind.name:
        case "decimal" if type(value) is dict:
            return _variable(value, path, kind)
        case "decimal" if type(value) is str:
            if options.decimal_handling is None:
                raise MisfitError(f"{path}: a decimal in a text, {_SCHEMA_MISSING}")
            if options.decimal_handling == "precise":
                return _unscaled(value, kind.scale, path, kind)
            return value
        case "date" | "timestamp" | "timestamp_ntz" if isinstance(value, Number):
            return _by_precision(value, path, kind, options)
        case "binary":
            return _binary(value, path, kind, options)
    return _without_zone(value, kind, options.time_precision == "isostring")


def _by_precision(value: Number, path: str, kind: SparkType, options: EnvelopeOptions) -> str:
    mode = options.time_precision
    if mode == "connect":
        unit = 1_000_000
    else:
        digits = options.digits_of(first_name(path))
        unit = 1_000_000 if digits is not None and digits <= 3 else 1_000
        has_precision = kind.name == "date" or digits is not None
        if mode in (None, "isostring") or not has_precision:
            raise MisfitError(f"{path}: {value} is a number, {_SCHEMA_MISSING}")
    return _date(value, path, kind) if kind.name == "date" else _instant(value, unit, path, kind)


def _unscaled(text: str, scale: Any, path: str, kind: SparkType) -> Number:
    """Return the decimal of which `text` holds the digits: a whole number in base64."""
    try:
        digits = base64.b64decode(text, validate=True)
        places = int(scale)
        if not digits or abs(places) > _MAX_SCALE or len(digits) > _MAX_SCALE:
            raise ValueError
        number = Decimal(int.from_bytes(digits, "big", signed=True))
        sign, coefficient, _ = number.as_tuple()
        return Number(format(Decimal((sign, coefficient, -places)), "f"))
    except (ValueError, TypeError):
        raise misfit(path, text, f"{kind} (its digits in base64)") from None


def _variable(value: Any, path: str, kind: SparkType) -> Any:
    if type(value) is dict and type(value.get("value")) is str:
        return _unscaled(value["value"], value.get("scale"), path, kind)
    return value


def _count(value: Number, path: str, kind: SparkType) -> int:
    if not _INTEGER.match(value):
        raise misfit(path, value, kind)
    return int(value)


def _date(value: Number, path: str, kind: SparkType) -> str:
    return day_text(_count(value, path, kind))


def _instant(value: Number, unit: int, path: str, kind: SparkType) -> str:
    return timestamp_text(_count(value, path, kind) * unit)


def _time(value: Number, unit: int, path: str, kind: SparkType) -> str:
    """Return a time of day, or a span as MySQL has them: `-101:00:00`."""
    nanoseconds = _count(value, path, kind) * unit
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    fraction = f".{rest:09}".rstrip("0").rstrip(".")
    return f"{'-' if nanoseconds < 0 else ''}{text}{fraction}"


def _binary(value: Any, path: str, kind: SparkType, options: EnvelopeOptions) -> Any:
    if type(value) is not str:
        return value
    if options.binary_handling == "base64-url-safe":
        return value.replace("-", "+").replace("_", "/")
    if options.binary_handling == "hex":
        try:
            return base64.b64encode(bytes.fromhex(value)).decode()
        except ValueError:
            raise misfit(path, value, "binary (hex)") from None
    return value


def _without_zone(value: Any, kind: SparkType, is_local: bool) -> Any:
    """Return a text without the `Z` that `isostring` puts behind dates and local times, too."""
    if type(value) is not str:
        return value
    if kind.name == "date" and (match := _ISO_DATE.match(value)):
        return match[1]
    if kind.name == "timestamp_ntz" and is_local:
        return value.removesuffix("Z")
    return value
