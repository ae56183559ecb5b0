"""Turns whole columns of text into typed ones, where Arrow reads them as the exact reader does.

Used by the readers of JSON lines and CSV for each run of records. A column that the exact reader
could see otherwise is refused, so that speed never changes a value.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.single_floats import are_halves
from livemart.arrow.variants import holds_type
from livemart.epoch import epoch_micros
from livemart.land.records.numbers import MAX_DIGITS
from livemart.land.records.schema import TIMESTAMP

_LOCAL = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_ZONED = _LOCAL + r"(Z|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?)$"
# Digits beyond microseconds, as Java and Go write them.
_FINER = r"(\.[0-9]{6})[0-9]{1,3}"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_FIRST = epoch_micros(datetime(1, 1, 1, tzinfo=UTC))
_LAST = epoch_micros(datetime(9999, 12, 31, tzinfo=UTC))
# So many places pyarrow 26 takes from a decimal without a look at memory that is not its own.
_MOST_PLACES = 38
# Every decimal of so many fits 128 bits.
_MOST_DIGITS = 38
_EXPONENT = re.compile(rb"""0*([0-9]*)(?=["\],}\s]|\Z)""")
_NUMBER = re.compile(rb"(?:[+-]|\\u002[bB])?[0-9]*(?:\.([0-9]*))?")
_OF_NUMBERS = frozenset(b"%c" % character for character in b"0123456789.+-\\uBb")
_BEFORE = frozenset((b"", *(b"%c" % character for character in b'":,[ \t\r\n')))
_PADDING = b"   "
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_TOO_LONG = b"0" * (MAX_DIGITS + 1)
_MANY_DIGITS = b"0" * (_MOST_PLACES - 9)
# Characters of a number that a writer has escaped, but for the plus sign, which .NET escapes.
_ESCAPED = re.compile(rb"\\u00(?:2[dDeE]|3[0-9]|[46]5)")


class UnlikeError(ValueError):
    """A column that the exact reader could see otherwise."""


def text_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type by which Arrow's JSON reader reads a column of type `kind`, None for none."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_float32(kind):
        # Rounded once to float then; where that depends on the text, the exact reader does it.
        return pa.float64()
    if pa.types.is_decimal(kind) and kind.precision + kind.scale > _MOST_DIGITS:
        # A number gets the places of the type before it is checked, and 128 bits would wrap.
        return pa.decimal256(kind.precision, kind.scale)
    if pa.types.is_map(kind) or pa.types.is_binary(kind):
        return None
    if pa.types.is_list(kind):
        inner = text_type(kind.value_type)
        return None if inner is None else pa.list_(pa.field("element", inner))
    if pa.types.is_struct(kind):
        fields = [(field.name, text_type(field.type)) for field in kind]
        if not fields or any(inner is None for _, inner in fields):
            return None
        return pa.struct(fields)
    return kind


def from_text(column: pa.Array, kind: pa.DataType, empty_is_null: bool) -> pa.Array:
    """Return a column read as `text_type(kind)` in type `kind`.

    With `empty_is_null` an empty text is no value of a date or time.

    Raises:
        UnlikeError: the exact reader has to decide.
        pa.ArrowInvalid: a value does not fit.
    """
    if pa.types.is_list(kind):
        values = from_text(column.values, kind.value_type, empty_is_null)
        return pa.ListArray.from_arrays(column.offsets, values, type=kind, mask=_nulls(column))
    if pa.types.is_struct(kind):
        children = [
            from_text(column.field(position), kind.field(position).type, empty_is_null)
            for position in range(kind.num_fields)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=_nulls(column))
    if empty_is_null and pa.types.is_temporal(kind):
        column = pc.if_else(pc.equal(column, ""), None, column)
    if pa.types.is_timestamp(kind):
        return _timestamps(column, kind)
    if pa.types.is_date(kind):
        if not _all_match(column, _DATE):
            raise UnlikeError
        dates = column.cast(kind)
        check_range(dates.cast(pa.timestamp("us")).cast(pa.int64()))
        return dates
    if pa.types.is_floating(kind):
        return _finite(column, kind)
    if pa.types.is_decimal(kind):
        # Arrow's reader forgets to check the precision of a number that it rescaled.
        column.validate(full=True)
    return column if column.type == kind else column.cast(kind)


def holds_decimal(schema: pa.Schema) -> bool:
    """Return whether a column is of decimals, or holds one at any depth."""
    return any(holds_type(field.type, pa.types.is_decimal) for field in schema)


def misleads_decimals(data: bytes) -> bool:
    """Return whether a text of JSON may hold a number of very many places or digits.

    It may be in quotes. pyarrow 26 takes such a number for another decimal, or crashes.
    """
    if b"\\" in data and b"\\u00" in data and _ESCAPED.search(data):
        return True
    zeros = data.translate(_AS_ZEROS)
    if _TOO_LONG in zeros:
        return True
    padded = np.frombuffer(b"%b%b%b" % (_PADDING, data, _PADDING), np.uint8)
    signs = np.flatnonzero(padded == ord("-"))
    is_of_exponent = (padded[signs - 1] | 32 == ord("e")) & _is_digit(padded[signs + 1])
    signs = signs[is_of_exponent]
    if _MANY_DIGITS not in zeros:
        # Then an exponent of one figure is harmless.
        is_short = (padded[signs + 1] == ord("0")) & ~_is_digit(padded[signs + 3])
        signs = signs[_is_digit(padded[signs + 2]) & ~is_short]
    return any(_is_tiny(data, sign - len(_PADDING)) for sign in signs.tolist())


def _is_digit(characters: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    is_digit: npt.NDArray[np.bool_] = (characters >= ord("0")) & (characters <= ord("9"))
    return is_digit


def _is_tiny(data: bytes, sign: int) -> bool:
    """Return whether a number has very many places whose exponent has a minus sign there."""
    exponent = _EXPONENT.match(data, sign + 1)
    if exponent is None:
        return False
    end = start = sign - 1
    while data[start - 1 : start] in _OF_NUMBERS:
        start -= 1
    number = _NUMBER.fullmatch(data, start, end)
    # In UUIDs an `e` and a sign come as well, but no number begins there.
    if number is None or data[start - 1 : start] not in _BEFORE:
        return False
    return len(exponent[1]) > 2 or len(number[1] or b"") + int(exponent[1] or 0) > _MOST_PLACES


def is_plain_text(kind: pa.DataType) -> bool:
    """Return whether `from_plain_text` may read a column of type `kind`."""
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))


