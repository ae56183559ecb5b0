"""Publication into the serving store, on SQLite and PostgreSQL alike."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy import event

from livemart.errors import PublishError
from livemart.store.reader import StoreReader
from tests.store.stores import (
    KEYS,
    NOON,
    PANE,
    Order,
    fill_store,
    make_orders,
    reference_tables,
    stored_rows,
)


def test_a_store_that_nobody_filled_is_empty(reader: StoreReader) -> None:
    assert reader.newest() is None
    with pytest.raises(PublishError, match="STORE_EMPTY"), reader.snapshot():
        pass


def test_a_store_that_is_made_while_it_is_looked_for_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "serving.db"

    def come_too_early(*_: object, **__: object) -> NoReturn:
        path.touch()
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", come_too_early)

    with closing(StoreReader.open(f"sqlite:///{path}")) as reader:
        assert reader.newest() is None


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
    page = reader.changes("restaurant_sales_trend", 1, frozenset({"r1"}), 100)
    assert (page.kind, page.upto) == ("changes", 2)
    (change,) = page.changes
    assert (change.op, change.row["sales_amount"]) == ("insert", "19.00")
    assert change.row["pane_started_at"] == "2026-03-02T12:00:00Z"
    assert reader.changes("restaurant_sales_trend", 1, frozenset({"r2"}), 100).changes == ()


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


def test_what_a_reader_does_wrong_itself_is_not_the_stores(
    store_url: str, reader: StoreReader
) -> None:
    fill_store(store_url, reference_tables())

    with pytest.raises(TimeoutError), reader.snapshot():
        raise TimeoutError("of the reader")
    with pytest.raises(KeyError), reader.snapshot() as view:
        view.rows("unknown", tenants=None)
    with pytest.raises(KeyError), reader.snapshot() as view:
        view.rows("order_arrivals", tenants=None, equals={"unknown": 1})
    with pytest.raises(KeyError):
        reader.changes("unknown", 1, None, 10)


def test_a_reader_that_is_closed_lets_who_reads_come_to_the_end(store_url: str) -> None:
    fill_store(store_url, reference_tables([]))
    reader, opened = StoreReader.open(store_url), list[object]()
    event.listen(reader._engine, "connect", lambda connection, _: opened.append(connection))
    event.listen(reader._engine, "close", lambda connection, _: opened.remove(connection))

    with reader.snapshot() as view:
        before = view.rows("restaurant_order_metrics", tenants=None)
        reader.close()
        assert view.rows("restaurant_order_metrics", tenants=None) == before
        # As a reading does that waited for a thread.
        assert reader.newest() == view.published
        assert len(opened) == 1

    assert opened == []
