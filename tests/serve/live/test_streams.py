"""A stream goes on where its client is, and leaves room for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.errors import PublishError
from livemart.serve.auth.callers import Caller
from livemart.serve.http.problems import ProblemError
from livemart.serve.live import streams
from livemart.serve.live.hub import Hub, Topic
from livemart.serve.live.streams import (
    MOST_STREAMS,
    last_id,
    require_room,
    retry_while_away,
    stream_response,
)
from livemart.settings import Settings
from tests.serve.http.requests import request_of

TENANT, ADMIN = Caller(frozenset({"r1"}), "token"), Caller(None, "token")


@pytest.mark.parametrize(
    ("header", "after", "expected"),
    [
        (None, None, None),
        (None, "0", "0"),
        ("5d01c3aa-7", None, "5d01c3aa-7"),
        ("", "5d01c3aa-7", "5d01c3aa-7"),
        # After a reconnect the query is still the first one.
        ("5d01c3aa-9", "5d01c3aa-7", "5d01c3aa-9"),
    ],
)
def test_a_client_is_where_the_last_event_says(
    header: str | None, after: str | None, expected: str | None
) -> None:
    headers = {} if header is None else {"Last-Event-ID": header}

    assert last_id(request_of(headers), after) == expected


OF_TENANT, OF_ADDRESS = 3, 7
SETTINGS = SimpleNamespace(
    caller_streams=OF_TENANT,
    address_connections=OF_ADDRESS,
    trusted_proxies=("127.0.0.1", "10.0.0.0/24"),
)


class Room:
    """A hub with so many streams, of each token and of each address."""

    def __init__(self, clients: int, of_token: int, of_address: int = 0) -> None:
        self.clients, self._of_token, self._of_address = clients, of_token, of_address

    def clients_of(self, owner: str) -> int:
        return self._of_address if owner.startswith("address ") else self._of_token

    def count_client(self, topic: Topic | None, *owners: str) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.mark.parametrize(
    ("clients", "of_token", "caller", "has_room"),
    [
        (MOST_STREAMS - 1, OF_TENANT - 1, TENANT, True),
        (MOST_STREAMS, 0, TENANT, False),
        (MOST_STREAMS, 0, ADMIN, False),
        (1, OF_TENANT, TENANT, False),
        # Who may read everything serves many.
        (1, OF_TENANT, ADMIN, True),
        # No caller takes more than half.
        (1, MOST_STREAMS // 2, ADMIN, False),
    ],
)
def test_no_token_takes_the_room_of_all(
    monkeypatch: pytest.MonkeyPatch, clients: int, of_token: int, caller: Caller, has_room: bool
) -> None:
    room: Any = Room(clients, of_token)
    monkeypatch.setattr(
        streams, "part_of", lambda request, kind: {Hub: room, Settings: SETTINGS}[kind]
    )

    if has_room:
        require_room(request_of(), caller)
    else:
        with pytest.raises(ProblemError) as caught:
            require_room(request_of(), caller)
        assert caught.value.code == "TOO_MANY_STREAMS"
    # Others may have come in since.
    is_crowded = of_token >= (OF_TENANT if caller is TENANT else MOST_STREAMS // 2)
    assert sent(caller) == [b"retry: 3000\n\n", *([] if is_crowded else [b"event"])]


@pytest.mark.parametrize(
    ("client", "of_address", "has_room"),
    [
        ("192.0.2.7", OF_ADDRESS - 1, True),
        ("192.0.2.7", OF_ADDRESS, False),
        ("2001:db8::7", OF_ADDRESS, False),
        # A proxy that does not say whose streams it brings.
        ("10.0.0.9", OF_ADDRESS, True),
        ("::ffff:10.0.0.9", OF_ADDRESS, True),
    ],
)
def test_many_tokens_of_one_address_have_the_room_of_an_address(
    monkeypatch: pytest.MonkeyPatch, client: str, of_address: int, has_room: bool
) -> None:
    """Behind a proxy all connections are the proxy's: they are not counted by address."""
    room: Any = Room(OF_ADDRESS, 0, of_address)
    monkeypatch.setattr(
        streams, "part_of", lambda request, kind: {Hub: room, Settings: SETTINGS}[kind]
    )

    if has_room:
        require_room(request_of(client=client), TENANT)
    else:
        with pytest.raises(ProblemError, match="7 are open by this address"):
            require_room(request_of(client=client), TENANT)
    assert sent(TENANT, client) == [b"retry: 3000\n\n", *([b"event"] if has_room else [])]


def sent(caller: Caller, client: str = "127.0.0.1") -> list[bytes]:
    request = request_of(client=client)

    async def events() -> AsyncGenerator[bytes]:
        yield b"event"

    async def read() -> list[Any]:
        return [it async for it in stream_response(request, caller, events()).body_iterator]

    return asyncio.run(read())


def test_while_the_store_is_away_a_stream_waits_and_ends_with_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "_RETRY_S", 0.0)
    hub: Any = SimpleNamespace(is_closing=False)
    tries: list[int] = []

    async def load() -> str:
        tries.append(1)
        if len(tries) % 3:
            raise PublishError("STORE_UNREACHABLE", "away", hint="wait")
        return "rows"

    async def close_at_the_second() -> str:
        hub.is_closing = True
        return await load()

    assert asyncio.run(retry_while_away(hub, load)) == "rows" and len(tries) == 3
    assert asyncio.run(retry_while_away(hub, close_at_the_second)) is None


def test_a_stream_ends_where_a_new_request_would_be_refused_for_now() -> None:
    hub: Any = SimpleNamespace(is_closing=False)

    async def load(code: str) -> str:
        raise ProblemError(code, "detail")

    assert asyncio.run(retry_while_away(hub, lambda: load("READER_ENDED"))) is None
    with pytest.raises(ProblemError, match="MODEL_UNKNOWN"):
        asyncio.run(retry_while_away(hub, lambda: load("MODEL_UNKNOWN")))
