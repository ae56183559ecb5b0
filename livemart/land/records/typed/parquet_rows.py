"""Reads the rows of a Parquet file.

Used for each part of such a file. A column that has the declared type already is taken as it is;
all others are read record by record, exactly.

Times are read as the text that JSON has of them. Python's own times have the years 1 to 9999, whole
microseconds and no 24:00. Files hold more: a value beyond them is written out as it is, and fits no
type of time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from livemart.arrow.calendars import texts_of
from livemart.arrow.exact_numbers import cast_exactly
from livemart.epoch import time_text
from livemart.land.records.columns import UnlikeError, check_range
from livemart.land.records.judge import Chunk, Group, malformed, unrescued
from livemart.land.records.runs import Span
from livemart.land.records.typed.calendars import Calendar, calendar_of
from livemart.land.records.typed.typed_records import as_in_json, read_typed_records, written_record
from livemart.land.records.untyped_values import Number, PackedInterval, compact, whole_map

_RUN_RECORDS = 8_192
# Dead letters of more records of a run take all of them apart at once.
_FEW_RECORDS = 64
# Row groups of about so many rows together are one part.
_PART_ROWS = 500_000
_MICROS_OF_A_DAY = 86_400_000_000
_BYTES_OF_TEXT = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def parquet_spans(path: Path) -> list[Span]:
    """Return runs of row groups that can be read by themselves; a broken file is one."""
    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return [Span()]
    spans: list[Span] = []
    start, first, row = 0, 1, 1
    for number in range(metadata.num_row_groups):
        row += metadata.row_group(number).num_rows
        if row - first >= _PART_ROWS:
            spans.append(Span(start, number + 1, first))
            start, first = number + 1, row
    if start < metadata.num_row_groups or not spans:
        spans.append(Span(start, None, first))
    return spans


def read_parquet(group: Group, path: Path, span: Span) -> Iterator[Chunk]:
    """Yield the rows of a file, numbered from 1. A row group that is broken is one refusal.

    Args:
        group: columns of the records.
        path: where the file is.
        span: row groups, and the number of the first row.
    """
    if not path.stat().st_size:
        return
    try:
        # As nanoseconds, which are the default, days before 1677 and after 2262 are other days.
        file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except (OSError, pa.ArrowException) as error:
        yield malformed(group, [(span.first_line, b"")], f"the file is no Parquet: {error}")
        return
    with file:
        names = file.schema_arrow.names
        if not file.metadata.num_columns:
            # A few bytes may say any number of rows.
            yield malformed(group, [(span.first_line, b"")], "the file has no columns")
            return
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield malformed(
                group, [(span.first_line, b"")], f"the file has column {twice[0]} twice"
            )
            return
        end = file.num_row_groups if span.end is None else span.end
        form = _form(file)
        row = span.first_line
        for number in range(span.start, end):
            after = row + file.metadata.row_group(number).num_rows
            try:
                for batch in file.iter_batches(_RUN_RECORDS, row_groups=[number]):
                    yield _chunk(group, batch, row, form)
                    row += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                detail = f"rows {row} to {after - 1} cannot be read: {error}"
                yield malformed(group, [(row, b"")], detail)
            row = after


@dataclass(frozen=True, slots=True)
class _Form:
    """Facts in a file's footer about its values: their calendar, which columns are intervals."""

    calendar: Calendar
    intervals: frozenset[str]


def _form(file: pq.ParquetFile) -> _Form:
    columns = (file.schema.column(number) for number in range(file.metadata.num_columns))
    intervals = {column.path for column in columns if column.converted_type == "INTERVAL"}
    return _Form(calendar_of(texts_of(file.metadata.metadata)), frozenset(intervals))


def _chunk(group: Group, batch: pa.RecordBatch, first: int, form: _Form) -> Chunk:
    numbers = range(first, first + batch.num_rows)

    asked: list[int] = []
    all_records: list[dict[str, Any]] = []

    def written(row: int) -> bytes:
        asked.append(row)
        if len(asked) <= _FEW_RECORDS:
            return written_record(_records(batch.slice(row, 1), form)[0])
        if not all_records:
            all_records.extend(_records(batch, form))
        return written_record(all_records[row])

    ready = _ready_columns(group, batch, form.calendar)
    others = [name for name in batch.schema.names if name not in ready and _says(batch, name)]
    if others or len(ready) < len(group.schema.names):
        records = _records(batch.select(others), form) if others else [{}] * batch.num_rows
        return read_typed_records(group, list(zip(numbers, records, strict=True)), written, ready)
    columns = [ready[name] for name in group.schema.names]
    return Chunk(unrescued(group, columns, batch.num_rows), numbers, written, [])


