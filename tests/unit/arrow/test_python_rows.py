"""Rows are Python objects to be listed, also where Python or Arrow has no such value."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from livemart.arrow.python_rows import python_rows
from livemart.arrow.types import plain_table
from tests.disagreeing_values import BEYOND_PYTHON, KINDS, array
from tests.unit.arrow.test_variants import nested


@pytest.mark.parametrize("name", [name for name in KINDS if KINDS[name].spark != "float"])
def test_what_python_holds_is_as_arrow_gives_it(name: str) -> None:
    rows = pa.table({"a": array(name, [*KINDS[name].values, None])})

    assert list(map(repr, python_rows(rows))) == list(map(repr, rows.to_pylist()))


def test_a_float_has_its_shortest_digits_at_any_depth() -> None:
    floats = pa.array([0.1, -3.4028235e38, None, float("inf"), -0.0], pa.float32())
    rows = pa.table({"a": floats, "l": pa.array([[0.1]] * 5, pa.list_(pa.float32()))})

    found = python_rows(rows)

    assert [str(row["a"]) for row in found] == ["0.1", "-3.4028235e+38", "None", "inf", "-0.0"]
    assert found[0]["l"] == [0.1]


@pytest.mark.parametrize("name", BEYOND_PYTHON)
def test_a_time_of_any_year_is_listed(name: str) -> None:
    kind = KINDS[name].arrow
    stored = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    times = pa.array(BEYOND_PYTHON[name], stored).cast(kind)
    within = pa.ListArray.from_arrays([0, 1, 1, 3], times)

    texts = [row["a"] for row in python_rows(pa.table({"a": times}))]
    lists = [row["a"] for row in python_rows(pa.table({"a": within}))]

    assert texts == times.cast(pa.string()).to_pylist()
    assert lists == [texts[:1], [], texts[1:]]


def test_a_variant_is_its_value_at_any_depth() -> None:
    row, missing = python_rows(plain_table(nested('{"a":1}', None)))

    value = {"a": 1}
    assert row == {
        "v": value,
        "l": [value, None],
        "s": {"x": value, "n": 0},
        "m": [("k", [value, None])],
    }
    assert missing == {
        "v": None,
        "l": [None, None],
        "s": {"x": None, "n": 1},
        "m": [("k", [None, None])],
    }


def test_rows_keep_their_columns() -> None:
    rows = pa.table({"day": [date(2026, 3, 1)], "at": [datetime(2026, 3, 1, tzinfo=UTC)], "n": [1]})

    assert python_rows(rows) == rows.to_pylist()
    assert python_rows(rows.slice(0, 0)) == []
