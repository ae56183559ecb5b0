"""One value of a record to one typed value, exactly: every faster path must equal this."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from livemart.project.types import SparkType

# Unknown fields of nested structs are rescued under their path, such as items[0].note.
Rescued = dict[str, str | None]
Convert = Callable[[Any, str, Rescued], Any]

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"\s?(Z|z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?\Z"
)
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
# Nobody writes more digits by accident, and each costs quadratic time to read.
_MAX_DIGITS = 400
_MAX_FLOAT = 3.4028234663852886e38
_EXACT = Context(prec=2 * _MAX_DIGITS)


# The type of a column that drift brought: a string that takes any value. Never declared.
TEXT = "text"


class Number(str):
    """A JSON number as it was written: no float ever stands between the text and a decimal."""

    __slots__ = ()


class MisfitError(ValueError):
    """A value that does not fit its declared type. `code` is the dead letter's reason."""

    code = "TYPE_MISMATCH"


def converter(kind: SparkType) -> Convert:
    """Return the function that converts a value to `kind`.

    It takes the value (a JSON value with numbers as `Number`, or the text of a CSV field), its path
    and the dictionary of rescued fields; it returns None for a null and raises MisfitError.
    """
    match kind.name:
        case "array":
            return _array(kind)
        case "map":
            return _map(kind)
        case "struct":
            return _struct(kind)
        case "decimal":
            return _decimal(kind)
        case "tinyint" | "smallint" | "int" | "bigint":
            return _integer(kind)
        case _:
            return _SIMPLE[kind.name]


def compact(value: object) -> str | None:
    """Return a value as it is kept in `_rescued_data`: strings as they are, the rest as JSON."""
    if value is None or type(value) is str:
        return value
    return _json(value)


def parse_timestamp(text: str) -> datetime:
    """Return an ISO 8601 timestamp in UTC; one without a zone is UTC. Raises ValueError.

    >>> parse_timestamp("2026-03-01T12:00:00.5+02:00").isoformat()
    '2026-03-01T10:00:00.500000+00:00'
    """
    moment, offset = _timestamp_parts(text)
    return (moment - offset if offset else moment).replace(tzinfo=UTC)


def _timestamp_parts(text: str) -> tuple[datetime, timedelta | None]:
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    # Spark keeps microseconds; finer digits are cut, as Spark cuts them.
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    moment = datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros
    )
    if zone is None:
        return moment, None
    if zone in "Zz":
        return moment, timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 18 or minutes > 59 or (hours == 18 and minutes):
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes)
    return moment, -offset if zone[0] == "-" else offset


def _misfit(path: str, value: object, kind: object) -> MisfitError:
    shown = compact(value) or "null"
    shown = shown if len(shown) <= 80 else f"{shown[:80]}... ({len(shown)} characters)"
    quoted = json.dumps(shown, ensure_ascii=False) if type(value) is str else shown
    return MisfitError(f"{path}: {quoted} does not fit {kind}")


def _string(value: Any, path: str, rescued: Rescued) -> str | None:
    if type(value) is str:
        return value
    if value is None:
        return None
    if isinstance(value, Number):
        return str(value)
    if value is True or value is False:
        return "true" if value else "false"
    raise _misfit(path, value, "string")


def _boolean(value: Any, path: str, rescued: Rescued) -> bool | None:
    if value is None or value is True or value is False:
        return value
    if type(value) is str and (word := value.lower()) in ("true", "false"):
        return word == "true"
    raise _misfit(path, value, "boolean")


def _integer(kind: SparkType) -> Convert:
    bound = 1 << (_BITS[kind.name] - 1)

    def convert(value: Any, path: str, rescued: Rescued) -> int | None:
        if value is None:
            return None
        if isinstance(value, str) and len(value) <= _MAX_DIGITS:
            if _INTEGER.match(value):
                number = int(value)
                if -bound <= number < bound:
                    return number
            elif (exact := _to_decimal(value)) is not None and abs(exact) < bound + 1:
                number = int(exact)
                if number == exact and -bound <= number < bound:
                    return number
        raise _misfit(path, value, kind)

    return convert


