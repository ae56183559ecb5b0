"""The stream of a restaurant over a real socket: its state at once, and with every snapshot."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import datetime, timedelta

from livemart.publish.publisher import confirm
from livemart.serve.live.snapshot_json import to_text
from livemart.serve.owner import schemas
from livemart.store.reader import StoreReader
from livemart.store.store import Store
from tests.serve.live.events import Event, open_stream
from tests.serve.live.push_world import World, newest_id, number_of
from tests.serve.owner.window_bodies import state_body
from tests.store.stores import NOON, fill_store, make_orders, make_snapshot, reference_tables


def test_the_state_comes_at_once_and_with_every_snapshot(world: World) -> None:
    async def watch() -> list[Event | None]:
        path = "/v1/restaurants/r1/stream?window=1h"
        async with open_stream(world.address, path) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["cache-control"] == "no-store"
            assert stream.headers["x-accel-buffering"] == "no"
            found = [await stream.next()]
            for _ in range(3):
                await asyncio.to_thread(world.publish, "r1")
                found.append(await stream.next())
            return found

    events = asyncio.run(watch())

    assert [event and (event.kind, number_of(event)) for event in events] == [
        ("snapshot", number) for number in (1, 2, 3, 4)
    ]
    last = events[-1]
    assert last is not None
    schemas.StateBody.model_validate(last.data)
    reader = StoreReader.open(world.url)
    with reader.snapshot() as view:
        expected = state_body(view, "r1", 1, server_time=NOON)
        assert expected is not None
        expected["checked_at"] = to_text(view.published.checked_at)
    reader.close()
    assert {**last.data, "server_time": to_text(NOON)} == expected


def test_who_has_the_newest_state_waits_for_the_next(world: World) -> None:
    async def watch(path: str, headers: dict[str, str]) -> Event | None:
        await world.until_streams(0)
        async with open_stream(world.address, path, headers) as stream:
            await world.until_streams(1)
            await asyncio.to_thread(world.publish, "r1")
            return await stream.next()

    async def at_once(headers: dict[str, str]) -> Event | None:
        async with open_stream(world.address, path, headers) as stream:
            return await stream.next()

    path = "/v1/restaurants/r1/stream"
    first = asyncio.run(watch(f"{path}?after={newest_id(world)}", {}))
    second = asyncio.run(watch(f"{path}?after=0", {"Last-Event-ID": newest_id(world)}))
    of_another = asyncio.run(at_once({"Last-Event-ID": "0000abcd-3"}))
    without_mark = asyncio.run(at_once({"Last-Event-ID": "3"}))

    found = (first, second, of_another, without_mark)
    assert [number_of(event) for event in found] == [2, 3, 3, 3]


def test_a_store_that_is_filled_anew_tells_its_state_under_the_same_id(world: World) -> None:
    async def watch() -> list[Event | None]:
        async with open_stream(world.address, "/v1/restaurants/r1/stream") as stream:
            first = await stream.next()
            tables = reference_tables(make_orders(a_day=4, seed=11))
            await asyncio.to_thread(
                fill_store, world.url, tables, snapshot_id=1, epoch="another", is_start=True
            )
            return [first, await stream.next()]

    events = asyncio.run(watch())

    assert [event and event.data["snapshot_id"] for event in events] == [1, 1]
    assert [event and event.data["epoch"] for event in events] == ["epoch", "another"]
    assert len({event and event.event_id for event in events}) == 2


def test_between_snapshots_the_state_is_known_to_be_the_newest(world: World) -> None:
    with closing(StoreReader.open(world.url)) as reader:
        newest = reader.newest()
    assert newest is not None
    moments = [newest.checked_at + timedelta(seconds=n) for n in range(1, 4)]

    def check(moment: datetime) -> None:
        with closing(Store.open(world.url)) as store:
            assert confirm(store, make_snapshot(1, []), moment)

    async def watch() -> list[Event | None]:
        async with open_stream(world.address, "/v1/restaurants/r1/stream") as stream:
            assert await stream.next() is not None
            found = []
            for moment in moments:
                await asyncio.to_thread(check, moment)
                found.append(await stream.next())
            return found

    events = asyncio.run(watch())

    assert [event and (event.kind, event.event_id) for event in events] == [("checked", None)] * 3
    assert [event and event.data["checked_at"] for event in events] == [
        to_text(moment) for moment in moments
    ]
