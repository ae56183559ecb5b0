"""The page says what plain SQL says of the raw orders, for each of the three buttons."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise

import pytest

from livemart.serve.page.text import LocalFormat, percent
from livemart.serve.page.view import late_sentence
from tests.e2e.conftest import OpenVisit
from tests.e2e.oracle import Oracle, Totals
from tests.e2e.raw_orders import AZUL, RESTAURANTS, SAKURA
from tests.e2e.site import Site, Visit, number_of
from tests.store.stores import PANE

_BUTTONS = {1: "1 h", 24: "24 h", 168: "168 h"}


@pytest.fixture(scope="module")
def oracle(site: Site) -> Iterator[Oracle]:
    """Plain SQL over the orders that the session's site shows."""
    oracle = Oracle(site.raw)
    yield oracle
    oracle.close()


@pytest.mark.parametrize("restaurant_id", [AZUL, pytest.param(SAKURA, marks=pytest.mark.extended)])
@pytest.mark.parametrize("has_script", [True, False])
def test_the_three_buttons_give_the_numbers_of_sql(
    site: Site, visit: OpenVisit, oracle: Oracle, restaurant_id: str, has_script: bool
) -> None:
    opened = visit(site, has_script=has_script)
    opened.go(f"/r/{restaurant_id}?window=168h")
    if has_script:
        opened.wait_live()

    for hours in (1, 24, 168):
        _press(opened, hours)
        _assert_figures(opened, oracle, site, restaurant_id, hours)


def _press(opened: Visit, hours: int) -> None:
    button = opened.page.get_by_role("group", name="Window").get_by_role("button")
    button.filter(has_text=_BUTTONS[hours]).first.click()
    opened.page.locator(f"button[value='{hours}h'][aria-pressed='true']").wait_for()
    assert opened.page.locator("button[aria-pressed='true']").count() == 1
    assert opened.page.url.endswith(f"?window={hours}h")
    words = {1: "hour", 24: "24 hours", 168: "7 days"}[hours]
    assert f", last {words} - livemart" in opened.page.title()


def _assert_figures(
    opened: Visit, oracle: Oracle, site: Site, restaurant_id: str, hours: int
) -> None:
    as_of, page = site.raw.as_of, opened.page
    digits = Decimal(1) if RESTAURANTS[restaurant_id][2] == "JPY" else Decimal("0.01")
    now = oracle.totals(restaurant_id, as_of, hours)
    start, until = as_of - timedelta(hours=hours), as_of - PANE
    compared, last_week = (
        oracle.between(restaurant_id, start - back, until - back)
        for back in (timedelta(0), timedelta(days=7))
    )
    average = (now.sales_amount / now.order_count).quantize(digits, ROUND_HALF_UP)

    assert opened.figure("order_count") == now.order_count
    assert opened.figure("sales_amount") == now.sales_amount.quantize(digits, ROUND_HALF_UP)
    assert opened.figure("average_order_value") == average
    assert opened.figure("unique_customers") == now.unique_customers
    for tile in ("order_count", "sales_amount", "average_order_value", "unique_customers"):
        _assert_change(opened, tile, _of_tile(compared, tile), _of_tile(last_week, tile))
    assert page.locator("#base").inner_text().endswith("beside the same time one week before.")

    dishes = [
        (
            line.locator(".dish").inner_text(),
            int(number_of(line.locator(".sold").inner_text())),
            number_of(line.locator(".sales").inner_text()),
            number_of(line.locator(".percent").inner_text()),
        )
        for line in page.locator("#dishes li").all()
    ]
    assert dishes == [
        (
            name,
            sold,
            sales.quantize(digits, ROUND_HALF_UP),
            (100 * sales / now.sales_amount).quantize(Decimal(1), ROUND_HALF_UP),
        )
        for name, sold, sales in oracle.top_dishes(restaurant_id, as_of, hours)
    ]
    _assert_trend(opened, oracle, site, restaurant_id, hours)


def _of_tile(totals: Totals, tile: str) -> Decimal | None:
    """Return a figure as the model has it: an average has two digits whatever the currency is."""
    if tile == "order_count":
        return Decimal(totals.order_count)
    if tile == "unique_customers":
        return Decimal(totals.unique_customers)
    if tile == "sales_amount":
        return totals.sales_amount
    if not totals.order_count:
        return None
    return (totals.sales_amount / totals.order_count).quantize(Decimal("0.01"), ROUND_HALF_UP)


def _assert_change(
    opened: Visit, tile: str, value: Decimal | None, last_week: Decimal | None
) -> None:
    words = opened.page.locator(f"#{tile} .words").inner_text()
    if value is None or not last_week:
        assert words == "no comparison"
        return
    tenths = (100 * abs(value - last_week) / last_week).quantize(Decimal("0.1"), ROUND_HALF_UP)
    if not tenths:
        assert words.startswith("unchanged")
        return
    assert words.startswith("up " if value > last_week else "down ")
    assert words.endswith("\u00a0% on last week")
    assert number_of(words) == tenths


