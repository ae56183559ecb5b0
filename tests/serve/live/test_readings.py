"""A reading is made once a snapshot and shared; nothing goes back to an older snapshot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.tokens import TokenStore
from livemart.serve.http.problems import ProblemError
from livemart.serve.live import readings as readings_module
from livemart.serve.live.hub import Hub
from livemart.serve.live.readings import Readings
from livemart.serve.shares.round_robin import LINE
from livemart.store.reader import StoreReader
from livemart.store.served import Published
from livemart.store.snapshot_view import SnapshotView
from tests.waits import PATIENCE_S, wait_until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def published(snapshot_id: int) -> Published:
    moment = NOON + timedelta(minutes=snapshot_id)
    return Published(snapshot_id, NOON, moment, "epoch", moment)


class FakeReader(StoreReader):
    """A store of which only the newest snapshot is known; it answers when it may."""

    def __init__(self, newest: Published | None) -> None:
        self.shown = newest
        self.reads = 0
        self.may_read = threading.Event()
        self.may_read.set()

    def newest(self) -> Published | None:
        return self.shown

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotView]:
        self.reads += 1
        assert self.may_read.wait(PATIENCE_S)
        yield cast(SnapshotView, SimpleNamespace(published=self.shown))


@asynccontextmanager
async def reading(reader: FakeReader) -> AsyncIterator[tuple[Readings, Hub]]:
    """Readings of a store whose hub never looks by itself."""
    hub = Hub(reader, TokenBook(cast(TokenStore, None)))
    readings = Readings(reader, hub)
    try:
        yield readings, hub
    finally:
        hub.close()
        readings.close()


def snapshot_id(view: SnapshotView) -> int:
    return view.published.snapshot_id


def test_what_many_ask_for_at_once_is_read_once() -> None:
    reader = FakeReader(published(1))

    async def ask() -> list[int]:
        async with reading(reader) as (readings, _):
            asked = [readings.read("key", snapshot_id) for _ in range(5)]
            return [answer.value for answer in await asyncio.gather(*asked)]

    assert asyncio.run(ask()) == [1] * 5
    assert reader.reads == 1


def test_a_result_is_kept_until_there_is_a_newer_snapshot() -> None:
    reader = FakeReader(published(1))

    async def ask() -> list[tuple[int, int]]:
        seen = []
        async with reading(reader) as (readings, hub):
            for newest in (1, 1, 2, 2):
                reader.shown = published(newest)
                hub.note_newer(reader.shown)
                answer = await readings.read("key", snapshot_id)
                seen.append((answer.value, reader.reads))
        return seen

    assert asyncio.run(ask()) == [(1, 1), (1, 1), (2, 2), (2, 2)]


def test_a_result_of_none_is_read_again() -> None:
    reader = FakeReader(published(1))

    async def ask() -> None:
        async with reading(reader) as (readings, _):
            for _ in range(2):
                await readings.read("key", lambda view: None)

    asyncio.run(ask())

    assert reader.reads == 2


def test_one_who_leaves_does_not_take_the_others_result_along() -> None:
    reader = FakeReader(published(1))

    async def ask() -> int:
        async with reading(reader) as (readings, _):
            await readings.newest()
            reader.may_read.clear()
            first, second = (
                asyncio.create_task(readings.read("key", snapshot_id)) for _ in range(2)
            )
            await asyncio.to_thread(wait_until, lambda: reader.reads > 0)
            first.cancel()
            reader.may_read.set()
            return (await second).value

    assert asyncio.run(ask()) == 1
    assert reader.reads == 1


def test_readings_take_turns_of_callers_and_a_shared_one_has_a_separate_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One who waits for it does not wait for the others of the one who asked first."""
    monkeypatch.setattr(readings_module, "_THREADS", 1)
    reader, done = FakeReader(published(1)), list[str]()

    async def ask() -> None:
        async with reading(reader) as (readings, _):
            await readings.newest()
            reader.may_read.clear()

            async def read(name: str) -> None:
                LINE.set(name[0])
                await readings.read_fresh(lambda view: done.append(name))

            async def share() -> None:
                LINE.set("a")
                await readings.read("key", lambda view: done.append("shared"))

            async with asyncio.TaskGroup() as group:
                group.create_task(read("x"))
                await asyncio.to_thread(wait_until, lambda: reader.reads > 0)
                for name in ("a1", "a2", "a3", "b1"):
                    group.create_task(read(name))
                group.create_task(share())
                for _ in range(5):
                    await asyncio.sleep(0)
                reader.may_read.set()

    asyncio.run(ask())

    assert done == ["x", "a1", "b1", "shared", "a2", "a3"]


def test_a_snapshot_that_a_reading_came_upon_is_the_newest() -> None:
    reader = FakeReader(published(1))

    async def ask() -> Published | None:
        async with reading(reader) as (readings, hub):
            await readings.newest()
            reader.shown = published(2)
            assert (await readings.read_fresh(snapshot_id)).value == 2
            return hub.newest

    assert asyncio.run(ask()) == published(2)


def test_before_the_first_publication_there_is_nothing_to_read() -> None:
    async def ask() -> None:
        async with reading(FakeReader(None)) as (readings, _):
            await readings.newest()

    with pytest.raises(ProblemError, match="NOTHING_PUBLISHED"):
        asyncio.run(ask())
