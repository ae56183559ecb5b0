"""Many rows as one: the same values as row by row, in both databases, and of the right tenants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from livemart.store.reader import StoreReader
from tests.store.stores import fill_store

NOON = datetime(2026, 3, 2, 12, 0, 0, 7, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = ("at", "orders", "sales")
ROWS: list[dict[str, Any]] = [
    {"restaurant_id": "r1", "at": NOON, "orders": 3, "sales": Decimal("12.50"), "word": "a"},
    {
        "restaurant_id": "r1",
        "at": NOON + timedelta(minutes=5),
        "orders": -1,
        "sales": Decimal("-0.07"),
        "word": "a",
    },
    {
        "restaurant_id": "r1",
        "at": NOON + timedelta(minutes=10),
        "orders": None,
        "sales": None,
        "word": "a",
    },
    {"restaurant_id": "r2", "at": NOON, "orders": 8, "sales": Decimal("1.00"), "word": "a"},
    {"restaurant_id": "r3", "at": NOON, "orders": 9, "sales": Decimal("2.00"), "word": "a"},
]
SCHEMA = pa.schema(
    [
        ("restaurant_id", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("orders", pa.int64()),
        ("sales", pa.decimal128(38, 2)),
        ("word", pa.string()),
    ]
)
SINCE = NOON - timedelta(days=1)


def fill(url: str, rows: list[dict[str, Any]], *, has_key: bool) -> None:
    keys = {"panes": ("restaurant_id", "at")} if has_key else {}
    fill_store(url, {"panes": pa.Table.from_pylist(rows, schema=SCHEMA)}, keys)


def values(packed: dict[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: sorted(zip(*(each[column] for column in COLUMNS), strict=True), key=str)
        for name, each in packed.items()
    }


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize("has_key", [True, False])
def test_packed_columns_hold_the_values_of_the_rows(
    store_url: str, reader: StoreReader, has_key: bool
) -> None:
    rows = ROWS if has_key else [*ROWS, ROWS[0]]
    fill(store_url, rows, has_key=has_key)
    expected = {
        name: sorted(
            (
                (
                    micros(row["at"]),
                    row["orders"],
                    None if row["sales"] is None else int(row["sales"] * 100),
                )
                for row in rows
                if row["restaurant_id"] == name
            ),
            key=str,
        )
        for name in ("r1", "r3")
    }

    with reader.snapshot() as view:
        packed = view.packed(
            "panes", COLUMNS, tenants=frozenset({"r1", "r3", "r9"}), time="at", since=SINCE
        )

    assert values(packed) == expected


def test_rows_before_the_moment_are_left_out(store_url: str, reader: StoreReader) -> None:
    fill(store_url, ROWS, has_key=True)
    since = NOON + timedelta(minutes=10)

    with reader.snapshot() as view:
        packed = view.packed("panes", COLUMNS, tenants=frozenset({"r1"}), time="at", since=since)

    assert values(packed) == {"r1": [(micros(since), None, None)]}


def test_a_decimal_longer_than_a_machine_word_keeps_its_digits(
    store_url: str, reader: StoreReader
) -> None:
    amount = Decimal("123456789012345678901234567890.12")
    fill(store_url, [{**ROWS[0], "sales": amount}], has_key=True)

    with reader.snapshot() as view:
        packed = view.packed("panes", ("sales",), tenants=frozenset({"r1"}), time="at", since=SINCE)

    assert packed == {"r1": {"sales": [12345678901234567890123456789012]}}


def test_text_is_not_packed(store_url: str, reader: StoreReader) -> None:
    fill(store_url, ROWS, has_key=True)

    with reader.snapshot() as view, pytest.raises(ValueError, match="found string"):
        view.packed("panes", ("word",), tenants=frozenset({"r1"}), time="at", since=SINCE)


@pytest.mark.parametrize("has_key", [True, False])
def test_the_first_value_of_each_tenant_is_found(
    store_url: str, reader: StoreReader, has_key: bool
) -> None:
    names = pa.table({"restaurant_id": ["r1", "r1", "r2", "r4"], "n": [1, 2, 1, 1]})
    panes = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    keys = {"panes": ("restaurant_id", "at"), "names": ("restaurant_id", "n")} if has_key else {}
    fill_store(store_url, {"panes": panes, "names": names}, keys)

    with reader.snapshot() as view:
        found = view.firsts("panes", "at", tenants=frozenset({"r1", "r3", "r4"}), among="names")

    assert found == {"r1": NOON, "r4": None}
