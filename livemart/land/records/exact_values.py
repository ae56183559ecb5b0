"""Reads one value of a record exactly: JSON text to a value, a value to a typed one.

Used by the readers of both formats. Every faster path must equal this.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

from livemart.land.reasons import LetterReason
from livemart.land.records.numbers import decimal, double, integer, single
from livemart.land.records.times import day, local_timestamp, timestamp
from livemart.land.records.untyped_values import (
    Convert,
    Number,
    RepeatedKeys,
    Rescued,
    compact,
    misfit,
    name_in_path,
)
from livemart.limits import MAX_NESTING
from livemart.project.spark_types import SparkType

# The type of a string column that is not declared, as drift brings it: it takes any value.
TEXT = "text"
# The verdict on a record that is neither a row nor refused.
PASSED_OVER = "PASSED_OVER"
_HALF = "half a surrogate pair"
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[][{}]', re.S)


class MalformedError(ValueError):
    """A record that cannot be read as its format. `code` is the dead letter's reason."""

    code: str = LetterReason.MALFORMED_RECORD


class TooLargeError(MalformedError):
    """A record that is longer than any that is read."""

    code = LetterReason.RECORD_TOO_LARGE


class NoRowError(MalformedError):
    """A record that is whole and says nothing of a row: it is counted, and no dead letter."""

    code = PASSED_OVER


def parse_json(raw: bytes) -> Any:
    """Return a JSON value with numbers as they are written (`Number`).

    Raises:
        MalformedError: not one JSON value in valid UTF-8, a key twice, too deep, NUL or half a
            surrogate pair in a string.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"invalid UTF-8 at byte {error.start}") from error
    if raw.count(b"[") + raw.count(b"{") > MAX_NESTING:
        _refuse_depth(raw)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise MalformedError(f"{error.msg} at character {error.pos + 1}") from error
    if b"\\u" in raw:
        refuse_characters(value)
    return value


def decode_text(raw: bytes, prefix: str = "") -> str:
    """Return the text of a record; `prefix` says in an error which part of it is meant.

    Raises:
        MalformedError: invalid UTF-8, or NUL.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"{prefix}invalid UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise MalformedError(f"{prefix}a NUL character")
    return text


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                raise MalformedError(f"key {name} twice")
            names.add(name)
    return record


def _refuse_constant(name: str) -> None:
    raise MalformedError(f"{name} is not JSON")


def _refuse_depth(raw: bytes) -> None:
    depth = 0
    for match in _BRACKETS.finditer(raw):
        if match[0] in (b"[", b"{"):
            depth += 1
            if depth > MAX_NESTING:
                raise MalformedError(f"more than {MAX_NESTING} levels deep")
        elif match[0] in (b"]", b"}"):
            depth -= 1


def refuse_characters(value: Any) -> None:
    """Refuse values that no table takes, at any depth; raises MalformedError."""
    match value:
        case RepeatedKeys():
            _unique(value.pairs)
        case dict():
            for name, item in value.items():
                refuse_characters(name)
                refuse_characters(item)
        case list():
            for item in value:
                refuse_characters(item)
        case str():
            if "\0" in value:
                raise MalformedError("a NUL character")
            try:
                value.encode("utf-8")
            except UnicodeEncodeError as error:
                # As such halves the readers of typed files hand on bytes that are no UTF-8.
                is_byte = "\udc80" <= value[error.start] <= "\udcff"
                cause = "invalid UTF-8, or half a surrogate pair" if is_byte else _HALF
                raise MalformedError(cause) from None


def converter(kind: SparkType, empty_is_null: bool) -> Convert:
    """Return the function that converts a value to `kind`.

    It takes a value that is no null (a JSON value with numbers as `Number`, or the text of a CSV
    field), its path and the dictionary of rescued fields. It raises MisfitError.

    Args:
        kind: of the column, or of what is in it.
        empty_is_null: take the empty values of writers who know no types: `""` for no value. PHP
            also writes `[]` for an object without fields.
    """
    convert = _strict(kind, empty_is_null)
    if not empty_is_null or kind.name in _TEXTS:
        return convert
    is_object = kind.name in ("map", "struct")

    def lenient(value: Any, path: str, rescued: Rescued) -> Any:
        if value == "":
            return None
        return convert({} if is_object and value == [] else value, path, rescued)

    return lenient


def _strict(kind: SparkType, empty_is_null: bool) -> Convert:
    match kind.name:
        case "array":
            return _array(kind, empty_is_null)
        case "map":
            return _map(kind, empty_is_null)
        case "struct":
            return _struct(kind, empty_is_null)
        case "decimal":
            return decimal(kind)
        case "tinyint" | "smallint" | "int" | "bigint":
            return integer(kind)
        case _:
            return _SIMPLE[kind.name]


def _string(value: Any, path: str, rescued: Rescued) -> str:
    if type(value) is str:
        return value
    if isinstance(value, Number):
        return str(value)
    if value is True or value is False:
        return "true" if value else "false"
    raise misfit(path, value, "string")


def _boolean(value: Any, path: str, rescued: Rescued) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str and (word := value.lower()) in ("true", "false"):
        return word == "true"
    raise misfit(path, value, "boolean")


def _binary(value: Any, path: str, rescued: Rescued) -> bytes:
    if isinstance(value, bytes):
        return value
    if type(value) is str:
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            pass
    raise misfit(path, value, "binary (base64)")


def _array(kind: SparkType, empty_is_null: bool) -> Convert:
    assert kind.element is not None
    inner = converter(kind.element, empty_is_null)

    def convert(value: Any, path: str, rescued: Rescued) -> list[Any]:
        if type(value) is not list:
            raise misfit(path, value, kind)
        return [
            None if item is None else inner(item, f"{path}[{index}]", rescued)
            for index, item in enumerate(value)
        ]

    return convert


def _map(kind: SparkType, empty_is_null: bool) -> Convert:
    assert kind.element is not None
    inner = converter(kind.element, empty_is_null)

    def convert(value: Any, path: str, rescued: Rescued) -> list[tuple[str, Any]]:
        if type(value) is not dict:
            raise misfit(path, value, kind)
        # In the order of delivery, which models see.
        return [
            (name, None if item is None else inner(item, f"{path}.{name_in_path(name)}", rescued))
            for name, item in value.items()
        ]

    return convert


def _struct(kind: SparkType, empty_is_null: bool) -> Convert:
    members = {
        name: (f".{name_in_path(name)}", converter(member, empty_is_null))
        for name, member in kind.fields
    }

    def convert(value: Any, path: str, rescued: Rescued) -> dict[str, Any]:
        if type(value) is not dict:
            raise misfit(path, value, kind)
        for name in value.keys() - members.keys():
            rescued[f"{path}.{name_in_path(name)}"] = compact(value[name])
        return {
            name: None if (item := value.get(name)) is None else member(item, path + step, rescued)
            for name, (step, member) in members.items()
        }

    return convert


def _text(value: Any, path: str, rescued: Rescued) -> str | None:
    """A column that drift brought: whatever the field holds, as it would have been rescued."""
    return compact(value)


# An empty text is a value of these types.
_TEXTS = ("string", "binary", TEXT)

_SIMPLE: dict[str, Convert] = {
    TEXT: _text,
    "string": _string,
    "boolean": _boolean,
    "float": single,
    "double": double,
    "date": day,
    "timestamp": timestamp,
    "timestamp_ntz": local_timestamp,
    "binary": _binary,
}

_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_float=Number,
    parse_int=Number,
    parse_constant=_refuse_constant,
)