def _decimal(kind: SparkType) -> Convert:
    quantum, limit = Decimal(1).scaleb(-kind.scale), 10 ** (kind.precision - kind.scale)

    def convert(value: Any, path: str, rescued: Rescued) -> Decimal | None:
        if value is None:
            return None
        if isinstance(value, str) and (number := _to_decimal(value)) is not None:
            try:
                if (
                    abs(number) < limit
                    and (fitted := number.quantize(quantum, context=_EXACT)) == number
                ):
                    return fitted
            except InvalidOperation:
                pass
        raise _misfit(path, value, kind)

    return convert


def _to_decimal(text: str) -> Decimal | None:
    if len(text) > _MAX_DIGITS or not _NUMBER.match(text):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        # An exponent of twenty digits, which no Decimal holds.
        return None
    # 1e999999999 is short to write and long to work with.
    return number if not number or abs(number.adjusted()) <= _MAX_DIGITS else None


def _double(value: Any, path: str, rescued: Rescued) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) and len(value) <= 4 * _MAX_DIGITS and _NUMBER.match(value):
        number = float(value)
        # NaN and infinities would poison every sum they meet.
        if math.isfinite(number):
            return number
    raise _misfit(path, value, "double")


def _float(value: Any, path: str, rescued: Rescued) -> float | None:
    number = _double(value, path, rescued)
    if number is not None and abs(number) > _MAX_FLOAT:
        raise _misfit(path, value, "float")
    return number


def _date(value: Any, path: str, rescued: Rescued) -> date | None:
    if value is None:
        return None
    if type(value) is str and (match := _DATE.match(value)):
        try:
            return date(*(int(part) for part in match.groups()))
        except ValueError:
            pass
    raise _misfit(path, value, "date")


def _timestamp(value: Any, path: str, rescued: Rescued) -> datetime | None:
    if value is None:
        return None
    if type(value) is str:
        try:
            return parse_timestamp(value)
        except (ValueError, OverflowError):
            pass
    raise _misfit(path, value, "timestamp")


def _local_timestamp(value: Any, path: str, rescued: Rescued) -> datetime | None:
    if value is None:
        return None
    if type(value) is str:
        try:
            moment, offset = _timestamp_parts(value)
            if offset is None:
                return moment
        except ValueError:
            pass
    raise _misfit(path, value, "timestamp_ntz")


def _binary(value: Any, path: str, rescued: Rescued) -> bytes | None:
    if value is None:
        return None
    if type(value) is str:
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            pass
    raise _misfit(path, value, "binary (base64)")


def _array(kind: SparkType) -> Convert:
    assert kind.element is not None
    inner = converter(kind.element)

    def convert(value: Any, path: str, rescued: Rescued) -> list[Any] | None:
        if value is None:
            return None
        if type(value) is not list:
            raise _misfit(path, value, kind)
        return [inner(item, f"{path}[{index}]", rescued) for index, item in enumerate(value)]

    return convert


def _map(kind: SparkType) -> Convert:
    assert kind.element is not None
    inner = converter(kind.element)

    def convert(value: Any, path: str, rescued: Rescued) -> list[tuple[str, Any]] | None:
        if value is None:
            return None
        if type(value) is not dict:
            raise _misfit(path, value, kind)
        # Sorted: two maps that are equal are then equal rows.
        return [
            (_string(name, path, rescued) or "", inner(item, f"{path}.{name}", rescued))
            for name, item in sorted(value.items())
        ]

    return convert


def _struct(kind: SparkType) -> Convert:
    members = {name: converter(each) for name, each in kind.fields}

    def convert(value: Any, path: str, rescued: Rescued) -> dict[str, Any] | None:
        if value is None:
            return None
        if type(value) is not dict:
            raise _misfit(path, value, kind)
        for name in value.keys() - members.keys():
            rescued[f"{path}.{name}"] = compact(value[name])
        return {
            name: member(value.get(name), f"{path}.{name}", rescued)
            for name, member in members.items()
        }

    return convert


def _json(value: object) -> str:
    """Write JSON with numbers as they were written."""
    match value:
        case Number():
            return str(value)
        case dict():
            inner = ",".join(f"{_json(key)}:{_json(item)}" for key, item in value.items())
            return f"{{{inner}}}"
        case list():
            return f"[{','.join(map(_json, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _text(value: Any, path: str, rescued: Rescued) -> str | None:
    """A column that drift brought: whatever the field holds, as it would have been rescued."""
    return compact(value)


_SIMPLE: dict[str, Convert] = {
    TEXT: _text,
    "string": _string,
    "boolean": _boolean,
    "float": _float,
    "double": _double,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _local_timestamp,
    "binary": _binary,
}
