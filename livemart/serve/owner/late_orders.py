"""Finds the orders of the last hour that changed a pane after it had ended, among the arrivals.

Used for the state of a restaurant. An arrival is not yet a change: a version may come twice, or
after a newer one, and most say only that an order was delivered. So each is compared with what was
known of its order before it landed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from livemart.serve.owner.facts import StoredRow, grouped
from livemart.store.snapshot_view import SnapshotView

ARRIVALS = "order_arrivals"
# A late order is news for so long; what came earlier is part of the figures.
LATE_FOR = timedelta(hours=1)
# Most orders are placed and delivered within it: what came before is looked for order by order.
_AT_HAND = timedelta(hours=2)
# No window reaches back further.
_LONGEST = timedelta(hours=168)
# A version may say another time than the one before it, and clocks of tills differ.
_SHIFT = timedelta(hours=3)
_PANE = timedelta(minutes=5)
# Arrivals that are read at once, by restaurant.
_MOST = 5_000
# More orders are found together, by their time, sooner than one by one.
_FEW = 20
_COLUMNS = (
    "restaurant_id",
    "order_id",
    "order_status",
    "batch_id",
    "is_deletion",
    "updated_at",
    "landed_at",
    "pane_started_at",
)


@dataclass(frozen=True, slots=True)
class LateChange:
    """An order, and the start of a pane whose figures it changed after the pane had ended."""

    order_id: str
    pane: datetime


@dataclass(frozen=True, slots=True)
class LateOrders:
    """The changes by late orders of the last hour; None if the store does not know them."""

    changes: Sequence[LateChange] | None


def read_late_orders(
    view: SnapshotView, restaurant_ids: Iterable[str], end: datetime
) -> dict[str, LateOrders]:
    """Return the changes by late orders of the hour before `end`, by restaurant."""
    tenants = frozenset(restaurant_ids)
    if ARRIVALS not in view.models():
        return dict.fromkeys(tenants, LateOrders(None))
    arrivals = _at_hand(view, tenants, end) if tenants else {}
    return {
        name: LateOrders(
            _of_restaurant(view, name, arrivals[name], end) if name in arrivals else []
        )
        for name in tenants
    }


def _at_hand(
    view: SnapshotView, tenants: frozenset[str], end: datetime
) -> dict[str, list[StoredRow]]:
    """Return the arrivals that came last, newest first, by restaurant."""
    most = _MOST * len(tenants)
    rows = view.rows(
        ARRIVALS,
        tenants=tenants,
        since=("landed_at", end - _AT_HAND),
        order_by=("landed_at",),
        descending=True,
        limit=most,
        columns=_COLUMNS,
    )
    if len(tenants) > 1 and len(rows) == most:
        # Too many rows of one restaurant would displace those of another.
        return {
            name: arrivals
            for tenant in tenants
            for name, arrivals in _at_hand(view, frozenset({tenant}), end).items()
        }
    return grouped(rows, "restaurant_id", str)


def _of_restaurant(
    view: SnapshotView, restaurant_id: str, rows: Sequence[StoredRow], end: datetime
) -> list[LateChange]:
    since = end - LATE_FOR
    by_order = grouped(rows, "order_id", str)
    # A first load corrects no figure that was seen before.
    news = {
        name: versions
        for name, versions in by_order.items()
        if any(version["landed_at"] >= since and version["batch_id"] != 0 for version in versions)
    }
    unknown = {
        name: min(times)
        for name, versions in news.items()
        if all(version["landed_at"] >= since for version in versions)
        and (times := [pane for row in versions if (pane := row["pane_started_at"]) is not None])
    }
    # Rows that landed later than that are at hand, unless there were too many.
    known_since = rows[-1]["landed_at"] if len(rows) >= _MOST else end - _AT_HAND
    older = {
        name: at
        for name, at in unknown.items()
        # An order whose first known version is not its first one was placed before.
        if at - _PANE < known_since or all(row["order_status"] != "placed" for row in news[name])
    }
    news |= _older(view, restaurant_id, older, end)
    return [
        LateChange(name, pane)
        for name, versions in news.items()
        for pane in sorted(_changed_panes(versions, since))
    ]


def _older(
    view: SnapshotView, restaurant_id: str, orders: Mapping[str, datetime], end: datetime
) -> dict[str, list[StoredRow]]:
    """Return all versions of orders, given the start of the first pane that each is known in."""
    within_reach = {name: at for name, at in orders.items() if at >= end - _LONGEST - _SHIFT}
    tenants = frozenset({restaurant_id})
    if len(within_reach) > _FEW:
        since = ("landed_at", min(within_reach.values()) - _SHIFT)
        rows = view.rows(ARRIVALS, tenants=tenants, since=since, columns=_COLUMNS)
        by_order = grouped(rows, "order_id", str)
        return {name: by_order[name] for name in within_reach}
    return {
        name: list(
            view.rows(
                ARRIVALS,
                tenants=tenants,
                equals={"order_id": name},
                since=("landed_at", at - _SHIFT),
                columns=_COLUMNS,
            )
        )
        for name, at in within_reach.items()
    }


def _changed_panes(versions: Iterable[StoredRow], since: datetime) -> set[datetime]:
    """Return the panes that had ended when a version that landed since then changed them."""
    changed: set[datetime] = set()
    current: StoredRow | None = None
    for version in sorted(versions, key=lambda row: (row["landed_at"], _age(row))):
        if current is not None and _age(version) < _age(current):
            # It came after a newer one, and was never counted.
            continue
        is_news = version["landed_at"] >= since and version["batch_id"] != 0
        if is_news:
            changed |= {
                pane
                for pane in _difference(current, version)
                if pane + _PANE <= version["landed_at"]
            }
        current = version
    return changed


def _difference(before: StoredRow | None, after: StoredRow) -> set[datetime]:
    """Return the panes whose figures differ between two versions of an order, one after another."""
    old, new = None if before is None else _counted(before), _counted(after)
    if old != new:
        return {pane for pane in (old, new) if pane is not None}
    if before is None or new is None:
        return set()
    # A newer version that goes on saying the same status was not sent to tell of the status.
    is_corrected = _age(before) < _age(after) and before["order_status"] == after["order_status"]
    return {new} if is_corrected else set()


def _counted(version: StoredRow) -> datetime | None:
    """Return the pane that an order is counted in; None if it is not."""
    is_out = version["is_deletion"] or version["order_status"] == "cancelled"
    pane: datetime | None = version["pane_started_at"]
    return None if is_out else pane


def _age(version: StoredRow) -> tuple[bool, Any]:
    """Order versions as the tables of orders do; one without a time is before all others."""
    updated_at = version["updated_at"]
    return (updated_at is not None, updated_at or 0)
