"""Returns values of Arrow as the exact reader takes them: times as the text that JSON has of them.

Used for records of Parquet. Python's own times have the years 1 to 9999, whole microseconds and no
24:00. Files hold more: a value beyond them is written out as it is, and fits no type of time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from livemart.epoch import time_text
from livemart.land.records.typed.calendars import Calendar
from livemart.land.records.typed.typed_records import as_in_json
from livemart.land.records.untyped_values import Number, RepeatedKeys, compact

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def record_values(batch: pa.RecordBatch, calendar: Calendar) -> list[dict[str, Any]]:
    """Return rows as dictionaries of values as `as_in_json` takes them."""
    columns = [_values(column, calendar) for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.Array, calendar: Calendar) -> list[Any]:
    kind, types = column.type, pa.types
    if isinstance(kind, pa.UuidType):
        return [None if raw is None else uuid.UUID(bytes=raw) for raw in column.storage.to_pylist()]
    if isinstance(kind, pa.BaseExtensionType):
        return _values(column.storage, calendar)
    if types.is_dictionary(kind):
        return _values(column.dictionary_decode(), calendar)
    if types.is_map(kind):
        return _maps(column, calendar)
    if types.is_struct(kind):
        return _structs(column, calendar)
    if types.is_nested(kind):
        return _lists(column, calendar)
    if types.is_string(kind) or types.is_large_string(kind):
        return _texts(column)
    if write := _writer(kind, calendar):
        is_long = types.is_date64(kind) or kind.bit_width == 64
        counts = column.view(pa.int64() if is_long else pa.int32()).to_pylist()
        return [None if count is None else write(count) for count in counts]
    return column.to_pylist()  # type: ignore[no-any-return]


def _writer(kind: pa.DataType, calendar: Calendar) -> Callable[[int], Any] | None:
    """Return the function that writes a count of some unit; None for other types."""
    types = pa.types
    if types.is_date32(kind):
        return calendar.day
    if types.is_date64(kind):
        return lambda millis: calendar.day(millis // 86_400_000)
    if not types.is_temporal(kind) or types.is_interval(kind):
        return None
    unit = _NANOSECONDS[kind.unit]
    if types.is_time(kind):
        return lambda count: time_text(count * unit)
    if types.is_duration(kind):
        # Parquet holds no such type: to other readers it is this number.
        return Number
    zone = "" if kind.tz is None else "+00:00"
    return lambda count: calendar.moment(count * unit, zone)


def _texts(column: pa.Array) -> list[Any]:
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        # Nothing has seen to it that a file's texts are UTF-8: such a record is refused later.
        is_large = pa.types.is_large_string(column.type)
        raws = column.view(pa.large_binary() if is_large else pa.binary()).to_pylist()
        return [None if raw is None else raw.decode("utf-8", "surrogateescape") for raw in raws]


def _structs(column: pa.StructArray, calendar: Calendar) -> list[Any]:
    names = [field.name for field in column.type]
    if not names:
        return [{} if is_valid else None for is_valid in column.is_valid().to_pylist()]
    members = [_values(member, calendar) for member in column.flatten()]
    rows = zip(column.is_valid().to_pylist(), *members, strict=True)
    return [dict(zip(names, row, strict=True)) if valid else None for valid, *row in rows]


def _lists(column: pa.Array, calendar: Calendar) -> list[Any]:
    items = iter(_values(column.flatten(), calendar))
    lengths = pc.list_value_length(column).to_pylist()
    return [None if length is None else list(islice(items, length)) for length in lengths]


def _maps(column: pa.MapArray, calendar: Calendar) -> list[Any]:
    ends: list[int] = column.offsets.to_pylist()
    entries = (ends[0], ends[-1] - ends[0])
    keys = [str(compact(as_in_json(key))) for key in _values(column.keys.slice(*entries), calendar)]
    items = _values(column.items.slice(*entries), calendar)
    pairs = list(zip(keys, items, strict=True))
    maps: list[Any] = []
    for is_valid, start, end in zip(
        column.is_valid().to_pylist(), ends[:-1], ends[1:], strict=True
    ):
        held = pairs[start - ends[0] : end - ends[0]]
        fields = dict(held)
        whole = fields if len(fields) == len(held) else RepeatedKeys(held)
        maps.append(whole if is_valid else None)
    return maps
