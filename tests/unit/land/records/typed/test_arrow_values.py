"""Values of Arrow are read whole, also those that Python's own types do not hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from livemart.land.records.typed.arrow_values import record_values
from livemart.land.records.typed.calendars import ISO, Calendar
from livemart.land.records.typed.typed_records import as_in_json
from livemart.land.records.untyped_values import RepeatedKeys, Unreadable

INFINITY = 2**63 - 1


def values(column: pa.Array, calendar: Calendar = ISO) -> list[Any]:
    batch = pa.record_batch({"x": column})
    return [as_in_json(row["x"]) for row in record_values(batch, calendar)]


def count(values: list[Any], kind: pa.DataType) -> pa.Array:
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(values, width).view(kind)


@pytest.mark.parametrize(
    ("column", "written"),
    [
        # The values that DuckDB and PostgreSQL write for `infinity`.
        (count([INFINITY], pa.timestamp("us")), "+294247-01-10T04:00:54.775807"),
        (count([2**31 - 1], pa.date32()), "+5881580-07-11"),
        (count([-62_135_596_800_000_001], pa.timestamp("us", "UTC")), "0000-12-31T23:59:59.999999"),
        (count([INFINITY], pa.timestamp("ms")), "+292278994-08-17T07:12:55.807000"),
        (count([INFINITY], pa.timestamp("s")), "+292277026596-12-04T15:30:07"),
        (count([-1], pa.timestamp("ns")), "1969-12-31T23:59:59.999999999"),
        (count([-1], pa.date64()), "1969-12-31"),
        (count([86_400_000_000], pa.time64("us")), "24:00:00"),
        (count([1], pa.time64("ns")), "00:00:00.000000001"),
        (count([1_500], pa.time32("ms")), "00:00:01.500000"),
        (count([1_001], pa.duration("ns")), "1001"),
    ],
)
def test_a_time_that_python_does_not_have_is_written_out(column: pa.Array, written: str) -> None:
    zone = "+00:00" if getattr(column.type, "tz", None) else ""

    assert values(column) == [f"{written}{zone}"]


def test_values_keep_their_places_in_every_nesting() -> None:
    instants = pa.timestamp("us", "UTC")
    members = pa.struct([("at", instants), ("tags", pa.map_(pa.int32(), pa.list_(instants)))])
    rows = [None, {"at": None, "tags": None}, {"at": 1, "tags": [(7, [2, None]), (8, None)]}]
    column = pa.array([None, [], rows, rows[2:]], pa.list_(members))
    first, second = "1970-01-01T00:00:00.000001+00:00", "1970-01-01T00:00:00.000002+00:00"
    last = {"at": first, "tags": {"7": [second, None], "8": None}}
    expected = [None, [], [None, {"at": None, "tags": None}, last], [last]]

    assert values(column) == expected
    for start in range(4):
        assert values(column.slice(start)) == expected[start:]
        assert values(column.slice(start, 1)) == expected[start : start + 1]
    fixed = pa.array([[1, 2], None, [3, None]], pa.list_(instants, 2))
    assert values(fixed)[1:] == [None, ["1970-01-01T00:00:00.000003+00:00", None]]


def test_a_map_that_holds_a_key_twice_keeps_all_its_entries() -> None:
    maps = pa.array([[("k", 1), ("a", 2)], [("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int32()))

    assert values(maps) == [{"k": "1", "a": "2"}, RepeatedKeys([("k", "1"), ("k", "2")])]
    assert list(values(maps)[0]) == ["k", "a"]


def test_a_text_that_is_no_utf_8_is_marked_and_takes_no_other_with_it() -> None:
    """pyarrow 26 reads a string column of Parquet without a look at its bytes."""
    column = pa.array([b"a", b"b\xff", None]).view(pa.string())

    assert values(column) == ["a", "b\udcff", None]
    assert values(column.cast(pa.large_string(), safe=False)) == values(column)


def test_days_of_another_calendar_are_no_values() -> None:
    calendar = Calendar(-10, -1_000, "the old calendar")

    days, local = count([-11, -10], pa.date32()), count([-1_001, -1_000], pa.timestamp("us"))
    for column in (days, local):
        old, new = values(column, calendar)
        assert isinstance(old, Unreadable) and "is of the old calendar" in old.detail
        assert new == values(column)[1]
