"""Row filters: what they say of a column, and when they must not say anything."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.row_filter import NO_ROW, RowFilter, equal_in, values_condition


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
