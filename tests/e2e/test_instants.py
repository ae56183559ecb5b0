"""Whatever the day and the hour: page and SQL agree, and so do the server's text and the script's.

At ends of months and years and where the clocks of the restaurants change; other orders each time,
and at night any instant of four years.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from livemart.intervals import late_after
from livemart.serve.live.snapshot_json import to_text
from livemart.serve.owner.answers import PAGE_PARTS, read_restaurants
from livemart.serve.page import page
from livemart.serve.page.templating import render
from livemart.serve.page.view import build_view
from livemart.store.reader import StoreReader
from tests.conftest import IS_NIGHTLY
from tests.e2e.conftest import OpenVisit
from tests.e2e.oracle import Oracle
from tests.e2e.raw_orders import RESTAURANTS, RawOrders
from tests.e2e.site import Site, number_of
from tests.serve.page.template_names import by_name
from tests.store.stores import fill_store

_AGE = timedelta(seconds=12)
_INTERVAL = timedelta(minutes=5)
_NAMED = (
    "2024-02-29T23:59:59.999999",
    "2026-01-01T00:00:00",
    # Lisbon and Berlin put their clocks forward, then back; New York on other days.
    "2026-03-29T01:00:00",
    "2026-03-30T00:59:59",
    "2026-10-25T00:30:00",
    "2026-10-25T23:30:00",
    "2026-03-08T07:00:00",
    "2026-11-01T06:04:59",
    # Midnight in Tokyo, and a month with a long short name.
    "2026-09-30T15:00:00",
)
_PARTS = "#name, #data-at, .span, #base, #note, .tiles, #caption, #points, #dishes, #late, #zone"
_TEXTS = "[...root.querySelectorAll(parts)].map((part) => part.textContent.replace(/\\s+/g, ''))"


@dataclass(frozen=True, slots=True)
class Shown:
    """The inputs of the page of a restaurant and window, and its view."""

    where: str
    state: dict[str, Any]
    trend: dict[str, Any]
    view: Any


def _instants() -> list[datetime]:
    named = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in _NAMED]
    chance = random.Random(5)
    start, width = datetime(2024, 1, 1, tzinfo=UTC), 4 * 365 * 86_400_000_000
    count = 300 if IS_NIGHTLY else 0
    return named + [start + timedelta(microseconds=chance.randrange(width)) for _ in range(count)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[Shown]:
    """All pages of all instants; each instant was compared with SQL on the way."""
    found: list[Shown] = []
    for number, now in enumerate(_instants()):
        raw = RawOrders.drawn(now, seed=number)
        url = f"sqlite:///{tmp_path_factory.mktemp('instant')}/serving.db"
        fill_store(url, raw.models(), as_of=raw.as_of, now=now)
        found += _read(url, now)
    return found


def _read(url: str, now: datetime) -> Iterator[Shown]:
    reader = StoreReader.open(url)
    with reader.snapshot() as view:
        restaurants = read_restaurants(view, dict.fromkeys(RESTAURANTS, PAGE_PARTS))
        for restaurant_id, bodies in restaurants.items():
            for hours in (1, 24, 168):
                times = {"server_time": to_text(now + _AGE), "checked_at": to_text(now)}
                state = {**json.loads(bodies.get("state", hours)), **times}
                trend = json.loads(bodies.get("trend", hours))
                built = by_name(build_view(state, trend, interval=_INTERVAL))
                yield Shown(f"{now} {restaurant_id} {hours} h", state, trend, built)
    reader.close()


@pytest.mark.extended
def test_every_page_says_what_sql_says(shown: list[Shown]) -> None:
    pages = iter(shown)
    for number, now in enumerate(_instants()):
        raw = RawOrders.drawn(now, seed=number)
        oracle = Oracle(raw)
        for _ in range(3 * len(RESTAURANTS)):
            _assert_true(next(pages), oracle, raw.as_of)
        oracle.close()
    assert next(pages, None) is None


def _assert_true(shown: Shown, oracle: Oracle, as_of: datetime) -> None:
    view, where = shown.view, shown.where
    restaurant_id, hours = shown.state["restaurant"]["id"], shown.state["window"]["hours"]
    zone = ZoneInfo(view.local.zone_name)
    digits = Decimal(1).scaleb(-view.local.digits)
    totals = oracle.totals(restaurant_id, as_of, hours)
    tiles = {tile.key: tile.value for tile in view.tiles}
    assert number_of(tiles["order_count"]) == totals.order_count, where
    assert number_of(tiles["unique_customers"]) == totals.unique_customers, where
    assert number_of(tiles["sales_amount"]) == _round(totals.sales_amount, digits), where
    if totals.order_count:
        average = _round(totals.sales_amount / totals.order_count, digits)
        assert number_of(tiles["average_order_value"]) == average, where
    else:
        assert tiles["average_order_value"] == "\u2013", where
    assert [(dish.name, dish.sold, number_of(dish.sales), dish.share) for dish in view.dishes] == [
        (name, f"{sold:,}", _round(sales, digits), int(_round(100 * sales / totals.sales_amount)))
        for name, sold, sales in oracle.top_dishes(restaurant_id, as_of, hours)
    ], where
    points = [row for row in view.points if row.sales_amount is not None]
    assert sum(Decimal(row.sales_amount or 0) for row in points) == totals.sales_amount, where
    assert sum(number_of(row.orders) for row in points) == totals.order_count, where
    pattern = "%H:%M" if hours == 1 else "%a %H:%M"
    assert [row.label for row in view.points] == [
        f"{datetime.fromisoformat(row.started_at).astimezone(zone):{pattern}}"
        for row in view.points
    ], where
    assert (view.age, view.is_stale) == ("12 s ago", False), where


def _round(amount: Decimal, digits: Decimal = Decimal(1)) -> Decimal:
    return amount.quantize(digits, ROUND_HALF_UP)


def test_the_script_writes_every_page_as_the_server_does(
    site: Site, visit: OpenVisit, shown: list[Shown]
) -> None:
    opened = visit(site)
    opened.go()
    opened.wait_live()
    for each in shown:
        html = render(
            "page.html",
            state=each.state,
            view=each.view,
            step_minutes=each.trend["step_minutes"],
            windows=page._BUTTONS,
            restaurants=[],
            most_listed=500,
            interval_seconds=int(_INTERVAL.total_seconds()),
            late_after_seconds=int(late_after(_INTERVAL).total_seconds()),
            is_local=True,
            failed="",
        )

        painted, scripted = opened.page.evaluate(
            "async ({ html, state, trend, parts }) => {"
            " const { paint } = await import('/static/page/figures.js');"
            " const { paintTrend } = await import('/static/page/trend.js');"
            f" const texts = (root) => {_TEXTS};"
            " paint(state); paintTrend(trend, state.late_corrections);"
            " return [texts(new DOMParser().parseFromString(html, 'text/html')), texts(document)];"
            " }",
            {"html": html, "state": each.state, "trend": each.trend, "parts": _PARTS},
        )

        assert scripted == painted, each.where
