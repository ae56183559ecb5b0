"""Reads the bytes of a VARIANT: which values are equal, and their form in Python.

Used where variants are compared and served. Layout: apache/parquet-format, VariantEncoding.md,
version 1. Two values are equal if no function of Spark tells them apart. Equal are objects whose
fields are in another order or whose names are kept otherwise, integers and texts of another width,
decimals with another number of zeros at their end. Not equal are 1 and 1.0, -0.0 and 0.0, or a
date and its text.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from livemart.arrow.single_floats import shortest_double

_SHORT_TEXT, _OBJECT, _ARRAY = 1, 2, 3
_CONSTANTS = {0: None, 1: True, 2: False}
_INTEGERS = (3, 4, 5, 6)
_FLOATS = {7: "<d", 14: "<f"}
_DECIMALS = (8, 9, 10)
_DATE, _TIMESTAMP, _TIMESTAMP_NTZ = 11, 12, 13
_BINARY, _LONG_TEXT = 15, 16
_TIME, _NANOS, _NANOS_NTZ, _UUID = 17, 18, 19, 20
# Bytes of each kind that has always as many; of a decimal, one of them is its scale.
_WIDTHS = dict(zip(range(15), (0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4), strict=True))
_WIDTHS |= {_TIME: 8, _NANOS: 8, _NANOS_NTZ: 8, _UUID: 16}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Python's stack takes a few times as many; programs that write or read the JSON have a stack as
# well.
MOST_LEVELS = 200


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A value without parts: its kind, by number, and its content."""

    kind: int
    content: bytes


@dataclass(frozen=True, slots=True)
class _Parts:
    """An object (`names` in order) or an array (no names): where each of its values begins."""

    names: tuple[bytes, ...] | None
    places: tuple[int, ...]


class _Reader:
    """The values of one variant, by the place where each begins."""

    def __init__(self, value: bytes, metadata: bytes) -> None:
        self._value = value
        self._names = metadata
        self._width = (metadata[0] >> 6) + 1 if metadata else 1

    def at(self, place: int) -> _Scalar | _Parts:
        """Return the value that begins there. Raises IndexError if it is cut, or of no kind."""
        header = self._value[place]
        basic, info = header & 3, header >> 2
        if basic == _SHORT_TEXT:
            return _Scalar(_LONG_TEXT, self._bytes(place + 1, info))
        if basic == _OBJECT:
            return self._parts(place + 1, 4 if info & 16 else 1, ((info >> 2) & 3) + 1, info & 3)
        if basic == _ARRAY:
            return self._parts(place + 1, 4 if info & 4 else 1, 0, info & 3)
        if info in (_BINARY, _LONG_TEXT):
            return _Scalar(info, self._bytes(place + 5, self._number(place + 1, 4)))
        if info not in _WIDTHS:
            raise IndexError(f"a variant of kind {info}")
        return _Scalar(info, self._bytes(place + 1, _WIDTHS[info]))

    def _parts(self, place: int, size_width: int, id_width: int, offset_code: int) -> _Parts:
        count = self._number(place, size_width)
        ids = place + size_width
        offsets = ids + count * id_width
        width = offset_code + 1
        first = offsets + (count + 1) * width
        places = [first + self._number(offsets + number * width, width) for number in range(count)]
        if not id_width:
            return _Parts(None, tuple(places))
        named = sorted(
            (self._name(self._number(ids + number * id_width, id_width)), places[number])
            for number in range(count)
        )
        return _Parts(tuple(name for name, _ in named), tuple(place for _, place in named))

    def _name(self, number: int) -> bytes:
        width, names = self._width, self._names
        count = int.from_bytes(names[1 : 1 + width], "little")
        if number >= count:
            raise IndexError(f"name {number} of {count}")
        at = 1 + (1 + number) * width
        start, end = (int.from_bytes(names[it : it + width], "little") for it in (at, at + width))
        texts = 1 + (count + 2) * width
        return names[texts + start : texts + end]

    def _number(self, place: int, width: int) -> int:
        return int.from_bytes(self._bytes(place, width), "little")

    def _bytes(self, place: int, length: int) -> bytes:
        content = self._value[place : place + length]
        if len(content) < length:
            raise IndexError(f"{len(content)} of {length} bytes at {place}")
        return content


