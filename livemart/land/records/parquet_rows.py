"""Reads the rows of a Parquet file.

Used for each part of such a file. What has the declared type already is taken as it is; all else
is read record by record, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from livemart.land.records.columns import UnlikeError
from livemart.land.records.judge import Chunk, Group, joined, malformed, unrescued
from livemart.land.records.runs import Span
from livemart.land.records.typed_records import read_typed_records, written_record

_RUN_RECORDS = 8_192
# Row groups of about so many rows together are one part.
_PART_ROWS = 500_000


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
        file = pq.ParquetFile(path)
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
        row = span.first_line
        for number in range(span.start, end):
            after = row + file.metadata.row_group(number).num_rows
            try:
                for batch in file.iter_batches(_RUN_RECORDS, row_groups=[number]):
                    yield _chunk(group, batch, row)
                    row += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                detail = f"rows {row} to {after - 1} cannot be read: {error}"
                yield malformed(group, [(row, b"")], detail)
            row = after


def _chunk(group: Group, batch: pa.RecordBatch, first: int) -> Chunk:
    numbers = range(first, first + batch.num_rows)
    try:
        rows = _read_batch(group, batch)
    except (UnlikeError, pa.ArrowException):
        return _exactly(group, batch, first)
    return Chunk(rows, numbers, lambda row: written_record(_records(batch.slice(row, 1))[0]), [])


def _exactly(group: Group, batch: pa.RecordBatch, first: int) -> Chunk:
    try:
        return read_typed_records(group, list(enumerate(_records(batch), first)))
    except KeyError as error:
        if batch.num_rows == 1:
            return malformed(group, [(first, b"")], f"a map has key {error} twice")
    pieces = [_exactly(group, batch.slice(row, 1), first + row) for row in range(batch.num_rows)]
    return joined(group, pieces)


def _records(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as dictionaries; raises KeyError if a map has a key twice."""
    records: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
    return records


def _read_batch(group: Group, batch: pa.RecordBatch) -> pa.Table:
    """Return the rows as they are; raises if a value might be read otherwise."""
    names = batch.schema.names
    for name in set(names) - group.known_names:
        if batch.column(name).null_count < batch.num_rows:
            raise UnlikeError
    arrays = []
    for field in group.schema.arrow:
        is_present = field.name in group.known_names and field.name in names
        column = batch.column(field.name) if is_present else pa.nulls(batch.num_rows, field.type)
        arrays.append(_as_declared(column, field.type))
    return unrescued(group, arrays, batch.num_rows)


def _as_declared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    stored = column.type
    if pa.types.is_dictionary(stored):
        column, stored = column.dictionary_decode(), stored.value_type
    if pa.types.is_string(kind) and (
        pa.types.is_string(stored) or pa.types.is_large_string(stored)
    ):
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
        if (kind.tz is None) != (stored.tz is None):
            raise UnlikeError
        # Digits beyond the microsecond are cut, as in every format.
        return pc.cast(column, kind, safe=stored.unit != "ns")
    if pa.types.is_decimal(kind) and pa.types.is_decimal(stored):
        return column.cast(kind)
    if stored == kind and not pa.types.is_nested(kind):
        return column
    raise UnlikeError
