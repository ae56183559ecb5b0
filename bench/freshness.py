"""How long it takes from a file in the landing folder to a client of the page, through `up`.

The real command on the reference mart with fifteen days of orders behind it. Then one order a file,
each in another restaurant: it is the only one in the newest point of its restaurant's trend.
"""

from __future__ import annotations

import itertools
import json
import queue
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path

from demo.catalogue import Restaurant
from demo.market import Market
from demo.records import Order
from livemart.land.hand_over import hand_over

ROOT = Path(__file__).resolve().parents[1]
_EVERY = "5s"
_WARM_UP = 5
_PATIENCE_S = 240.0
_START_S = 900.0

_PANE_S = 300
_MARGIN_S = 20
# Start of the newest point of a trend, and its orders.
Point = tuple[datetime, int | None]


def measure_freshness(folder: Path, files: int, say: Callable[[str], None]) -> list[float]:
    """Return, for so many files, the seconds from its rename to the event that shows its order."""
    landing = folder / "landing"
    market = Market(20260301, restaurants=40, orders_per_day=2_000)
    market.history(landing, datetime.now(UTC))
    chance = random.Random(20260301)
    delays: list[float] = []
    tries = itertools.count()
    with running(folder, landing) as port:
        say("up serves")
        for number in range(_WARM_UP + files):
            restaurant = market.restaurants[number % len(market.restaurants)]
            with watching(port, restaurant.restaurant_id) as points:
                points.get(timeout=_PATIENCE_S)
                took = None
                while took is None:
                    # At any instant of the interval.
                    time.sleep(chance.uniform(0, 5))
                    took = _shown_after(landing, restaurant, f"{number}-{next(tries)}", points)
            if number >= _WARM_UP:
                delays.append(took)
                say(f"file {number - _WARM_UP + 1}: {took:.2f} s")
    return delays


def _shown_after(
    landing: Path, restaurant: Restaurant, name: str, points: queue.Queue[Point]
) -> float | None:
    """Deliver an order; return the seconds until it is shown, None if its pane was over first.

    The newest point is that of the running pane: on a slow machine the next one may begin before
    the order is there.
    """
    if (rest := _PANE_S - time.time() % _PANE_S) < _MARGIN_S:
        time.sleep(rest + 1)
    now = datetime.now(UTC)
    dish = restaurant.dishes[0]
    order = Order(
        f"bench-{name}",
        restaurant,
        f"bench-customer-{name}",
        now,
        "placed",
        restaurant.currency,
        ((dish.dish_id, 1, dish.price),),
        now,
    )
    began = deliver(landing, order)
    pane = now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0)
    while True:
        start, orders = points.get(timeout=_PATIENCE_S)
        if (start, orders) == (pane, 1):
            return time.monotonic() - began
        if start > pane:
            return None


def deliver(landing: Path, order: Order) -> float:
    """Put a version of an order into the landing folder; return the instant after."""
    name = f"{order.order_id}-{order.updated_at:%H%M%S%f}.jsonl"
    hand_over(landing / "orders", name, f"{order.line()}\n".encode())
    return time.monotonic()


@contextmanager
def watching(port: int, restaurant_id: str) -> Iterator[queue.Queue[Point]]:
    """Yield the newest point of the last hour's trend, as it is pushed."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    connection.request("GET", f"/v1/restaurants/{restaurant_id}/stream?window=1h")
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"{restaurant_id}: {response.status}: {response.read().decode()}")
    points: queue.Queue[Point] = queue.Queue()

    def listen() -> None:
        # The connection is closed under its feet when enough was seen.
        try:
            kind = b""
            for line in response:
                if line.startswith(b"event: "):
                    kind = line[7:].strip()
                elif line.startswith(b"data: ") and kind == b"snapshot":
                    point = json.loads(line[6:])["trend_point"]
                    points.put((datetime.fromisoformat(point["start"]), point["order_count"]))
        except (OSError, ValueError, AttributeError):
            return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield points
    finally:
        if connection.sock is not None:
            connection.sock.close()
        connection.close()


@contextmanager
def running(folder: Path, landing: Path) -> Iterator[int]:
    """Run `livemart up` until its first snapshot is served; yield its port."""
    command = [sys.executable, str(ROOT / "runner.py"), "up", "--every", _EVERY, "--port", "0"]
    places = ["--project-dir", ROOT, "--warehouse", folder / "warehouse", "--landing", landing]
    log = folder / "up.log"
    with log.open("wb") as said:
        process = subprocess.Popen([*command, *map(str, places)], stdout=said, stderr=said)
        try:
            yield wait_until_ready(process, log)
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)


def wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> int:
    """Return the port once the first snapshot is shown."""
    ends_at = time.monotonic() + _START_S
    while time.monotonic() < ends_at:
        text = log.read_text(encoding="utf-8", errors="replace")
        if process.poll() is not None:
            raise RuntimeError(f"up ended with {process.returncode}:\n{text[-2_000:]}")
        if found := re.search(r"serving http://127\.0\.0\.1:(\d+)/", text):
            connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=_PATIENCE_S)
            connection.request("GET", "/v1/restaurants")
            status = connection.getresponse().status
            connection.close()
            if status == 200:
                return int(found[1])
        time.sleep(0.5)
    raise RuntimeError(f"no snapshot within {_START_S:.0f} s, see {log}")
