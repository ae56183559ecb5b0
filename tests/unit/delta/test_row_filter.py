"""Row filters: what they say of a column, and when they must not say anything."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from livemart.arrow.times import DAY, EVER
from livemart.delta.row_filter import (
    EVERY_ROW,
    NO_ROW,
    RowFilter,
    equal_in,
    time_condition,
    values_condition,
)
from tests.disagreeing_values import BEYOND_PYTHON, KINDS


def passing(name: str, column: pa.Array, found: pa.Array) -> list[Any] | None:
    """Return the values of a column that pass the filter for those found; None: no filter."""
    condition = values_condition(name, column.type, found)
    if condition is None:
        return None
    table = pa.table({name: column})
    kept: list[Any] = table.filter(RowFilter(((condition,),)).matches(table))[name].to_pylist()
    return kept


def test_rows_with_a_value_that_was_found_pass() -> None:
    assert passing("k", pa.array(["a", "b", None]), pa.array(["b", "c"])) == ["b"]


def test_null_passes_if_it_was_found() -> None:
    assert passing("k", pa.array([1, 2, None]), pa.array([2, None])) == [2, None]


def test_numbers_of_another_width_are_compared() -> None:
    assert passing("k", pa.array([1, 2], pa.int64()), pa.array([2], pa.int32())) == [2]


def test_exact_numbers_of_another_type_are_compared() -> None:
    prices = pa.array([Decimal("1.00"), Decimal("2.50")], pa.decimal128(12, 2))

    assert passing("k", prices, pa.array([1])) == [Decimal("1.00")]
    assert passing("k", pa.array([1, 2]), prices.slice(0, 1)) == [1]


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pa.array(["7", "07"]), pa.array([7])),
        (pa.array([7]), pa.array(["07"])),
        (pa.array(["2026-01-01"]), pa.array([1.0])),
        (pa.array([1.0, float("nan")]), pa.array([1.0])),
        (pa.array([1], pa.int32()), pa.array([2**40])),
        (pa.array([2**53 + 1]), pa.array([2.0**53])),
        (pa.array([Decimal("0.1")], pa.decimal128(38, 18)), pa.array([0.5])),
        (pa.array([Decimal(1)], pa.decimal128(38, 0)), pa.array([1], pa.decimal128(38, 18))),
        (pa.array([1, 0]), pa.array([True])),
        (pa.array([b"a"]), pa.array(["a"])),
        (pa.array([[1]]), pa.array([[1]])),
    ],
    ids=[
        "number in text",
        "text in numbers",
        "double in text",
        "double",
        "too large",
        "double in bigints",
        "double in decimals",
        "decimals that Spark rounds",
        "boolean in numbers",
        "text in binary",
        "list",
    ],
)
def test_what_sql_compares_otherwise_does_not_narrow(column: pa.Array, found: pa.Array) -> None:
    assert passing("k", column, found) is None


def test_rows_are_equal_in_the_columns_that_can_be_said() -> None:
    rows = pa.table({"k": ["a", "b"], "is_new": [True, False], "weight": [1.0, 2.0]})
    table = pa.table({"k": ["a", "c"], "is_new": [True, True], "weight": [9.0, 1.0]})

    mask = equal_in(table.schema, rows).matches(table)

    assert mask.to_pylist() == [True, False]


def test_no_alternative_lets_no_row_through() -> None:
    assert NO_ROW.matches(pa.table({"k": [1, 2]})).to_pylist() == [False, False]


@pytest.mark.parametrize("has_null", [False, True])
def test_rows_in_memory_pass_as_stored_ones_do(has_null: bool) -> None:
    count = 60
    table = pa.table(
        {
            "k": pa.array([None if n % 7 == 0 else f"k{n % 5}" for n in range(count)]),
            "n": pa.array([None if n % 11 == 0 else n % 6 for n in range(count)], pa.int32()),
            "at": pa.array(range(count)).cast(pa.timestamp("us", tz="UTC")),
        }
    )
    keys = values_condition("k", pa.string(), pa.array(["k1", "k2", *([None] * has_null)]))
    numbers = values_condition("n", pa.int32(), pa.array([3, *([None] * has_null)]))
    times = time_condition("at", table.schema.field("at").type, 10, 40, has_null=has_null)
    assert keys is not None and numbers is not None and times is not None

    for passing in (
        RowFilter(((keys, times),)),
        RowFilter(((keys, numbers, times), (times, numbers))),
        RowFilter(((times,), (numbers,))),
    ):
        expected = table.filter(passing.expression())
        assert 0 < expected.num_rows < count
        assert table.filter(passing.matches(table)).equals(expected)
    assert table.filter(EVERY_ROW.matches(table)).num_rows == count


def test_a_filter_names_the_columns_that_it_looks_at() -> None:
    rows = pa.table({"k": ["a"], "n": [1]})

    assert equal_in(rows.schema, rows).or_else(EVERY_ROW).columns == {"k", "n"}


@pytest.mark.parametrize("name", BEYOND_PYTHON)
def test_times_that_python_has_no_value_for_pass(name: str) -> None:
    """Spark and Arrow hold the years 0 and 10000, dates and timestamps up to 294247."""
    kind = KINDS[name].arrow
    stored = pa.int32() if name == "day" else pa.int64()
    far = pa.array([*BEYOND_PYTHON[name], None], stored).cast(kind)
    table = pa.table({"t": pa.concat_arrays([far, pa.array([0], stored).cast(kind)])})
    ever = time_condition("t", kind, -EVER, EVER, has_null=False)
    later = time_condition("t", kind, DAY, EVER, has_null=False)
    found = values_condition("t", kind, far)
    assert ever is not None and later is not None and found is not None

    for condition, count in ((ever, 4), (later, 2), (found, 4)):
        passing = RowFilter(((condition,),))
        assert table.filter(passing.expression()).num_rows == count
        assert pc.sum(passing.matches(table)).as_py() == count
    assert RowFilter(((ever,), (found,))).sql() == "(true) or ((true or `t` is null))"
    assert RowFilter(((later,),)).sql().startswith("(`t` >= ")
