"""Conditions and orders mean in both databases what they mean in Python, for every kind.

The changes of a stream are judged by Python itself: it must find what the databases find.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from livemart.store.positions import Position
from livemart.store.predicates import ColumnCondition as Where
from livemart.store.predicates import Operator
from livemart.store.reader import StoreReader
from livemart.store.snapshot_view import SnapshotView
from tests.store.stores import fill_store

_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
# Values of each kind in their order, and a null.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    # By bytes: upper case first, and what UTF-16 would sort before U+FF21.
    "text": (pa.string(), ["", "B", "a", "b", "é", "\uff21", "\U0001f600"]),
    "amount": (
        pa.decimal128(12, 2),
        [Decimal(text) for text in ("-10.50", "-9.00", "0.00", "9.00", "10.00", "100.00", "1e6")],
    ),
    "n": (pa.int64(), [-(2**63), -10, -9, 0, 9, 10, 2**63 - 1]),
    "share": (pa.float32(), [-math.inf, -10.1, -0.1, 0.0, 0.1, 0.2, math.inf]),
    "ratio": (pa.float64(), [-math.inf, -10.5, -9.0, 0.0, 9.0, 10.5, math.inf]),
    "day": (pa.date32(), [date(year, 1, 9) for year in (1, 999, 1969, 1970, 2026, 2027, 9999)]),
    "at": (
        pa.timestamp("us", tz="UTC"),
        [
            datetime(year, 1, 9, 1, 2, 3, 4, tzinfo=UTC)
            for year in (1, 999, 1969, 1970, 2026, 2027, 9999)
        ],
    ),
    "raw": (pa.binary(), [b"", b"\x00", b"\x00\x01", b"a", b"b", b"\x80", b"\xff"]),
}
SIZE = 7


@pytest.fixture
def store(store_url: str, reader: StoreReader) -> StoreReader:
    """A model whose row `id` has the value of that rank in each column; the last row has none."""
    ids = pa.array([3, 0, 6, 2, 5, 1, 4, SIZE], pa.int64())
    columns = {
        name: pa.array(
            [None if number == SIZE else values[number] for number in ids.to_pylist()], kind
        )
        for name, (kind, values) in VALUES.items()
    }
    whole = pa.table({"id": ids, **columns})
    # With the second snapshot each row is a change.
    for number, table in ((1, whole.slice(0, 0)), (2, whole)):
        fill_store(store_url, {"things": table}, {"things": ("id",)}, number)
    return reader


def changed(view: SnapshotView, model: str, *conditions: Where) -> list[int]:
    """Return the ids of the changes of rows that fulfil the conditions, in order."""
    page = view.changes(model, Position(1, None), None, 100, conditions=conditions)
    assert {change.op for change in page.changes} <= {"insert"}
    return sorted(change.row["id"] for change in page.changes)


# 0.1 s in each database.
def test_conditions_and_orders_are_those_of_the_values(store: StoreReader) -> None:
    with store.snapshot() as view:

        def ids(*conditions: Where, **order: Any) -> list[int]:
            rows = view.rows("things", tenants=None, columns=["id"], conditions=conditions, **order)
            found = [row["id"] for row in rows]
            if conditions:
                assert changed(view, "things", *conditions) == found, conditions
            return found

        for name, (_, values) in VALUES.items():
            for rank, bound in enumerate(values):
                for known, compare in _COMPARE.items():
                    expected = [number for number in range(SIZE) if compare(number, rank)]
                    assert ids(Where(name, known, bound)) == expected, (
                        name,
                        known,
                        bound,
                    )
            assert ids(Where(name, "in", (values[5], values[2]))) == [2, 5], name
            assert ids(Where(name, "in", ())) == [], name
            assert ids(Where(name, "is", True)) == [SIZE], name
            assert ids(Where(name, "is", False)) == list(range(SIZE)), name
            assert ids(Where(name, "gt", values[1]), Where(name, "lte", values[3])) == [
                2,
                3,
            ]
            assert ids(order_by=[name]) == [SIZE, *range(SIZE)], name
            assert ids(order_by=[name], descending=(name,)) == [*reversed(range(SIZE)), SIZE], name


def test_nan_is_greater_than_all_numbers_and_a_value_between_two_equals_none(
    store_url: str, reader: StoreReader
) -> None:
    numbers = pa.array([1, 2], pa.int64())
    ratios = pa.array([math.inf, math.nan], pa.float64())
    amounts = pa.array([Decimal("1.00"), Decimal("2.00")], pa.decimal128(5, 2))
    table = pa.table({"id": numbers, "ratio": ratios, "amount": amounts})
    for number, rows in ((1, table.slice(0, 0)), (2, table)):
        fill_store(store_url, {"things": rows}, {"things": ("id",)}, number)

    with reader.snapshot() as view:

        def ids(condition: Where) -> list[int]:
            rows = view.rows("things", tenants=None, columns=["id"], conditions=[condition])
            found = [row["id"] for row in rows]
            assert changed(view, "things", condition) == found, condition
            return found

        assert ids(Where("ratio", "gt", math.inf)) == [2]
        assert ids(Where("ratio", "eq", math.nan)) == [2]
        assert ids(Where("amount", "eq", Decimal("1.001"))) == []
        assert ids(Where("amount", "gte", Decimal("1.001"))) == [2]
        assert ids(Where("amount", "lt", Decimal("1.001"))) == [1]


def test_mixed_directions_end_with_the_key_and_rows_without_key_are_repeated(
    store_url: str, reader: StoreReader
) -> None:
    table = pa.table({"a": [1, 1, 2, 2, 2], "b": ["x", "y", "x", "y", "y"]})
    fill_store(store_url, {"things": table})

    with reader.snapshot() as view:
        rows = view.rows(
            "things", tenants=None, columns=["b", "a"], order_by=["a", "b"], descending=("a",)
        )
        few = view.rows(
            "things",
            tenants=None,
            limit=1,
            conditions=[Where("b", "eq", "y")],
            columns=["b"],
        )

    assert [tuple(row.values()) for row in rows] == [
        ("x", 2), ("y", 2), ("y", 2), ("x", 1), ("y", 1),
    ]  # fmt: skip
    assert few == [{"b": "y"}]
