"""Points of a window: panes of an hour, else whole hours of the restaurant's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from livemart.serve.owner.clock_hours import read_zone, trend_grid

_START = datetime(2026, 3, 1, 17, 45, tzinfo=UTC)
_WEEK = timedelta(days=7)


def test_an_hour_is_divided_into_panes() -> None:
    grid = trend_grid(_START, 1, "Asia/Kathmandu")

    assert {end - start for start, end in pairwise(grid.edges)} == {timedelta(minutes=5)}
    assert (grid.texts[0], grid.texts[-1]) == ("2026-03-01T17:45:00Z", "2026-03-01T18:40:00Z")


@pytest.mark.parametrize(
    ("zone", "minutes", "count"),
    [("Europe/Lisbon", "00", 25), ("Asia/Kathmandu", "15", 25), ("Nowhere", "00", 25)],
)
def test_a_day_has_whole_hours_of_the_clock_between_two_parts(
    zone: str, minutes: str, count: int
) -> None:
    grid = trend_grid(_START, 24, zone)

    assert len(grid.texts) == count
    assert {f"{edge:%M}" for edge in grid.edges[1:-1]} == {minutes}
    assert (grid.edges[0], grid.edges[-1]) == (_START, _START + timedelta(hours=24))


def test_a_window_of_whole_hours_has_no_part() -> None:
    grid = trend_grid(datetime(2026, 3, 1, 18, tzinfo=UTC), 24, "Europe/Lisbon")

    assert len(grid.texts) == 24


def test_the_week_before_has_the_same_points_though_clocks_changed_by_half_an_hour() -> None:
    start = datetime(2026, 3, 31, 3, 25, tzinfo=UTC)

    now, before = (
        trend_grid(start, 168, "Australia/Lord_Howe", back) for back in (0 * _WEEK, _WEEK)
    )

    assert [edge - _WEEK for edge in now.edges] == list(before.edges)
    zone = ZoneInfo("Australia/Lord_Howe")
    assert {edge.astimezone(zone).minute for edge in now.edges[1:-1]} <= {0, 30}


def test_a_window_that_ends_between_two_seconds_is_divided_at_hours() -> None:
    start = _START + timedelta(microseconds=7)

    edges = trend_grid(start, 24, None).edges

    assert {(edge.minute, edge.microsecond) for edge in edges[1:-1]} == {(0, 0)}


@pytest.mark.parametrize("name", [None, "", "Nowhere/City", "../../etc/passwd"])
def test_a_zone_that_nobody_knows_is_utc(name: str | None) -> None:
    assert read_zone(name) == (UTC, "UTC")
