"""A time that no store can hold is found anywhere, and named by its column and row."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from livemart.publish.held_values import UnheldValueError, refuse_unheld
from livemart.store.served import ServedModel
from livemart.store.value_forms import kind_of

MICROS = pa.timestamp("us", "UTC")
# The year 10000, and the last microsecond before it.
BEYOND = 253_402_300_800_000_000
LAST = BEYOND - 1
FIRST = -62_135_596_800_000_000
SHOWN = "+10000-01-01T00:00:00"


def refuse(column: pa.Array | pa.ChunkedArray, *key: str) -> None:
    ids = pa.array([f"k{number}" for number in range(len(column))])
    rows = pa.table({"id": ids, "x": column})
    columns = tuple((field.name, kind_of(field.type)) for field in rows.schema)
    refuse_unheld(ServedModel("orders", columns, key, None), rows)


def count(values: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def nested(value: int) -> list[pa.Array]:
    instants = pa.list_(MICROS)
    return [
        pa.array([[0], None, [1, value]], instants).slice(1),
        pa.array([[], [value]], pa.list_(MICROS)),
        pa.array([None, {"a": 1, "at": value}], pa.struct([("a", pa.int32()), ("at", MICROS)])),
        pa.array([[("a", 1)], [("b", None), ("c", value)]], pa.map_(pa.string(), MICROS)),
        pa.array([None, [{"at": [value]}]], pa.list_(pa.struct([("at", instants)]))),
    ]


@pytest.mark.parametrize("column", [count([LAST, BEYOND], MICROS), *nested(BEYOND)])
def test_a_time_beyond_the_calendar_is_named_by_column_and_key(column: pa.Array) -> None:
    with pytest.raises(UnheldValueError) as refusal:
        refuse(column, "id")

    assert str(refusal.value) == (
        f"x: {SHOWN} is outside of the years 1 to 9999, in the row id = k1"
    )


@pytest.mark.parametrize(
    ("column", "written"),
    [
        (count([0, 2**63 - 1], pa.timestamp("us")), "+294247-01-10T04:00:54.775807"),
        (count([0, FIRST - 1], MICROS), "0000-12-31T23:59:59.999999"),
        (count([0, 253_402_300_800_000], pa.timestamp("ms")), SHOWN),
        (count([0, 2_932_897], pa.date32()), "+10000-01-01"),
        (count([0, -719_163], pa.date32()), "0000-12-31"),
    ],
)
def test_what_is_beyond_is_shown(column: pa.Array, written: str) -> None:
    with pytest.raises(UnheldValueError, match=f"^x: {written.replace('+', '[+]')} is outside"):
        refuse(column)


def test_all_others_are_held() -> None:
    held: list[Any] = [
        count([FIRST, None, LAST], MICROS),
        count([-719_162, 2_932_896], pa.date32()),
        count([2**63 - 1, -(2**63) + 1], pa.timestamp("ns")),
        count([None], MICROS),
        pa.array([datetime.max, datetime.min]),
        pa.array(["10000-01-01"]),
        *nested(LAST),
    ]

    for column in held:
        refuse(column)


def test_the_row_is_that_of_all_chunks() -> None:
    with pytest.raises(UnheldValueError, match=r"in the row id = k2$"):
        refuse(pa.chunked_array([count([0, 1], MICROS), count([BEYOND], MICROS)]))


def test_a_key_that_is_the_value_itself_is_not_said_twice() -> None:
    with pytest.raises(UnheldValueError, match=r"in the row that has no other column$"):
        refuse(count([BEYOND], MICROS), "x")
