"""The reported effect of late orders, for arrivals of every kind."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from livemart.serve.owner import late_orders
from livemart.serve.owner.late_orders import LateChange, read_late_orders
from livemart.store.reader import StoreReader
from tests.serve.owner.window_bodies import state_body
from tests.store.stores import NOON, fill_store, pane_of, reference_tables

LANDED = NOON - timedelta(minutes=10)
PLACED = NOON - timedelta(minutes=31)
PANE = pane_of(PLACED)


def at(minutes: int) -> datetime:
    return NOON - timedelta(minutes=minutes)


def arrival(
    status: str = "placed",
    *,
    ordered_at: datetime = PLACED,
    updated_at: datetime | None = None,
    landed_at: datetime = LANDED,
    order_id: str = "o1",
    restaurant: str = "r1",
    is_deletion: bool = False,
    batch_id: int = 1,
) -> dict[str, Any]:
    """Return a row of `order_arrivals`; what says when it was written is when it was placed."""
    pane = pane_of(ordered_at)
    is_late = landed_at >= pane + timedelta(minutes=5)
    return {
        "order_id": order_id,
        "restaurant_id": restaurant,
        "order_status": status,
        "batch_id": batch_id,
        "is_deletion": is_deletion,
        "is_late": is_late,
        "ordered_at": ordered_at,
        "updated_at": updated_at or ordered_at,
        "landed_at": landed_at,
        "pane_started_at": pane,
        "changed_pane_started_at": pane if is_late else None,
    }


def publish(folder: Path, arrivals: list[dict[str, Any]]) -> StoreReader:
    tables = reference_tables([])
    rows = [
        {"lateness_seconds": 0, "transit_seconds": 0, **row, "arrival_id": f"a{number:05d}"}
        for number, row in enumerate(arrivals)
    ]
    schema = tables["order_arrivals"].schema
    tables["order_arrivals"] = pa.Table.from_pylist(rows, schema=schema)
    url = f"sqlite:///{folder}/serving.db"
    fill_store(url, tables)
    return StoreReader.open(url)


def changes(folder: Path, arrivals: list[dict[str, Any]]) -> set[tuple[str, datetime]]:
    """Return order and pane of each change of r1."""
    with closing(publish(folder, arrivals)) as reader, reader.snapshot() as view:
        late = read_late_orders(view, ["r1"], NOON)["r1"]
    assert late.changes is not None
    return {(each.order_id, each.pane) for each in late.changes}


IN_TIME = arrival(landed_at=PLACED)
LATER = PLACED + timedelta(minutes=15)
ONE = {("o1", PANE)}


@pytest.mark.parametrize("status", ["placed", "delivered"])
def test_an_order_that_nobody_knew_of_changes_its_pane(tmp_path: Path, status: str) -> None:
    assert changes(tmp_path, [arrival(status)]) == ONE


@pytest.mark.parametrize("placed_before", [timedelta(0), timedelta(hours=3), timedelta(days=6)])
def test_a_version_that_comes_again_changes_nothing(
    tmp_path: Path, placed_before: timedelta
) -> None:
    when = PLACED - placed_before
    first = arrival(ordered_at=when, landed_at=when)
    again = arrival(ordered_at=when)

    assert changes(tmp_path, [first, again, again]) == set()


@pytest.mark.parametrize("placed_before", [timedelta(0), timedelta(hours=3), timedelta(days=6)])
def test_the_delivery_of_a_known_order_changes_nothing(
    tmp_path: Path, placed_before: timedelta
) -> None:
    when = PLACED - placed_before
    first = arrival(ordered_at=when, landed_at=when)
    delivered = arrival("delivered", ordered_at=when, updated_at=LATER)

    assert changes(tmp_path, [first, delivered]) == set()


def test_a_version_older_than_the_known_one_changes_nothing(tmp_path: Path) -> None:
    early = arrival("delivered", updated_at=LATER, landed_at=PLACED)

    assert changes(tmp_path, [early, arrival()]) == set()


@pytest.mark.parametrize("gone", [{"status": "cancelled"}, {"is_deletion": True}])
def test_an_order_that_goes_changes_the_pane_it_was_counted_in(
    tmp_path: Path, gone: dict[str, Any]
) -> None:
    last = arrival(**gone, updated_at=LATER)

    assert changes(tmp_path, [IN_TIME, last]) == ONE
    assert changes(tmp_path / "never counted", [last]) == set()


def test_a_corrected_time_changes_the_pane_before_and_the_one_after(tmp_path: Path) -> None:
    moved = arrival(ordered_at=at(51), updated_at=LATER)

    assert changes(tmp_path, [IN_TIME, moved]) == {("o1", PANE), ("o1", pane_of(at(51)))}


def test_an_order_that_moves_into_the_running_pane_changed_the_one_it_left(tmp_path: Path) -> None:
    moved = arrival(ordered_at=LANDED, updated_at=LATER)

    assert changes(tmp_path, [IN_TIME, moved]) == ONE


def test_a_newer_version_of_one_status_is_a_correction(tmp_path: Path) -> None:
    assert changes(tmp_path, [IN_TIME, arrival(updated_at=LATER)]) == ONE


@pytest.mark.parametrize(
    "quiet", [{"batch_id": 0}, {"landed_at": at(61), "ordered_at": at(80)}, {"landed_at": PLACED}]
)
def test_a_first_load_what_is_long_known_and_what_is_in_time_are_no_news(
    tmp_path: Path, quiet: dict[str, Any]
) -> None:
    assert changes(tmp_path, [arrival(**quiet)]) == set()


def test_an_order_without_an_id_or_a_time_is_counted_nowhere(tmp_path: Path) -> None:
    timeless = arrival() | {"pane_started_at": None, "ordered_at": None}

    assert changes(tmp_path, [arrival() | {"order_id": None}, timeless]) == set()


def test_an_order_is_counted_once_however_many_panes_it_changed(tmp_path: Path) -> None:
    rows = [IN_TIME, arrival(ordered_at=at(51), updated_at=LATER), arrival(order_id="o2")]

    with closing(publish(tmp_path, rows)) as reader, reader.snapshot() as view:
        state = state_body(view, "r1", 1, server_time=NOON)

    assert state is not None
    assert state["late_corrections"] == {
        "order_count": 2,
        "start": "2026-03-02T11:05:00Z",
        "end": "2026-03-02T11:30:00Z",
        "panes": ["2026-03-02T11:05:00Z", "2026-03-02T11:25:00Z"],
    }


@pytest.mark.parametrize("few", [0, 20])
@pytest.mark.parametrize("most", [5, 5_000])
def test_however_many_come_at_once_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, most: int
) -> None:
    monkeypatch.setattr(late_orders, "_FEW", few)
    monkeypatch.setattr(late_orders, "_MOST", most)
    known = [
        arrival(order_id=f"o{n}", ordered_at=at(400), landed_at=at(399), restaurant="r1")
        for n in range(3)
    ]
    delivered = [
        arrival("delivered", order_id=f"o{n}", ordered_at=at(400), updated_at=at(30))
        for n in range(3)
    ]
    new = [
        arrival("delivered", order_id=f"{name}-{n}", ordered_at=at(400 + n), restaurant=name)
        for name, number in (("r1", 2), ("r2", 1))
        for n in range(number)
    ]

    with (
        closing(publish(tmp_path, known + delivered + new)) as reader,
        reader.snapshot() as view,
    ):
        found = read_late_orders(view, ["r1", "r2", "r3"], NOON)

    assert {name: set(each.changes or ()) for name, each in found.items()} == {
        "r1": {LateChange(f"r1-{n}", pane_of(at(400 + n))) for n in range(2)},
        "r2": {LateChange("r2-0", pane_of(at(400)))},
        "r3": set(),
    }