def from_plain_text(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column of text, as a file without types has it, in type `kind`; empty is NULL.

    Raises:
        UnlikeError: the exact reader has to decide.
        pa.ArrowInvalid: a value does not fit.
    """
    if pa.types.is_temporal(kind):
        return from_text(column, kind, empty_is_null=False)
    if pa.types.is_string(kind):
        return column
    pattern = _plain_pattern(kind)
    if not _all_match(column, pattern):
        raise UnlikeError
    if pa.types.is_boolean(kind):
        return pc.equal(column, "true")
    if pa.types.is_floating(kind):
        return _finite(column.cast(pa.float64()), kind)
    return column.cast(kind)


def _plain_pattern(kind: pa.DataType) -> str:
    """Return how values are written that mean the same to Arrow and to the exact reader."""
    if pa.types.is_boolean(kind):
        return "^(true|false)$"
    if pa.types.is_integer(kind):
        return "^-?(0|[1-9][0-9]{0,17})$"
    if pa.types.is_decimal(kind):
        whole, places = kind.precision - kind.scale, kind.scale
        if not whole:
            raise UnlikeError
        fraction = rf"(\.[0-9]{{1,{places}}})?" if places else ""
        return f"^-?(0|[1-9][0-9]{{0,{whole - 1}}}){fraction}$"
    return r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$"


def _timestamps(column: pa.Array, kind: pa.DataType) -> pa.Array:
    for finer in (False, True):
        texts = pc.replace_substring_regex(column, _FINER, r"\1") if finer else column
        if kind.tz is not None and _all_match(texts, _ZONED):
            instants = texts.cast(TIMESTAMP).cast(pa.int64())
        elif _all_match(texts, _LOCAL + "$"):
            instants = texts.cast(pa.timestamp("us")).cast(pa.int64())
        else:
            continue
        check_range(instants)
        return instants.cast(kind)
    raise UnlikeError


def _finite(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise UnlikeError
    if column.type == kind:
        return column
    if are_halves(column.to_numpy(zero_copy_only=False)).any():
        raise UnlikeError
    narrow = column.cast(kind, safe=False)
    if not pc.all(pc.is_finite(narrow), min_count=0).as_py():
        raise UnlikeError
    return narrow


def _all_match(column: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern), min_count=0).as_py())


def check_range(instants: pa.Array, first: int | None = None) -> None:
    """Refuse microseconds since 1970 outside of Python's calendar, the years 1 to 9999.

    The exact reader uses it. `first`: an earlier one is refused, too.

    Raises:
        UnlikeError: the exact reader has to decide.
    """
    bounds = pc.min_max(instants)
    oldest = _FIRST if first is None else max(first, _FIRST)
    if bounds["min"].is_valid and not (
        bounds["min"].as_py() >= oldest and bounds["max"].as_py() <= _LAST
    ):
        raise UnlikeError


def _nulls(column: pa.Array) -> pa.Array | None:
    return column.is_null() if column.null_count else None