def value_identity(value: bytes, metadata: bytes) -> bytes:
    """Return bytes that two variants share if and only if they are equal; see above.

    Bytes that are no variant of version 1 are equal to themselves alone.
    """
    try:
        return b"".join(_tokens(_Reader(value, metadata)))
    except IndexError:
        return b"?%d:%b%b" % (len(metadata), metadata, value)


def _tokens(reader: _Reader) -> Iterator[bytes]:
    """Yield the parts of a value's identity, from the outside in; each part gives its length."""
    # Not by recursion: a value may be as deep as Spark's own parser goes.
    waiting: list[int | bytes] = [0]
    while waiting:
        place = waiting.pop()
        if isinstance(place, bytes):
            yield place
            continue
        read = reader.at(place)
        if isinstance(read, _Scalar):
            yield _scalar_identity(read)
            continue
        yield b"%b%d:" % (b"[" if read.names is None else b"{", len(read.places))
        for number in reversed(range(len(read.places))):
            waiting.append(read.places[number])
            if read.names is not None:
                waiting.append(_sized(b"", read.names[number]))


def _scalar_identity(scalar: _Scalar) -> bytes:
    kind, content = scalar.kind, scalar.content
    if kind in _INTEGERS:
        return b"i%d:" % int.from_bytes(content, "little", signed=True)
    if kind in _DECIMALS:
        return b"d%d,%d:" % _decimal(content)
    if kind in _FLOATS and math.isnan(struct.unpack(_FLOATS[kind], content)[0]):
        content = b"NaN"
    return _sized(b"%d," % kind, content)


def _decimal(content: bytes) -> tuple[int, int]:
    """Return digits and scale, without the zeros at the end that Spark takes away, too."""
    digits, scale = int.from_bytes(content[1:], "little", signed=True), content[0]
    while scale and digits % 10 == 0:
        digits, scale = digits // 10, scale - 1
    return digits, scale


def _sized(kind: bytes, content: bytes) -> bytes:
    return b"%b%d:%b" % (kind, len(content), content)


def python_value(value: bytes, metadata: bytes) -> Any:
    """Return a variant as Python objects: dicts, lists, and scalars as Spark reads them.

    A time with a zone is aware and UTC; what Python has no type for is text, as are dates and times
    beyond its years. A float is the number that its shortest digits say.

    Raises:
        ValueError: the bytes are no variant of version 1, or it has more than `MOST_LEVELS`.
    """
    try:
        return _python(_Reader(value, metadata), 0, MOST_LEVELS)
    except IndexError as error:
        raise ValueError(f"not a variant: {error}") from error


def _python(reader: _Reader, place: int, levels: int) -> Any:
    read = reader.at(place)
    if isinstance(read, _Scalar):
        return _python_scalar(read)
    if not levels:
        raise ValueError(f"a variant of more than {MOST_LEVELS} levels")
    values = [_python(reader, place, levels - 1) for place in read.places]
    if read.names is None:
        return values
    names = (name.decode(errors="replace") for name in read.names)
    return dict(zip(names, values, strict=True))


def _python_scalar(scalar: _Scalar) -> Any:
    kind, content = scalar.kind, scalar.content
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if kind == _LONG_TEXT:
        return content.decode(errors="replace")
    if kind == _BINARY:
        return content
    if kind == _UUID:
        return str(uuid.UUID(bytes=content))
    if kind in _FLOATS:
        number = struct.unpack(_FLOATS[kind], content)[0]
        return number if kind == 7 else shortest_double(number)
    if kind in _DECIMALS:
        digits, scale = _decimal(content)
        return Decimal(f"{digits}e-{scale}")
    number = int.from_bytes(content, "little", signed=True)
    if kind in _INTEGERS:
        return number
    return _python_time(kind, number)


def _python_time(kind: int, number: int) -> Any:
    try:
        if kind == _DATE:
            return date.fromordinal(_EPOCH.toordinal() + number)
        if kind in (_TIMESTAMP, _TIMESTAMP_NTZ):
            moment = _EPOCH + timedelta(microseconds=number)
            return moment if kind == _TIMESTAMP else moment.replace(tzinfo=None)
    except (OverflowError, ValueError):
        pass
    unit = {_DATE: "D", _NANOS: "ns", _NANOS_NTZ: "ns"}.get(kind, "us")
    text = str(np.array([number], f"datetime64[{unit}]")[0])
    if kind == _TIME:
        return text.partition("T")[2]
    return f"{text}Z" if kind in (_TIMESTAMP, _NANOS) else text