def _says(batch: pa.RecordBatch, name: str) -> bool:
    return bool(batch.column(name).null_count < batch.num_rows)


def _records(batch: pa.RecordBatch, form: _Form) -> list[dict[str, Any]]:
    records = record_values(batch, form.calendar)
    for name in form.intervals.intersection(batch.schema.names):
        for record in records:
            if record[name] is not None:
                record[name] = PackedInterval(record[name])
    return records


def _ready_columns(group: Group, batch: pa.RecordBatch, calendar: Calendar) -> dict[str, pa.Array]:
    """Return the declared columns by name, but those that the exact reader may read otherwise."""
    columns = {}
    for field in group.schema.arrow:
        if field.name not in batch.schema.names:
            columns[field.name] = pa.nulls(batch.num_rows, field.type)
            continue
        with suppress(UnlikeError, pa.ArrowException):
            columns[field.name] = _as_declared(batch.column(field.name), field.type, calendar)
    return columns


def _as_declared(column: pa.Array, kind: pa.DataType, calendar: Calendar) -> pa.Array:
    if isinstance(column.type, pa.JsonType):
        column = column.storage
    stored = column.type
    if pa.types.is_dictionary(stored):
        column, stored = column.dictionary_decode(), stored.value_type
    if pa.types.is_string(kind) and (
        pa.types.is_string(stored) or pa.types.is_large_string(stored)
    ):
        # Nothing has seen to it yet that it is UTF-8.
        column.validate(full=True)
        if pc.any(pc.match_substring(column, "\0")).as_py():
            raise UnlikeError
        return column.cast(kind)
    if pa.types.is_floating(kind):
        if stored != kind or pc.any(pc.invert(pc.is_finite(column))).as_py():
            raise UnlikeError
        return column
    if pa.types.is_integer(kind) and pa.types.is_integer(stored):
        return column.cast(kind)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(stored):
        return _instants(column, kind, calendar)
    if pa.types.is_date(kind) and stored == kind:
        first = calendar.first_day and calendar.first_day * _MICROS_OF_A_DAY
        check_range(column.cast(pa.timestamp("us")).cast(pa.int64()), first)
        return column
    if pa.types.is_decimal(kind) and pa.types.is_decimal(stored):
        fitted = cast_exactly(column, kind)
        # A file may hold more digits than it says, and no cast looks at them.
        fitted.validate(full=True)
        return fitted
    if stored == kind and not pa.types.is_nested(kind):
        return column
    raise UnlikeError


def _instants(column: pa.Array, kind: pa.DataType, calendar: Calendar) -> pa.Array:
    """Return times in microseconds; one that names no zone is UTC, one that does fits no other."""
    if kind.tz is None and column.type.tz is not None:
        raise UnlikeError
    counts = column.cast(pa.int64())
    # Zones are names alone: every count is of UTC.
    local = counts.cast(pa.timestamp(column.type.unit))
    if column.type.unit == "ns":
        # Digits beyond the microsecond are cut, as in every format; a cast would cut towards 1970.
        local = pc.floor_temporal(local, unit="microsecond")
    instants = local.cast(pa.timestamp("us")).cast(pa.int64())
    check_range(instants, calendar.first_micros)
    return instants.cast(kind)


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
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
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
        raws = column.view(_BYTES_OF_TEXT[column.type]).to_pylist()
        return [None if raw is None else raw.decode("utf-8", "surrogateescape") for raw in raws]


def _structs(column: pa.StructArray, calendar: Calendar) -> list[Any]:
    names = [field.name for field in column.type]
    if not names:
        return [{} if is_valid else None for is_valid in column.is_valid().to_pylist()]
    members = [_values(member, calendar) for member in column.flatten()]
    rows = zip(column.is_valid().to_pylist(), *members, strict=True)
    make = dict if len(set(names)) == len(names) else whole_map
    return [make(list(zip(names, row, strict=True))) if valid else None for valid, *row in rows]


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
        maps.append(whole_map(held) if is_valid else None)
    return maps
