"""Holds values as they were written, until a type takes or refuses them.

Used by every conversion of a value. Numbers stay text, so that no digit is lost on the way.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from livemart.land.reasons import LetterReason
from livemart.spark_sql import quoted, unquoted

# Unknown fields are rescued under their path, such as items[0].note.
Rescued = dict[str, str | None]
Convert = Callable[[Any, str, Rescued], Any]

_CUTS_A_PATH = re.compile(r"[.\[]|\A`")
_FIRST_NAME = re.compile(r"`(?:[^`]|``)*`|[^.\[]*")
# Between a value that is refused and its type, and before a type that would hold it.
DOES_NOT_FIT = " does not fit "
WIDER = ", it is wider than the declared type: declare "


class Number(str):
    """A JSON number as it was written: it is never a float on its way to a decimal."""

    __slots__ = ()


class PackedInterval(bytes):
    """An interval as Parquet and Avro hold it: months, days and milliseconds, four bytes each."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return it in ISO 8601, which keeps the three apart: `P1M2DT3.5S`."""
        months, days, millis = struct.unpack("<III", self)
        seconds = f"{millis // 1_000}.{millis % 1_000:03}".rstrip("0").rstrip(".")
        return f"P{months}M{days}DT{seconds}S"


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """A map or struct that has a name twice, as pairs in order of delivery: no column takes it."""

    pairs: Sequence[tuple[str, Any]]

    def items(self) -> Sequence[tuple[str, Any]]:
        """Return all pairs, as a dictionary does."""
        return self.pairs


def whole_map(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any] | RepeatedKeys:
    """Return the value of a map or a struct with these names and values."""
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else RepeatedKeys(pairs)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value whose meaning is unknown, so it fits no type; `detail` says why."""

    detail: str


class MisfitError(ValueError):
    """A value that does not fit its declared type. `code` is the dead letter's reason."""

    code = LetterReason.TYPE_MISMATCH


def name_in_path(name: str) -> str:
    """Return the name of a field as a path spells it: as SQL does, in backticks if need be.

    >>> name_in_path("note"), name_in_path("a.b")
    ('note', '`a.b`')
    """
    return quoted(name) if _CUTS_A_PATH.search(name) else name


def first_name(path: str) -> str:
    """Return the name of the field that a path begins at.

    >>> first_name("items[0].note"), first_name("`a.b`.note")
    ('items', 'a.b')
    """
    match = _FIRST_NAME.match(path)
    assert match is not None
    return unquoted(match[0]) if match[0].startswith("`") else match[0]


def compact(value: object) -> str | None:
    """Return a value as it is kept in `_rescued_data`: strings as they are, the rest as JSON."""
    if value is None or type(value) is str:
        return value
    return _json(value)


def misfit(path: str, value: object, kind: object, wider: object = None) -> MisfitError:
    """Return the refusal of a value at a path for a type; `wider`: one that would hold it."""
    shown = "null" if (text := compact(value)) is None else text
    shown = shown if len(shown) <= 80 else f"{shown[:80]}... ({len(shown)} characters)"
    quoted = json.dumps(shown, ensure_ascii=False) if type(value) is str else shown
    advice = "" if wider is None else f"{WIDER}{wider}"
    return MisfitError(f"{path}: {quoted}{DOES_NOT_FIT}{kind}{advice}")


def _json(value: object) -> str:
    """Write JSON with numbers as they were written."""
    match value:
        case Number():
            return str(value)
        case dict() | RepeatedKeys():
            inner = ",".join(f"{_json(key)}:{_json(item)}" for key, item in value.items())
            return f"{{{inner}}}"
        case list():
            return f"[{','.join(map(_json, value))}]"
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case Unreadable():
            return json.dumps(value.detail, ensure_ascii=False)
        case _:
            return json.dumps(value, ensure_ascii=False)
