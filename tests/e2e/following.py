"""One more order, and waiting until a page says what SQL says of all of them."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from tests.e2e.oracle import Oracle, Totals
from tests.e2e.raw_orders import AZUL, RawOrder, make_order
from tests.e2e.site import Site, Visit

_PATIENCE_SECONDS = 60


def order_once(site: Site) -> None:
    """Let one more order arrive and be published."""
    now = min(datetime.now(UTC), site.raw.as_of - timedelta(seconds=1))
    row = make_order(random.Random(len(site.raw.rows)), AZUL, now)
    site.raw.rows.append(RawOrder(replace(row.order, landed_at=now), "EUR"))
    site.publish()


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
        "order_count": totals.order_count,
        "sales_amount": totals.sales_amount,
        "average_order_value": average,
    }
    end = time.monotonic() + _PATIENCE_SECONDS
    while (found := {name: opened.figure(name) for name in expected}) != expected:
        assert time.monotonic() < end, (found, expected)
        opened.page.wait_for_timeout(50)
