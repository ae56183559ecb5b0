"""Converts partition values: as columns, as folders, and as the log spells them.

Used by readers and writers of data files, and to compare rows with stored ones. Spark's writer
stores some texts as NULL, so does this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import row_codes
from livemart.epoch import day_text, timestamp_text
from livemart.project.declared.partition_columns import CODE, FAR_HINT, FAR_YEAR, far

# Texts that Delta stores as NULL in a partition column: Spark's folders have one name for them.
BLANKS = ("", "__HIVE_DEFAULT_PARTITION__")

PartitionValues = Mapping[str, str | None]


class FarPartitionError(ValueError):
    """A day or time by which rows cannot be partitioned: Spark alone would read the table."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{CODE}: partition_by: {far(f'{name} = {text}')}; next: {FAR_HINT}")


def split_partitions(
    table: pa.Table, partition_columns: Sequence[str]
) -> Iterator[tuple[PartitionValues, pa.Table]]:
    """Yield the rows of each partition, without the partition columns, in their order.

    Raises:
        FarPartitionError.
    """
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
            texts = {name: partition_text(first.column(name)[0]) for name in partition_columns}
            for name, text in texts.items():
                if text is not None and _is_far(text, table.schema.field(name).type):
                    raise FarPartitionError(name, text)
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


def partition_text(value: pa.Scalar) -> str | None:
    """Return a partition value as the Delta log spells it, in Spark's words.

    A time before the year 1 has a sign, which Spark 4.2 reads but does not write.
    """
    kind = value.type
    if not value.is_valid:
        return None
    if pa.types.is_date32(kind):
        return day_text(value.cast(pa.int32()).as_py())
    if pa.types.is_timestamp(kind):
        micros: int = value.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64()).as_py()
        day, _, time = timestamp_text(micros * 1_000).partition("T")
        if kind.tz is None:
            return f"{day} {time.rstrip('0') if '.' in time else time}"
        # With its zone: a session reads it by its own clock otherwise.
        return f"{day}T{time if '.' in time else f'{time}.000000'}Z"
    plain = value.as_py()
    match plain:
        case str():
            return None if plain in BLANKS else plain
        case bool():
            return "true" if plain else "false"
        case bytes():
            return plain.decode("utf-8")
        case float():
            return _java_text(str(np.float32(plain)) if pa.types.is_float32(kind) else repr(plain))
        case _:
            return str(plain)


def partition_value(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return the value that the Delta log spells as `text`."""
    if pa.types.is_binary(kind):
        return pa.scalar(text.encode("utf-8"), kind)
    if pa.types.is_timestamp(kind):
        micros = np.datetime64(text.removesuffix("Z"), "us").astype(np.int64)
        return pa.scalar(micros).cast(pa.timestamp("us", tz=kind.tz)).cast(kind)
    if pa.types.is_date32(kind):
        return pa.scalar(np.datetime64(text, "D").astype(np.int64)).cast(pa.int32()).cast(kind)
    return pa.scalar(text, pa.string()).cast(kind)


def _is_far(text: str, kind: pa.DataType) -> bool:
    if not (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return False
    return int(text[1:].partition("-")[0]) >= FAR_YEAR


def _java_text(text: str) -> str:
    """Return a number as Java writes it, but for a few that Java before 19 does not round well.

    >>> _java_text("1e-05"), _java_text("16777216.0"), _java_text("-0.0"), _java_text("nan")
    ('1.0E-5', '1.6777216E7', '-0.0', 'NaN')
    """
    if (name := {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text)) is not None:
        return name
    number = Decimal(text)
    if number == 0 or Decimal("0.001") <= abs(number) < 10**7:
        plain = format(number, "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, _ = number.as_tuple()
    first, *others = map(str, digits)
    rest = "".join(others).rstrip("0") or "0"
    return f"{'-' if sign else ''}{first}.{rest}E{number.adjusted()}"
