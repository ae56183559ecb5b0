"""What the store holds of restaurants, read in one transaction; no figure is computed here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from livemart.publish.reader import SnapshotView
from livemart.publish.served import Published

METRICS = "restaurant_order_metrics"
DISHES = "restaurant_top_dishes"
TREND = "restaurant_sales_trend"
ARRIVALS = "order_arrivals"
OWNER_MODELS = (METRICS, DISHES, TREND)

WINDOWS: Mapping[str, int] = {"1h": 1, "24h": 24, "168h": 168}
# A late order is news for so long; what came earlier is part of the figures.
LATE_FOR = timedelta(hours=1)
_MOST_LATE = 1_000
_OF_PANE = ("pane_started_at", "order_count", "sales_amount")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """The rows of one restaurant at one snapshot.

    `metrics`: one row by window hours; `dishes`: rows by window hours, in order of rank;
    `panes`: rows of the trend in the last hour; `first_pane`: start of its oldest pane, or None;
    `late_panes`: start of the pane that each late order of the last hour fell into, or None if
    the store does not know.
    """

    published: Published
    restaurant_id: str
    metrics: Mapping[int, Row]
    dishes: Mapping[int, Sequence[Row]]
    panes: Sequence[Row]
    first_pane: datetime | None
    late_panes: Sequence[datetime] | None

    @property
    def as_of(self) -> datetime:
        """The instant at which every window ends."""
        return end_of(self.published)


def end_of(published: Published) -> datetime:
    """Return where windows end: `as_of`, or for a project without a clock the publication."""
    return published.as_of or published.published_at


def has_owner_models(view: SnapshotView) -> bool:
    """Return True if the models that the owner's questions are answered from are served."""
    return view.models().keys() >= set(OWNER_MODELS)


def read_facts(view: SnapshotView, restaurant_ids: Iterable[str]) -> dict[str, Facts]:
    """Return the facts of each restaurant that the store knows, by id.

    Args:
        view: one snapshot.
        restaurant_ids: whose facts; unknown ones are left out.
    """
    if not has_owner_models(view):
        return {}
    tenants = frozenset(restaurant_ids)
    end = end_of(view.published)
    metrics = _by_tenant(view.rows(METRICS, tenants=tenants))
    dishes = _by_tenant(view.rows(DISHES, tenants=tenants, order_by=("dish_rank",)))
    last_hour = ("pane_started_at", end - timedelta(hours=1))
    panes = _by_tenant(
        view.rows(
            TREND,
            tenants=tenants,
            since=last_hour,
            order_by=("pane_started_at",),
            columns=("restaurant_id", *_OF_PANE),
        )
    )
    has_arrivals = ARRIVALS in view.models()
    return {
        restaurant_id: Facts(
            published=view.published,
            restaurant_id=restaurant_id,
            metrics={row["window_hours"]: row for row in rows},
            dishes=_by_window(dishes.get(restaurant_id, ())),
            panes=panes.get(restaurant_id, ()),
            first_pane=_first_pane(view, restaurant_id),
            late_panes=_late_panes(view, restaurant_id, end) if has_arrivals else None,
        )
        for restaurant_id, rows in metrics.items()
    }


def read_panes(
    view: SnapshotView, restaurant_id: str, start: datetime, end: datetime
) -> list[dict[str, Any]]:
    """Return the rows of the trend with a pane that starts in `[start, end)`, in order."""
    return view.rows(
        TREND,
        tenants=frozenset({restaurant_id}),
        since=("pane_started_at", start),
        until=("pane_started_at", end),
        order_by=("pane_started_at",),
        columns=_OF_PANE,
    )


def _first_pane(view: SnapshotView, restaurant_id: str) -> datetime | None:
    rows = view.rows(
        TREND,
        tenants=frozenset({restaurant_id}),
        order_by=("pane_started_at",),
        limit=1,
        columns=("pane_started_at",),
    )
    return rows[0]["pane_started_at"] if rows else None


def _late_panes(view: SnapshotView, restaurant_id: str, end: datetime) -> list[datetime]:
    rows = view.rows(
        ARRIVALS,
        tenants=frozenset({restaurant_id}),
        equals={"is_late": True},
        since=("landed_at", end - LATE_FOR),
        order_by=("landed_at",),
        descending=True,
        limit=_MOST_LATE,
        columns=("changed_pane_started_at", "order_status", "batch_id"),
    )
    # Delivery changes no figure; and of a first load nobody saw an earlier one.
    return [
        row["changed_pane_started_at"]
        for row in rows
        if row["order_status"] != "delivered" and row["batch_id"] != 0
    ]


def _by_tenant(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["restaurant_id"]].append(row)
    return found


def _by_window(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["window_hours"]].append(row)
    return found
