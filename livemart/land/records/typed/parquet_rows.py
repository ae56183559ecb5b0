"""Reads the rows of a Parquet file.

Used for each part of such a file. A column that has the declared type already is taken as it is;
all others are read record by record, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from livemart.arrow.calendars import texts_of
from livemart.land.records.columns import UnlikeError, check_range
from livemart.land.records.judge import Chunk, Group, malformed, unrescued
from livemart.land.records.runs import Span
from livemart.land.records.typed.arrow_values import record_values
from livemart.land.records.typed.calendars import Calendar, calendar_of
from livemart.land.records.typed.typed_records import read_typed_records, written_record
from livemart.land.records.untyped_values import PackedInterval

_RUN_RECORDS = 8_192
# Dead letters of more records of a run take all of them apart at once.
_FEW_RECORDS = 64
# Row groups of about so many rows together are one part.
_PART_ROWS = 500_000
_MICROS_OF_A_DAY = 86_400_000_000


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
        return column.cast(kind)
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
