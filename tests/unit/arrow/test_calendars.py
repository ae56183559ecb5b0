"""A file says in its footer whether it may hold days of the calendar of Spark 2."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.arrow.calendars import FIRST_DAY, FIRST_SECOND, first_of, may_hold_old_days

_OLD = {"org.apache.spark.version": "2.4.8"}
_INSTANT, _LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


def footer(values: pa.Array, notes: dict[str, str], **form: object) -> pq.FileMetaData:
    table, buffer = pa.table({"a": values}), io.BytesIO()
    with pq.ParquetWriter(buffer, table.schema, store_schema=False, **form) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(notes)
    return pq.read_metadata(io.BytesIO(buffer.getvalue()))


@pytest.mark.parametrize("kind", [pa.date32(), _INSTANT, pa.timestamp("ms", "UTC")])
def test_only_bounds_behind_the_old_calendar_rule_its_days_out(kind: pa.DataType) -> None:
    unit = {"s": 1, "ms": 1_000, "us": 1_000_000}.get(getattr(kind, "unit", "s"), 1)
    first = FIRST_DAY if pa.types.is_date32(kind) else FIRST_SECOND * unit
    stored = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    new, old = (pa.array([None, it], stored).cast(kind) for it in (first, first - 1))
    nested = pa.StructArray.from_arrays([old], ["b"])

    assert not may_hold_old_days(footer(new, _OLD), ["a"])
    assert may_hold_old_days(footer(old, _OLD), ["a"])
    assert may_hold_old_days(footer(nested, _OLD), ["a"])
    assert not may_hold_old_days(footer(old, _OLD), ["b"])
    assert not may_hold_old_days(footer(old, {}), ["a"])
    assert may_hold_old_days(footer(new, _OLD, write_statistics=False), ["a"])
    assert not may_hold_old_days(footer(pa.nulls(2, kind), _OLD), ["a"])


def test_times_of_int96_have_no_bounds() -> None:
    times = pa.array([0], _LOCAL)

    assert may_hold_old_days(footer(times, _OLD, use_deprecated_int96_timestamps=True), ["a"])


@pytest.mark.parametrize("kind", [pa.int64(), _LOCAL])
def test_numbers_and_times_without_a_zone_are_of_one_calendar(kind: pa.DataType) -> None:
    """Spark 4.2.0 counts TIMESTAMP_NTZ of such a file as it is."""
    long_ago = pa.array([-(10**17)], pa.int64()).cast(kind)

    assert not may_hold_old_days(footer(long_ago, _OLD), ["a"])


def test_the_first_values_of_both_calendars() -> None:
    assert str(first_of(pa.date32())) == "1582-10-15"
    assert str(first_of(_INSTANT)).startswith("1900-01-01 00:00:00")
