"""Reads the rows of restaurants from the store, in one transaction.

Used by `Answers` and the page. No figure is computed here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from livemart.serve.http.problems import ProblemError
from livemart.serve.owner.panes import PANE_START, TREND, Panes, read_panes
from livemart.store.served import Published
from livemart.store.snapshot_view import SnapshotView

METRICS = "restaurant_order_metrics"
DISHES = "restaurant_top_dishes"
OWNER_MODELS = (METRICS, DISHES, TREND)

WINDOWS: Mapping[str, int] = {"1h": 1, "24h": 24, "168h": 168}

StoredRow = Mapping[str, Any]
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Facts:
    """The rows of one restaurant at one snapshot.

    `metrics`: one row by window hours; `dishes`: rows by window hours, in order of rank;
    `panes`: those of the last hour; `first_pane`: start of its oldest pane, or None.
    """

    published: Published
    restaurant_id: str
    metrics: Mapping[int, StoredRow]
    dishes: Mapping[int, Sequence[StoredRow]]
    panes: Panes
    first_pane: datetime | None

    @property
    def as_of(self) -> datetime:
        """The instant at which every window ends."""
        return end_of(self.published)

    @property
    def windows(self) -> list[str]:
        """The names of the windows that the project has figures of, the shortest first."""
        return [name for name, hours in WINDOWS.items() if hours in self.metrics]

    def of_window(self, hours: int) -> StoredRow:
        """Return the metrics of a window.

        Raises:
            ProblemError: WINDOW_UNKNOWN, if the project has no such window.
        """
        row = self.metrics.get(hours)
        if row is None:
            windows = ", ".join(self.windows) or "none"
            raise ProblemError("WINDOW_UNKNOWN", f"windows here are {windows}; found {hours}h")
        return row


def end_of(published: Published) -> datetime:
    """Return where windows end: `as_of`, or for a project without a clock the publication."""
    return published.as_of or published.published_at


def has_owner_models(view: SnapshotView) -> bool:
    """Return True if the models that the owner's questions are answered from are served."""
    return view.models().keys() >= set(OWNER_MODELS)


def first_window(view: SnapshotView, tenants: frozenset[str] | None) -> str | None:
    """Return the window to begin with: 24 hours, or else the shortest that there is; or None."""
    if not has_owner_models(view):
        return None
    names = sorted(WINDOWS, key=lambda name: name != "24h")
    filled = (
        name
        for name in names
        if view.rows(METRICS, tenants=tenants, equals={"window_hours": WINDOWS[name]}, limit=1)
    )
    return next(filled, None)


def read_facts(view: SnapshotView, restaurant_ids: Iterable[str]) -> dict[str, Facts]:
    """Return the facts of each restaurant that the store knows, by id."""
    if not has_owner_models(view):
        return {}
    tenants = frozenset(restaurant_ids)
    end = end_of(view.published)
    metrics = grouped(view.rows(METRICS, tenants=tenants), "restaurant_id", str)
    ranked = view.rows(DISHES, tenants=tenants, order_by=("dish_rank",))
    dishes = grouped(ranked, "restaurant_id", str)
    panes = read_panes(view, tenants, end - timedelta(hours=1))
    first_panes = view.firsts(TREND, PANE_START, tenants=tenants, among=METRICS)
    return {
        restaurant_id: Facts(
            published=view.published,
            restaurant_id=restaurant_id,
            metrics={row["window_hours"]: row for row in rows},
            dishes=grouped(dishes.get(restaurant_id, ()), "window_hours", int),
            panes=panes[restaurant_id],
            first_pane=first_panes.get(restaurant_id),
        )
        for restaurant_id, rows in metrics.items()
    }


def grouped(
    rows: Iterable[StoredRow], column: str, kind: Callable[[Any], _Key]
) -> dict[_Key, list[StoredRow]]:
    """Return rows by the value of a column, which `kind` reads; those without one are left out."""
    groups: defaultdict[_Key, list[StoredRow]] = defaultdict(list)
    for row in rows:
        if (value := row[column]) is not None:
            groups[kind(value)].append(row)
    return groups
