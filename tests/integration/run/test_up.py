"""`up`, from a file in the landing folder to an owner's page in a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page

from bench.freshness import deliver, running
from demo.market import Market
from demo.records import Order
from tests.e2e.chromium import launching
from tests.e2e.site import ARTIFACTS, number_of
from tests.waits import PATIENCE_S

_PANE = timedelta(minutes=5)


@pytest.mark.processes
@pytest.mark.extended
@pytest.mark.timeout(1800)
def test_what_is_delivered_is_on_the_page_without_a_reload(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    market = Market(7, restaurants=3, orders_per_day=60)
    # The last hour is empty: what the page shows of it is what this test delivers.
    market.history(landing, datetime.now(UTC) - timedelta(hours=3))
    restaurant = market.restaurants[0]
    dish = restaurant.dishes[0]

    with running(tmp_path, landing) as port, launching() as launch:
        page = launch().new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto(f"http://127.0.0.1:{port}/r/{restaurant.restaurant_id}?window=1h")
        page.evaluate("window.wasNotReloaded = true")
        _wait_for(page, "#order_count", r"^0$")

        now = datetime.now(UTC)
        order = Order(
            "of-this-test",
            restaurant,
            "customer-of-this-test",
            # Before the newest pane, which is still open.
            now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0) - _PANE / 2,
            "placed",
            restaurant.currency,
            ((dish.dish_id, 2, dish.price),),
            now,
        )
        deliver(landing, order)
        _wait_for(page, "#order_count", r"^1$")
        # All tiles change with the same event.
        shown = page.locator("#sales_amount .value").inner_text()
        assert number_of(shown) == 2 * dish.price
        assert page.locator("#unique_customers .value").inner_text() == "1"
        page.get_by_text(dish.name).first.wait_for()
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=ARTIFACTS / "up-first-order.png", full_page=True)

        cancelled = replace(order, status="cancelled", updated_at=now + timedelta(seconds=1))
        deliver(landing, cancelled)
        _wait_for(page, "#order_count", r"^0$")
        assert page.evaluate("window.wasNotReloaded") is True


def _wait_for(page: Page, tile: str, pattern: str) -> None:
    page.locator(f"{tile} .value").filter(has_text=re.compile(pattern)).wait_for()
