"""Divides a window into the points of its trend: panes, or whole hours of the restaurant's clock.

Used by the bodies; the page reads zones here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from livemart.serve.live.snapshot_json import to_text

PANE_STEP = timedelta(minutes=5)
CLOCK_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class TrendGrid:
    """Where the points of a window start, with its end as the last edge; `texts`: the starts."""

    edges: Sequence[datetime]
    texts: Sequence[str | None]


@lru_cache(maxsize=64)
def trend_grid(
    start: datetime, hours: int, zone_name: str | None, back: timedelta = timedelta(0)
) -> TrendGrid:
    """Return the points of a window: the same for all restaurants of a zone and a snapshot.

    A window of 1 hour is divided into panes. A longer one has the whole hours of the clock; what
    is left at its ends belongs to hours that it holds a part of. `back`: so much earlier, the same
    points.

    >>> from datetime import datetime, UTC
    >>> grid = trend_grid(datetime(2026, 3, 1, 12, 35, tzinfo=UTC), 2, "Asia/Kolkata")
    >>> [f"{edge:%H:%M}" for edge in grid.edges]
    ['12:35', '13:30', '14:30', '14:35']
    """
    end = start + timedelta(hours=hours)
    zone, _ = read_zone(zone_name)
    edges = [start]
    while edges[-1] < end:
        edges.append(min(_next_edge(edges[-1], hours, zone), end))
    moved = tuple(edge - back for edge in edges)
    return TrendGrid(moved, tuple(map(to_text, moved[:-1])))


def step_of(hours: int) -> timedelta:
    """Return how long a point of the trend is, unless it holds a part of a clock hour."""
    return PANE_STEP if hours == 1 else CLOCK_HOUR


def read_zone(name: str | None) -> tuple[tzinfo, str]:
    """Return a time zone and its name; an unknown one is UTC."""
    try:
        return (ZoneInfo(name), name) if name else (UTC, "UTC")
    except (KeyError, ValueError, OSError):
        return UTC, "UTC"


def _next_edge(edge: datetime, hours: int, zone: tzinfo) -> datetime:
    if hours == 1:
        return edge + PANE_STEP
    local = edge.astimezone(zone)
    passed = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    return edge + CLOCK_HOUR - passed
