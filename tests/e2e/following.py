"""One more order, and waiting until a page says what SQL says of all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

from playwright.sync_api import Route
from playwright.sync_api import TimeoutError as WaitedInVain

from tests.e2e.oracle import Oracle, Totals
from tests.e2e.raw_orders import AZUL, RawOrder, make_order
from tests.e2e.site import Site, Visit

_SAYS = """figures => Object.entries(figures).every(([tile, figure]) => figure ===
  document.querySelector(`#${tile} .value`).textContent.replace(/[^\\d.]/g, ""))"""


def order_once(site: Site, *, age: timedelta = timedelta(0)) -> None:
    """Let one more order arrive and be published, as a snapshot that is so old."""
    at = site.raw.as_of - timedelta(seconds=1)
    row = make_order(random.Random(len(site.raw.rows)), AZUL, at)
    site.raw.rows.append(RawOrder(row.order, "EUR"))
    site.publish(age=age)


def totals_of(site: Site, hours: int = 24) -> Totals:
    """Return what SQL says of the raw orders of a window."""
    oracle = Oracle(site.raw)
    try:
        return oracle.totals(AZUL, site.raw.as_of, hours)
    finally:
        oracle.close()


def wait_for_figures(opened: Visit, site: Site, *, hours: int = 24) -> None:
    """Wait until the page says what SQL says of the raw orders.

    No figure alone tells that the page is at the newest snapshot: where an order enters the window
    as another one leaves it, their number stays.
    """
    totals = totals_of(site, hours)
    average = (totals.sales_amount / totals.order_count).quantize(Decimal("0.01"), ROUND_HALF_UP)
    expected = {
        "order_count": f"{totals.order_count}",
        "sales_amount": f"{totals.sales_amount:.2f}",
        "average_order_value": f"{average}",
    }
    try:
        opened.page.wait_for_function(_SAYS, arg=expected)
    except WaitedInVain as error:
        found = {tile: opened.figure(tile) for tile in expected}
        raise AssertionError(f"the page says {found}, SQL {expected}") from error


def wait_for_trend(opened: Visit, site: Site, *, hours: int = 24) -> None:
    """Wait until the points of the trend add up to the figure of the tile."""
    total = totals_of(site, hours).sales_amount
    opened.page.wait_for_function(
        "cents => [...document.querySelectorAll('#points tr')].reduce((sum, row) => "
        "sum + Math.round(100 * row.querySelector('data').value), 0) === cents",
        arg=int(total * 100),
    )


@contextmanager
def holding(opened: Visit, pattern: str) -> Iterator[None]:
    """Keep from the server what the page asks of it, and hand it over in the end."""
    held: list[Route] = []
    is_over = False

    def handle(route: Route) -> None:
        if is_over:
            route.continue_()
        else:
            held.append(route)

    opened.page.route(pattern, handle)
    yield
    is_over = True
    for route in held:
        route.continue_()