def _assert_trend(
    opened: Visit, oracle: Oracle, site: Site, restaurant_id: str, hours: int
) -> None:
    step = timedelta(minutes=5) if hours == 1 else timedelta(hours=1)
    as_of = site.raw.as_of
    # All clocks of these restaurants are whole hours from UTC.
    into_hour = timedelta(minutes=0 if hours == 1 else as_of.minute)
    edges = [as_of - timedelta(hours=hours)]
    while edges[-1] < as_of:
        edge = edges[-1] + step - (into_hour if len(edges) == 1 else timedelta(0))
        edges.append(min(edge, as_of))
    rows = opened.page.locator("#points tr").evaluate_all(
        "rows => rows.map((row) => [row.cells[1].textContent, "
        "...[...row.querySelectorAll('data')].map((data) => data.value)])"
    )
    expected = []
    for start, stop in pairwise(edges):
        now, before = (
            oracle.between(restaurant_id, start - back, stop - back)
            for back in (timedelta(0), timedelta(days=7))
        )
        expected.append((now.order_count, now.sales_amount, before.sales_amount))

    assert [
        (int(number_of(orders)), Decimal(sales), Decimal(before)) for orders, sales, before in rows
    ] == expected


@pytest.mark.extended
def test_script_and_server_write_the_same_text(site: Site, visit: OpenVisit) -> None:
    for path in (f"/r/{restaurant}?window=" for restaurant in RESTAURANTS):
        painted = visit(site, has_script=False)
        scripted = visit(site)
        scripted.go(f"{path}24h")
        scripted.wait_live()
        for window in ("1h", "168h", "24h"):
            painted.go(f"{path}{window}")
            scripted.page.locator(f"button[value='{window}']").click()
            scripted.page.locator(f"button[value='{window}'][aria-pressed='true']").wait_for()
            for opened in (painted, scripted):
                opened.page.locator("#data").evaluate("details => details.open = true")

            assert _texts(scripted) == _texts(painted)


def test_a_percent_is_rounded_once_whoever_writes_it(site: Site, visit: OpenVisit) -> None:
    opened = visit(site)
    opened.go()
    # 38.4955 % is 38 %, although its share of four digits is 0.3850.
    amounts = [("38.4955", "100"), ("0.5", "100"), ("120", "100"), ("-10", "100"), ("1", "0.00")]

    scripted = opened.page.evaluate(
        "async (amounts) => { const { percentOf } = await import('/static/page/words.js');"
        " return amounts.map(([part, whole]) => percentOf(part, whole)); }",
        amounts,
    )

    assert scripted == [38, 1, 100, 0, None]
    assert scripted == [percent(Decimal(part), Decimal(whole)) for part, whole in amounts]


def test_an_average_is_rounded_once_whoever_writes_it(site: Site, visit: OpenVisit) -> None:
    opened = visit(site)
    opened.go(f"/r/{SAKURA}?window=24h")
    known = [(44, "2089.80", "47.50"), (44, "2090.00", "47.50"), (3, "2.00", "0.67")]
    unknown = [(0, "0.00", None), (44, None, "47.50")]

    scripted = opened.page.evaluate(
        "async (metrics) => {"
        " const { averageOf, money } = await import('/static/page/words.js');"
        " return metrics.map((figures) => { const [orders, sales, average] = figures.map((value) =>"
        " ({ value })); return money(averageOf({ order_count: orders, sales_amount: sales,"
        " average_order_value: average })); }); }",
        known + unknown,
    )

    assert scripted == ["JP¥47", "JP¥48", "JP¥1", "\u2013", "JP¥48"]


def test_the_day_of_late_orders_is_named_alike_by_script_and_server(
    site: Site, visit: OpenVisit
) -> None:
    opened = visit(site)
    opened.go()
    opened.wait_live()
    zone, currency = RESTAURANTS[AZUL][1:]
    ends = [datetime(2026, 3, 2, 14, 35, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC)]
    backs = [timedelta(minutes=5), timedelta(hours=3), timedelta(hours=20), timedelta(days=6.5)]
    cases = [
        (end - first, end - min(first, last), end)
        for end in ends
        for first in backs
        for last in (timedelta(minutes=5), first)
    ]
    states = [
        {
            "window": {"end": f"{end:%Y-%m-%dT%H:%M:%SZ}"},
            "late_corrections": {
                "order_count": 2,
                "panes": [f"{pane:%Y-%m-%dT%H:%M:%SZ}" for pane in {first, last}],
            },
        }
        for first, last, end in cases
    ]

    scripted = opened.page.evaluate(
        "async (states) => { const { lateSentence } = await import('/static/page/figures.js');"
        " return states.map(({ late_corrections: late, window }) =>"
        " lateSentence(late, Date.parse(window.end))); }",
        states,
    )

    assert scripted == [late_sentence(state, LocalFormat.of(zone, currency)) for state in states]
    assert len(set(scripted)) > 6


def _texts(opened: Visit) -> list[str]:
    """Return the text of every part that server and script write, but for blanks of the markup."""
    parts = (
        "#name, #data-at, #windows, .span, #base, #note, .tiles, #caption, #points, #dishes, #late"
    )
    found: list[str] = opened.page.locator(parts).evaluate_all(
        "parts => parts.map((part) => part.textContent.replace(/[ \\n]+/g, ''))"
    )
    return [opened.page.title(), *found]
