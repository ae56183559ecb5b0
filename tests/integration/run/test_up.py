"""`up`: from a file in the landing folder to an owner's page, and two processes apart."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import Page

from bench.freshness import ROOT, deliver, running, wait_until_ready
from demo.market import Market
from demo.records import Order
from tests.e2e.chromium import launching
from tests.e2e.site import ARTIFACTS, number_of
from tests.waits import PATIENCE_S, wait_until

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


@pytest.mark.processes
@pytest.mark.extended
@pytest.mark.timeout(1800)
def test_a_killed_engine_comes_back_and_sigterm_under_load_ends_within_ten_seconds(
    tmp_path: Path,
) -> None:
    landing, log = tmp_path / "landing", tmp_path / "up.log"
    market = Market(7, restaurants=3, orders_per_day=60)
    market.history(landing, datetime.now(UTC) - timedelta(hours=3))
    command = [sys.executable, str(ROOT / "runner.py"), "up", "--every", "1s", "--port", "0"]
    places = ["--project-dir", ROOT, "--warehouse", tmp_path / "warehouse", "--landing", landing]

    with log.open("wb") as output:
        up = subprocess.Popen([*command, *map(str, places)], stdout=output, stderr=output)
    try:
        port = wait_until_ready(up, log)
        server, engine = _part(up.pid, "server"), _part(up.pid, "engine")
        before = _ready(port)["snapshot_id"]

        os.kill(engine, signal.SIGKILL)

        # It is another snapshot, and of the same server.
        _deliver_one(landing, market, "after-the-kill")
        wait_until(lambda: _ready(port)["snapshot_id"] > before)
        assert _part(up.pid, "server") == server
        assert _part(up.pid, "engine") != engine
        for number in range(20):
            _deliver_one(landing, market, f"load-{number}")
        wait_until(lambda: "landing_began" in log.read_text().rpartition("snapshot_published")[2])
        began_at = monotonic()
        up.terminate()

        assert up.wait(PATIENCE_S) == 143
        assert monotonic() - began_at < 10
    finally:
        up.kill()
    assert "Traceback" not in log.read_text()
    assert not Path(f"/proc/{server}").exists()


def _part(supervisor: int, name: str) -> int:
    """Return the process of `up` that has this part."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    words = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in children}
    (pid,) = [pid for pid, text in words.items() if f"--part={name}" in text]
    return int(pid)


def _ready(port: int) -> dict[str, int]:
    """Return what `/readyz` says; no snapshot if it is not ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError:
        return {"snapshot_id": 0}


def _deliver_one(landing: Path, market: Market, order_id: str) -> None:
    now, restaurant = datetime.now(UTC), market.restaurants[0]
    dish = restaurant.dishes[0]
    items = ((dish.dish_id, 1, dish.price),)
    currency = restaurant.currency
    deliver(landing, Order(order_id, restaurant, "c", now, "placed", currency, items, now))


def _wait_for(page: Page, tile: str, pattern: str) -> None:
    page.locator(f"{tile} .value").filter(has_text=re.compile(pattern)).wait_for()
