"""A view is of one snapshot: rows of the tenants that are asked for, in order, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from livemart.store.reader import StoreReader
from livemart.store.snapshot_view import SnapshotView
from tests.store.stores import KEYS, NOON, PANE, Order, fill_store, reference_tables

TREND, METRICS = "restaurant_sales_trend", "restaurant_order_metrics"
ORDERS = [
    Order(f"o{number}", restaurant, "c", NOON - PANE * number, (("d1", number),))
    for number in range(1, 4)
    for restaurant in ("r1", "r2")
]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[StoreReader]:
    """Orders of two restaurants in three panes; with the second snapshot one of r1 more."""
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, reference_tables(ORDERS))
    later = [*ORDERS, Order("new", "r1", "c", NOON + timedelta(minutes=1), (("d1", 2),))]
    fill_store(url, reference_tables(later, NOON + PANE), KEYS, 2, NOON + PANE)
    with closing(StoreReader.open(url)) as reader:
        yield reader


@pytest.fixture
def view(reader: StoreReader) -> Iterator[SnapshotView]:
    with reader.snapshot() as view:
        yield view


def panes(view: SnapshotView, tenants: set[str] | None, **which: object) -> list[tuple[str, int]]:
    """Return restaurant and minutes after noon of each pane."""
    asked = None if tenants is None else frozenset(tenants)
    rows = view.rows(TREND, tenants=asked, **which)  # type: ignore[arg-type]
    return [
        (row["restaurant_id"], round((row["pane_started_at"] - NOON).total_seconds() / 60))
        for row in rows
    ]


def test_rows_are_those_of_the_tenants_in_the_order_of_the_key(view: SnapshotView) -> None:
    first = [("r1", -15), ("r1", -10), ("r1", -5), ("r1", 0)]
    second = [("r2", -15), ("r2", -10), ("r2", -5)]

    assert panes(view, None) == first + second
    assert panes(view, {"r2"}) == second
    assert panes(view, {"r1", "r2"}, limit=5) == [*first, second[0]]
    # No tenant is not the same as all tenants.
    assert panes(view, set()) == panes(view, {"r9"}) == []


def test_a_span_holds_its_start_and_not_its_end(view: SnapshotView) -> None:
    span = {"since": ("pane_started_at", NOON - 2 * PANE), "until": ("pane_started_at", NOON)}

    assert panes(view, {"r1"}, **span) == [("r1", -10), ("r1", -5)]
    assert panes(view, None, equals={"restaurant_id": "r2"}, **span) == [("r2", -10), ("r2", -5)]


def test_first_rows_and_counts_are_of_the_same_snapshot(view: SnapshotView) -> None:
    assert view.published.snapshot_id == 2
    assert view.row_count(TREND) == 7
    firsts = view.firsts(TREND, "pane_started_at", tenants=frozenset({"r1", "r9"}), among=METRICS)
    assert firsts == {"r1": NOON - 3 * PANE}


def test_a_model_that_is_not_served_is_an_error_and_not_empty(view: SnapshotView) -> None:
    assert set(view.models()) == set(reference_tables([]))
    with pytest.raises(KeyError):
        view.row_count("nothing")
    with pytest.raises(KeyError):
        view.rows("nothing", tenants=None)
