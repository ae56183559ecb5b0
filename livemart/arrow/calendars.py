"""Recognizes files whose days and times follow the calendar of Spark 2.

Used where Parquet and Avro files are read, those that land and those of tables. Spark up to 2.4
counted days before 1582-10-15 by the Julian calendar, and times before 1900 by the offsets of that
time; later versions do so on demand. Such a file says so, and only Spark reads it as it is meant.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

_VERSION = "org.apache.spark.version"
_MARKS = frozenset({"org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"})
# The key under which Spark noted itself in a Parquet file before it wrote its version there.
_ROWS_OF_SPARK = "org.apache.spark.sql.parquet.row.metadata"
_FIRST_OWN_CALENDAR = "3.1"
# Since then both calendars have the same days, and zones the offsets that they have today.
FIRST_DAY = -141_427
FIRST_SECOND = -2_208_988_800
# By the type that a footer gives a column, in its unit. A time without a zone has none of these: it
# came with a later Spark.
_FIRST = {
    "DATE": FIRST_DAY,
    "TIMESTAMP_MILLIS": FIRST_SECOND * 1_000,
    "TIMESTAMP_MICROS": FIRST_SECOND * 1_000_000,
}


def is_of_spark_2(notes: Mapping[str, str]) -> bool:
    """Return True if a file's values are of the old calendar, by the notes of its writer.

    Spark 3.0 still wrote INT96 in it.

    >>> is_of_spark_2({"org.apache.spark.version": "4.2.0"})
    False
    >>> is_of_spark_2({"org.apache.spark.version": "4.2.0", "org.apache.spark.legacyDateTime": ""})
    True
    """
    version = notes.get(_VERSION)
    is_old = _ROWS_OF_SPARK in notes if version is None else version < _FIRST_OWN_CALENDAR
    return is_old or not _MARKS.isdisjoint(notes)


def first_of(kind: pa.DataType) -> pa.Scalar:
    """Return the first value of a type (date, timestamp in µs) that is the same in both calendars.

    >>> first_of(pa.date32()).as_py().isoformat()
    '1582-10-15'
    """
    if pa.types.is_date32(kind):
        return pa.scalar(FIRST_DAY, pa.int32()).cast(kind)
    return pa.scalar(FIRST_SECOND * 1_000_000, pa.int64()).cast(kind)


def texts_of(notes: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return the notes of a Parquet file's footer as texts."""
    return {
        name.decode(errors="replace"): value.decode(errors="replace")
        for name, value in (notes or {}).items()
    }


def may_hold_old_days(footer: pq.FileMetaData, columns: Collection[str]) -> bool:
    """Return True if a file may hold days or times in these columns that mean others than they say.

    Only bounds before which nothing is stored rule it out.
    """
    if not is_of_spark_2(texts_of(footer.metadata)):
        return False
    return any(
        _may_be_old(footer.row_group(group).column(place))
        for group in range(footer.num_row_groups)
        for place in range(footer.num_columns)
        if footer.schema.column(place).path.partition(".")[0] in columns
        and _is_time(footer.schema.column(place))
    )


def _is_time(column: pq.ColumnSchema) -> bool:
    return column.converted_type in _FIRST or column.physical_type == "INT96"


def _may_be_old(chunk: pq.ColumnChunkMetaData) -> bool:
    statistics = chunk.statistics
    if statistics is None or not statistics.has_min_max:
        return statistics is None or statistics.num_values > 0
    first = _FIRST.get(statistics.converted_type)
    return first is None or statistics.min_raw < first
