"""Converts partition values: as columns, as folders, and as the log spells them.

Used by readers and writers of data files, and to compare rows with stored ones. Spark's writer
stores some texts as NULL, so does this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import row_codes

# Texts that Delta stores as NULL in a partition column: Spark's folders have one name for them.
BLANKS = ("", "__HIVE_DEFAULT_PARTITION__")

PartitionValues = Mapping[str, str | None]


def split_partitions(
    table: pa.Table, partition_columns: Sequence[str]
) -> Iterator[tuple[PartitionValues, pa.Table]]:
    """Yield the rows of each partition, without the partition columns, in their order."""
    if not partition_columns:
        if table.num_rows:
            yield {}, table
        return
    columns = [table.column(name) for name in partition_columns]
    # The folders of -0.0 and 0.0 are two.
    codes = row_codes(columns, table.num_rows, identical=True)
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    data = table.drop_columns(list(partition_columns))
    for rows in np.split(order, bounds):
        if len(rows):
            first = table.slice(int(rows[0]), 1)
            texts = {
                name: partition_text(first.column(name)[0].as_py()) for name in partition_columns
            }
            yield texts, data.take(pa.array(rows))


def blank_columns(schema: pa.Schema, partition_columns: Sequence[str]) -> frozenset[str]:
    """Return the columns that hold NULL for `BLANKS`: partition columns of text."""
    return frozenset(
        name for name in partition_columns if pa.types.is_string(schema.field(name).type)
    )


def is_blank(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return where a text is stored as NULL in a partition column (boolean, never NULL)."""
    return pc.or_(pc.is_null(column), pc.is_in(column, pa.array(BLANKS)))


def without_blank_partitions(table: pa.Table, partition_columns: Sequence[str]) -> pa.Table:
    """Return the rows as Delta stores them: with NULL for `BLANKS` in a partition column."""
    for name in blank_columns(table.schema, partition_columns):
        column = table.column(name)
        stored = pc.if_else(is_blank(column), pa.scalar(None, pa.string()), column)
        table = table.set_column(table.schema.get_field_index(name), name, stored)
    return table


def partition_text(value: Any) -> str | None:
    """Return a partition value as the Delta log spells it."""
    match value:
        case None:
            return None
        case str():
            return None if value in BLANKS else value
        case bool():
            return "true" if value else "false"
        case datetime():
            if value.tzinfo is None:
                text = value.isoformat(sep=" ")
                return text.rstrip("0") if value.microsecond else text
            # With its zone: a session reads it by its own clock otherwise.
            moment = value.astimezone(UTC).replace(tzinfo=None)
            return f"{moment.isoformat(timespec='microseconds')}Z"
        case date():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8")
        case float():
            names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
            return names.get(str(value), str(value))
        case _:
            return str(value)


def partition_value(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return the value that the Delta log spells as `text`."""
    if pa.types.is_binary(kind):
        return pa.scalar(text.encode("utf-8"), kind)
    if pa.types.is_timestamp(kind):
        moment = datetime.fromisoformat(text.removesuffix("Z"))
        return pa.scalar(moment.replace(tzinfo=UTC) if kind.tz else moment, kind)
    return pa.scalar(text, pa.string()).cast(kind)
