"""Gives all streams the same ways: to open, to have room, to find a client's place, to see news.

Used by the streams of `owner` and `models`. A stream ends with the right of its caller to see it,
or with the server; while the store is away it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import datetime
from typing import Any, TypeVar

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request

from livemart.errors import PublishError
from livemart.serve.auth.callers import Caller, is_still_allowed
from livemart.serve.http.forms import EVENTS
from livemart.serve.http.origin import is_within, networks_of
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.live.hub import Hub, Topic
from livemart.serve.shares.shares import owner_of, owner_of_address
from livemart.settings import Settings
from livemart.store.served import Published

RETRY_MS = 3_000
PING_S = 15
# A client that takes nothing for so long is closed; it comes back and goes on where it was.
_SEND_TIMEOUT_S = 30.0
MOST_STREAMS = 5_000
_RETRY_S = 1.0
STREAM_CONTENT: dict[str, Any] = {EVENTS: {"schema": {"type": "string"}}}

_Result = TypeVar("_Result")


def stream_response(
    request: Request, caller: Caller, events: AsyncGenerator[bytes], topic: Topic | None = None
) -> EventSourceResponse:
    """Return the answer that sends these events as they come, and counts its client meanwhile.

    `topic` is computed ahead of the events that a new snapshot brings.
    """
    return EventSourceResponse(
        _opened(request, caller, events, topic),
        headers={"Cache-Control": "no-store"},
        ping=PING_S,
        ping_message_factory=lambda: ServerSentEvent(comment="keep-alive", sep="\n"),
        sep="\n",
        send_timeout=_SEND_TIMEOUT_S,
    )


async def _opened(
    request: Request, caller: Caller, events: AsyncGenerator[bytes], topic: Topic | None
) -> AsyncIterator[bytes]:
    hub, limits = part_of(request, Hub), _most_streams(request, caller)
    yield f"retry: {RETRY_MS}\n\n".encode()
    async with aclosing(events):
        # Others may have come in while this one was let in: it comes back and is refused.
        if all(hub.clients_of(owner) < most for owner, most in limits.items()):
            with hub.count_client(topic, *limits):
                async for event in events:
                    yield event


async def new_snapshots(
    request: Request, caller: Caller, *, tells_checks: bool = False
) -> AsyncIterator[Published]:
    """Yield each publication that is newest at some time while the caller may see it.

    With `tells_checks`, yield it again whenever it was confirmed to be the newest.
    """
    hub = part_of(request, Hub)
    last: Published | None = None
    checked_at: datetime | None = None
    while not hub.is_closing and is_still_allowed(request, caller):
        published = await hub.wait(last, checked_at)
        now_at = hub.checked_at if tells_checks else None
        is_news = published is not None and published != last
        if published is None or not (is_news or now_at != checked_at):
            continue
        if is_still_allowed(request, caller):
            last, checked_at = published, now_at
            yield published


async def retry_while_away(hub: Hub, load: Callable[[], Awaitable[_Result]]) -> _Result | None:
    """Return the result of `load`, which is done again while the store is away.

    None: the stream must end, and its client come back. The server is closing, or a new request
    would be refused for now.
    """
    while not hub.is_closing:
        try:
            return await load()
        except PublishError:
            await asyncio.sleep(_RETRY_S)
        except ProblemError as problem:
            if problem.status != 503:
                raise
            return None
    return None


def last_id(request: Request, after: str | None) -> str | None:
    """Return the id of the last event that the client has; of a reconnect, the header counts."""
    return request.headers.get("last-event-id") or after


def require_room(request: Request, caller: Caller) -> None:
    """Refuse a stream beyond the number that the server, or the caller, may have open.

    Raises:
        ProblemError: TOO_MANY_STREAMS.
    """
    hub = part_of(request, Hub)
    if hub.clients >= MOST_STREAMS:
        raise ProblemError("TOO_MANY_STREAMS", f"{MOST_STREAMS} are open; try again")
    for owner, most in _most_streams(request, caller).items():
        if hub.clients_of(owner) >= most:
            by = "this token" if owner == caller.token_id else "this address"
            raise ProblemError(
                "TOO_MANY_STREAMS", f"{most} are open by {by}; close some, or try again"
            )


def _most_streams(request: Request, caller: Caller) -> dict[str, int]:
    """Return how many streams may be open, by each name under which this one is counted.

    A caller that leaks must not shut out all others: who may read everything serves many, but never
    takes more than half of all. Behind a proxy, where no connection is counted by address, an
    address may have as many streams as it may have connections elsewhere.
    """
    settings, half = part_of(request, Settings), MOST_STREAMS // 2
    of_caller = half if caller.is_admin else min(half, settings.caller_streams)
    limits = {owner_of(request, caller): of_caller}
    address = request.client.host if request.client else ""
    if not is_within(address, networks_of(settings.trusted_proxies)):
        limits.setdefault(owner_of_address(request), min(half, settings.address_connections))
    return limits
