"""Converts values between Arrow, Python, JSON and text: exact, in UTC, each in one form.

Used by publication to write rows, and by the server to show rows and to read what a caller asks.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from livemart.arrow.single_floats import shortest_double, shortest_doubles
from livemart.arrow.variant_values import python_value
from livemart.arrow.variants import has_parts, is_variant
from livemart.epoch import parse_moment

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
# A reader in JavaScript has no other number than a double.
_MOST_EXACT = 2**53 - 1
# Kinds of a moment; those of the second name no zone.
TIMESTAMPS = ("timestamp", "timestamp_ntz")
_COMPACT = (",", ":")
# A key is found by it: two of NaN are not equal, but one is itself.
_NAN = float("nan")
_INT_LIMITS = {"int": 2**31, "bigint": 2**63}


def kind_of(arrow: pa.DataType) -> str:
    """Return the kind that a column of this type is served as; see `ServedModel`.

    >>> kind_of(pa.decimal128(18, 2))
    'decimal(18,2)'
    """
    types = pa.types
    if types.is_dictionary(arrow):
        return kind_of(arrow.value_type)
    if types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if types.is_boolean(arrow):
        return "boolean"
    if types.is_int64(arrow) or types.is_uint32(arrow) or types.is_uint64(arrow):
        return "bigint"
    if types.is_integer(arrow):
        return "int"
    if types.is_float32(arrow):
        return "float"
    if types.is_floating(arrow):
        return "double"
    if types.is_date(arrow):
        return "date"
    if types.is_timestamp(arrow):
        return "timestamp" if arrow.tz is not None else "timestamp_ntz"
    if has_parts(arrow):
        return "json"
    if _is_binary(arrow):
        return "binary"
    return "string"


def decimal_size(kind: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal's kind, None for any other kind."""
    match = _DECIMAL.fullmatch(kind)
    return (int(match[1]), int(match[2])) if match else None


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column's values as Python objects; nested ones as JSON values already.

    Times are aware and UTC (a time without a zone is kept as if it were UTC), maps are objects with
    their entries in their order. -0.0 is 0.0: SQLite has no other zero. NaN is one object. A float
    is the double of its shortest decimal.
    """
    if pa.types.is_float32(column.type):
        column = shortest_doubles(column)
    arrow = column.type
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    values: list[Any] = column.to_pylist()
    convert = _converter(arrow)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def json_value(value: Any, kind: str = "") -> Any:
    """Return a value of the store as JSON knows it.

    Decimals are strings with all their digits. Times are ISO 8601 in UTC with `Z`; times of a kind
    without a zone, which name no instant, have no `Z`. Binary is base64. NaN and infinities, which
    JSON lacks, are strings; so are whole numbers beyond 2^53, which JavaScript would round.

    >>> json_value(Decimal("8243.50")), json_value(2**53 + 1)
    ('8243.50', '9007199254740993')
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MOST_EXACT:
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        if kind == "timestamp_ntz" or value.tzinfo is None:
            return value.replace(tzinfo=None).isoformat()
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    return value


def parse_served_value(kind: str, text: str) -> Any:
    """Return the value of a column that `text` writes, as in JSON.

    Raises:
        ValueError: the text is no value of this kind; the message says what is expected.
    """
    try:
        return _PARSERS[kind.partition("(")[0]](kind, text)
    # OverflowError: a time that has no UTC.
    except (KeyError, ValueError, OverflowError, InvalidOperation) as error:
        form = ", as 2026-03-01T12:00:00.123456Z is" if kind in TIMESTAMPS else ""
        raise ValueError(f"{text!r} is not a value of type {kind}{form}") from error


def _converter(arrow: pa.DataType) -> Callable[[Any], Any] | None:
    types = pa.types
    if types.is_timestamp(arrow):
        return _utc if arrow.tz is not None else _as_if_utc
    if types.is_float32(arrow):
        return lambda value: _NAN if math.isnan(value) else shortest_double(value) + 0.0
    if types.is_floating(arrow):
        return lambda value: _NAN if math.isnan(value) else value + 0.0
    if is_variant(arrow):
        return lambda parts: _variant_of(parts["value"], parts["metadata"])
    if types.is_struct(arrow):
        fields = [(field.name, _nested(field.type)) for field in arrow]
        return lambda value: {name: read(value[name]) for name, read in fields}
    if types.is_map(arrow):
        read_key, read_item = _nested(arrow.key_type), _nested(arrow.item_type)
        return lambda value: {_key_text(read_key(key)): read_item(item) for key, item in value}
    if types.is_nested(arrow):
        read = _nested(arrow.value_type)
        return lambda value: [read(element) for element in value]
    if kind_of(arrow) == "string" and not (types.is_string(arrow) or types.is_large_string(arrow)):
        return str
    return None


def _nested(arrow: pa.DataType) -> Callable[[Any], Any]:
    """Return the function that makes a JSON value of an element."""
    # json_value knows a time that names no zone.
    is_local = pa.types.is_timestamp(arrow) and arrow.tz is None
    convert = None if is_local else _converter(arrow)

    def read(value: Any) -> Any:
        if value is None:
            return None
        return json_value(value if convert is None else convert(value))

    return read


def _key_text(key: Any) -> str:
    """Return a key of a map, a JSON value, as the name of a field: a text as it is."""
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False, separators=_COMPACT)


def _variant_of(value: bytes, metadata: bytes) -> Any:
    try:
        return _variant(python_value(value, metadata))
    except ValueError:
        # It is damaged, or too deep for a reader of JSON: only its bytes can be given.
        return json_value(value)


def _variant(value: Any) -> Any:
    """Return a variant as JSON. Nothing says that a number in it is a decimal, so it is a number.

    Unless that would change its digits: then it is a string, as whole numbers beyond 2^53 are.
    """
    if isinstance(value, dict):
        return {name: _variant(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_variant(part) for part in value]
    if isinstance(value, Decimal):
        number = float(value)
        is_kept = Decimal(repr(number)) == value
        if value == value.to_integral_value():
            return json_value(int(value))
        return number if is_kept else json_value(value)
    return json_value(value + 0.0 if isinstance(value, float) else value)


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _as_if_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


def _is_binary(arrow: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(arrow)
        or types.is_large_binary(arrow)
        or types.is_fixed_size_binary(arrow)
        or types.is_binary_view(arrow)
    )


def _parse_int(kind: str, text: str) -> int:
    limit = _INT_LIMITS[kind]
    if not re.fullmatch(r"[+-]?\d{1,19}", text, re.ASCII):
        raise ValueError(text)
    value = int(text)
    if not -limit <= value < limit:
        raise ValueError(text)
    return value


def _parse_boolean(kind: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _parse_double(kind: str, text: str) -> float:
    # Python takes digits of any script, and underscores between them.
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def _parse_decimal(kind: str, text: str) -> Decimal:
    if not re.fullmatch(r"[+-]?\d{1,40}(\.\d{1,40})?", text, re.ASCII):
        raise ValueError(text)
    return Decimal(text)


def _parse_timestamp(kind: str, text: str) -> datetime:
    return parse_moment(text).astimezone(UTC)


_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "string": lambda _, text: text,
    "int": _parse_int,
    "bigint": _parse_int,
    "boolean": _parse_boolean,
    # A column holds the double of what is shown, and is compared as that.
    "float": _parse_double,
    "double": _parse_double,
    "decimal": _parse_decimal,
    "date": lambda _, text: date.fromisoformat(text),
    "timestamp": _parse_timestamp,
    "timestamp_ntz": _parse_timestamp,
    "binary": lambda _, text: base64.b64decode(text, validate=True),
}
