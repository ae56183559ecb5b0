"""Streams that end: with their token, their place, their model, or a client that takes nothing."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.serve.live import streams
from tests.serve.apps import bearer, server
from tests.serve.live.events import Event, open_stream
from tests.serve.live.push_world import DISHES, World, newest_id
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S, wait_until


def test_a_stream_ends_with_its_token(world: World) -> None:
    tokens = world.tokens()
    text, made = tokens.create("r1", tenants=["r1"])

    async def watch() -> list[Event | None]:
        async with (
            open_stream(world.address, "/v1/restaurants/r1/stream", bearer(text)) as state,
            open_stream(world.address, DISHES, bearer(text)) as changes,
        ):
            assert await state.next() is not None and await changes.next() is not None
            await asyncio.to_thread(tokens.revoke, made.token_id)
            return [await state.next(), await changes.next()]

    ended = asyncio.run(watch())
    tokens.close()

    assert ended == [None, None]


def test_a_token_has_room_for_so_many_streams_and_an_admin_for_more(
    tmp_path: Path,
) -> None:
    with server(tmp_path, caller_streams=2) as address:
        world = World(tmp_path, address)
        world.publish()
        check_room(world)


def check_room(world: World) -> None:
    with closing(world.tokens()) as tokens:
        mine, other = (bearer(tokens.create("x", tenants=["r1"])[0]) for _ in range(2))
        admin = bearer(tokens.create("x", is_admin=True)[0])

    async def ask(headers: dict[str, str], path: str) -> tuple[int, bytes]:
        async with open_stream(world.address, path, headers) as stream:
            return stream.status, stream.body

    async def watch() -> list[tuple[int, bytes]]:
        path = "/v1/restaurants/r1/stream"
        async with (
            open_stream(world.address, path, mine) as one,
            open_stream(world.address, DISHES, mine) as two,
            open_stream(world.address, path, admin) as three,
            open_stream(world.address, path, admin) as four,
        ):
            for stream in (one, two, three, four):
                assert await stream.next() is not None
            asked = [(mine, path), (mine, DISHES), (other, path), (admin, path)]
            return [await ask(*each) for each in asked]

    answers = asyncio.run(watch())

    assert [status for status, _ in answers] == [503, 503, 200, 200]
    assert b"TOO_MANY_STREAMS" in answers[0][1] and b"2 are open by this token" in answers[0][1]


def test_an_open_door_that_closes_ends_the_streams_that_came_in(world: World) -> None:
    tokens = world.tokens()

    async def watch() -> Event | None:
        async with open_stream(world.address, "/v1/restaurants/r1/stream") as stream:
            assert await stream.next() is not None
            await asyncio.to_thread(tokens.create, "first", is_admin=True)
            return await stream.next()

    ended = asyncio.run(watch())
    tokens.close()

    assert ended is None


def test_a_comment_keeps_a_quiet_stream_open(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PING_S", 0.1)

    async def watch() -> list[str]:
        async with open_stream(
            world.address, f"/v1/restaurants/r1/stream?after={newest_id(world)}"
        ) as stream:
            kinds: list[str] = []
            # Which of them is first is the scheduler's affair.
            while "retry" not in kinds or kinds.count("comment") < 2:
                event = await stream.next_of_any_kind()
                assert event is not None
                kinds.append(event.kind)
            return kinds

    assert set(asyncio.run(watch())) == {"retry", "comment"}


def test_a_client_that_takes_nothing_is_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_SEND_TIMEOUT_S", 0.2)
    wide = pa.table(
        {"restaurant_id": ["r1"] * 4_000, "n": range(4_000), "text": ["x" * 2_000] * 4_000}
    )
    fill_store(world.url, {"wide": wide}, {"wide": ("n",)}, snapshot_id=2)

    with socket.socket() as client:
        # The kernel buffers only a small part.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.settimeout(PATIENCE_S)
        client.connect(world.address)
        client.sendall(b"GET /v1/models/wide/stream?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        # Nothing is taken until the server gave it up.
        ended = 'livemart_requests_total{route="/v1/models/{name}/stream",status="200"}'
        wait_until(lambda: world.measured(ended) == 1)
        told = b"".join(iter(lambda: client.recv(65_536), b""))

    assert told.startswith(b"HTTP/1.1 200")
    # The end of the snapshot, and of the answer, was not sent.
    assert b"event: snapshot" not in told and not told.endswith(b"0\r\n\r\n")


def test_streams_of_a_model_that_is_served_no_more_end(world: World) -> None:
    async def watch() -> Event | None:
        async with open_stream(world.address, DISHES) as stream:
            assert await stream.next() is not None
            tables = reference_tables(world.orders)
            del tables["restaurant_top_dishes"]
            await asyncio.to_thread(fill_store, world.url, tables, snapshot_id=2)
            return await stream.next()

    assert asyncio.run(watch()) is None
