"""Publication into the serving store, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal

from livemart.store.reader import StoreReader
from tests.store.stores import (
    KEYS,
    NOON,
    PANE,
    Order,
    changes_of,
    fill_store,
    make_orders,
    reference_tables,
    stored_rows,
)


def test_what_is_published_is_read_as_it_was(store_url: str) -> None:
    tables = reference_tables()

    fill_store(store_url, tables)

    for name, table in tables.items():
        stored = stored_rows(store_url, f"gold.{name}", table.schema)
        order = [(column, "ascending") for column in KEYS[name]]
        assert stored.sort_by(order).to_pylist() == table.sort_by(order).to_pylist()


def test_a_publication_writes_changed_rows_only_and_logs_them(
    store_url: str, reader: StoreReader
) -> None:
    orders = make_orders()
    fill_store(store_url, reference_tables(orders))
    later = [*orders, Order("new", "r1", "c1", NOON + timedelta(minutes=1), (("d1", 2),))]

    done = fill_store(store_url, reference_tables(later, NOON + PANE), KEYS, 2, NOON + PANE)

    assert done is not None and done.rebuilt == ()
    assert done.rows_changed["restaurant_sales_trend"] == 1
    page = changes_of(reader, "restaurant_sales_trend", 1, frozenset({"r1"}), 100)
    assert (page.kind, page.upto) == ("changes", 2)
    (change,) = page.changes
    assert (change.op, change.row["sales_amount"]) == ("insert", "19.00")
    assert change.row["pane_started_at"] == "2026-03-02T12:00:00Z"
    assert changes_of(reader, "restaurant_sales_trend", 1, frozenset({"r2"}), 100).changes == ()


def test_a_replay_changes_nothing(store_url: str, reader: StoreReader) -> None:
    tables = reference_tables()
    fill_store(store_url, tables)
    before = reader.newest()

    again = fill_store(store_url, tables)

    assert (again, reader.newest()) == (None, before)


def test_rows_are_found_by_tenant_key_and_time(store_url: str, reader: StoreReader) -> None:
    orders = make_orders()
    fill_store(store_url, reference_tables(orders))
    start, end = NOON - timedelta(hours=3), NOON - timedelta(hours=1)
    expected = Counter(
        order.pane for order in orders if order.restaurant_id == "r2" and start <= order.pane < end
    )

    with reader.snapshot() as view:
        rows = view.rows(
            "restaurant_sales_trend",
            tenants=frozenset({"r2"}),
            since=("pane_started_at", start),
            until=("pane_started_at", end),
        )
        (day,) = view.rows(
            "restaurant_order_metrics",
            tenants=frozenset({"r1", "r2"}),
            equals={"restaurant_id": "r2", "window_hours": 24},
        )
        foreign = view.rows(
            "restaurant_order_metrics",
            tenants=frozenset({"r1"}),
            equals={"restaurant_id": "r2"},
        )

    assert {row["pane_started_at"]: row["order_count"] for row in rows} == expected
    of_day = [o for o in orders if o.restaurant_id == "r2" and o.ordered_at >= NOON - PANE * 288]
    assert day["sales_amount"] == sum((o.amount for o in of_day), Decimal(0))
    assert foreign == []
