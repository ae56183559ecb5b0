"""A store that a test fills snapshot by snapshot, a server over it, and what its streams tell."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from livemart.serve.auth.tokens import TokenStore
from livemart.serve.models.written_rows import json_row
from livemart.store.positions import state_id
from livemart.store.reader import StoreReader
from tests.serve.apps import make_settings
from tests.serve.live.events import Event, Stream
from tests.store.stores import NOON, Order, fill_store, make_orders, reference_tables
from tests.waits import PATIENCE_S, wait_until

ORDERS = make_orders(a_day=6)
DISHES = "/v1/models/restaurant_top_dishes/stream"
KEY = ("restaurant_id", "window_hours", "dish_rank")


class World:
    """A store that a test fills snapshot by snapshot, and a server over it."""

    def __init__(self, folder: Path, address: tuple[str, int]) -> None:
        self.address = address
        self.url = str(make_settings(folder).store_url)
        self.snapshot_id = 0
        self.orders = list(ORDERS)

    def publish(self, *restaurants: str) -> None:
        """Publish a snapshot with one more order in each of these restaurants."""
        self.snapshot_id += 1
        number = self.snapshot_id
        self.orders += [
            Order(f"new{number}{each}", each, "c1", NOON - timedelta(minutes=1), (("d4", 5),))
            for each in restaurants
        ]
        as_of = NOON + timedelta(seconds=number)
        fill_store(self.url, reference_tables(self.orders), snapshot_id=number, as_of=as_of)

    def until_shown(self, epoch: str) -> None:
        """Wait until the server answers from a store of this epoch."""
        host, port = self.address

        def is_shown() -> bool:
            with urlopen(f"http://{host}:{port}/v1/restaurants", timeout=PATIENCE_S) as answer:
                return bool(json.load(answer)["epoch"] == epoch)

        wait_until(is_shown)

    def measured(self, name: str) -> float:
        """Return the sum of a measurement of the server, by name and labels as they are shown."""
        host, port = self.address
        with urlopen(f"http://{host}:{port}/metrics", timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
        return sum(float(each) for each in re.findall(rf"(?m)^{re.escape(name)} (\S+)$", text))

    async def until_streams(self, count: int) -> None:
        """Wait until so many streams are open."""
        await asyncio.to_thread(wait_until, lambda: self.measured("livemart_streams") == count)

    def tokens(self) -> TokenStore:
        """Open the tokens of the store."""
        return TokenStore(self.url)

    def rows(self, model: str, tenants: frozenset[str] | None = None) -> list[dict[str, Any]]:
        """Return rows as the change log writes them."""
        reader = StoreReader.open(self.url)
        try:
            with reader.snapshot() as view:
                served = view.models()[model]
                return [json_row(served, row) for row in view.rows(model, tenants=tenants)]
        finally:
            reader.close()


def apply(rows: dict[tuple[Any, ...], dict[str, Any]], event: Event) -> None:
    """Do to `rows` what an event of a change stream says."""
    if event.kind == "reset":
        rows.clear()
    elif event.kind == "change":
        row = event.data["row"]
        key = tuple(row[name] for name in KEY)
        if event.data["op"] == "insert":
            assert key not in rows
        else:
            assert key in rows
        if event.data["op"] == "delete":
            del rows[key]
        else:
            rows[key] = row


def number_of(event: Event | None) -> int:
    """Return the snapshot of an event's id; 0 if it has none."""
    return event.data["snapshot_id"] if event is not None and event.event_id else 0


async def until_mark(stream: Stream, snapshot_id: int) -> list[Event]:
    """Return the events up to the one that ends a snapshot."""
    found = []
    while True:
        event = await stream.next()
        assert event is not None
        found.append(event)
        if event.kind == "snapshot" and number_of(event) == snapshot_id:
            return found


def newest_id(world: World) -> str:
    """Return the id of the event that tells the state at the newest snapshot."""
    with closing(StoreReader.open(world.url)) as reader:
        published = reader.newest()
    assert published is not None
    return state_id(published)
