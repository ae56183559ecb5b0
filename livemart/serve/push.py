"""Push queries: server-sent events, the state of a restaurant or every change of a model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request

from livemart.errors import PublishError
from livemart.publish.served import Published
from livemart.serve import schemas
from livemart.serve.auth import Caller, is_still_allowed
from livemart.serve.bodies import snapshot_head
from livemart.serve.change_pages import MOST_RESET, Page, Position, event, read_page
from livemart.serve.facts import WINDOWS
from livemart.serve.forms import EVENTS, choose_form
from livemart.serve.hub import is_same
from livemart.serve.problems import ProblemError
from livemart.serve.pull import (
    CallerOf,
    RestaurantId,
    Window,
    find_restaurant,
    require_own,
)
from livemart.serve.restaurant_bodies import to_json, with_server_time
from livemart.serve.rows import ModelName, find_model
from livemart.serve.serving import Serving, serving_of

RETRY_MS = 3_000
PING_S = 15
# A client that takes nothing for so long is closed; it comes back and goes on where it was.
_SEND_TIMEOUT_S = 30.0
MOST_STREAMS = 5_000
_PATIENCE_S = 1.0
_POSITION = re.compile(r"(\d{1,18})(?:\.(\d{1,18})\.(\d{1,18}))?")
_OF_RESTAURANT = "/v1/restaurants/{restaurant_id}/stream"
_OF_MODEL = "/v1/models/{name}/stream"

Result = TypeVar("Result")

router = APIRouter(tags=["streams"])
_OPENING = f"retry: {RETRY_MS}\n\n".encode()
_STREAM: dict[str, Any] = {EVENTS: {"schema": {"type": "string"}}}


@router.get(
    _OF_RESTAURANT,
    response_class=EventSourceResponse,
    responses=schemas.answers(None, _STREAM, has_304=False),
)
async def restaurant_stream(
    request: Request,
    caller: CallerOf,
    restaurant_id: RestaurantId,
    window: Window = "24h",
    after: Annotated[
        int | None,
        Query(
            ge=0, lt=10**18, description="The snapshot that you have; a newer one comes at once."
        ),
    ] = None,
) -> EventSourceResponse:
    """State of a window, at every new snapshot: event `snapshot`, id the snapshot's, data complete.

    The newest snapshot always arrives. One that was skipped is no loss: each event says everything.
    On a reconnect `Last-Event-ID` takes the place of `after`.
    """
    choose_form(request, [EVENTS])
    _require_room(request)
    position = _read_position(request, None if after is None else str(after))
    require_own(caller, restaurant_id)
    # A window that is not there is told before the stream begins.
    (await find_restaurant(request, caller, restaurant_id)).require(WINDOWS[window])
    seen = None if position is None else position.snapshot_id
    return _respond(_tell_state(request, caller, restaurant_id, WINDOWS[window], seen))


@router.get(
    _OF_MODEL,
    response_class=EventSourceResponse,
    responses=schemas.answers(None, _STREAM, has_304=False),
)
async def model_stream(
    request: Request,
    caller: CallerOf,
    name: ModelName,
    after: Annotated[
        str | None,
        Query(
            pattern=r"^[0-9]{1,18}(\.[0-9]{1,18}\.[0-9]{1,18})?$",
            description="The id of the last event that you have; 0 for all rows; else from now on.",
        ),
    ] = None,
) -> EventSourceResponse:
    """Every change of a served model, once and in order; an event `snapshot` ends each snapshot.

    A position older than what is kept: an event `reset` (forget your rows), then all rows as events
    `change` with `op` `insert`, then `snapshot`. On a reconnect `Last-Event-ID` takes the place of
    `after`.
    """
    choose_form(request, [EVENTS])
    _require_room(request)
    position = _read_position(request, after)
    _, published = await find_model(request, caller, name)
    if position is None:
        start = Position(published.snapshot_id)
        return _respond(_tell_changes(request, caller, name, start, None))
    marked = None if position.within else position.snapshot_id
    first = await read_page(serving_of(request), caller, name, position.snapshot_id)
    if first is not None and first.is_too_large:
        raise ProblemError(
            "MODEL_TOO_LARGE",
            f"more than {MOST_RESET} rows are yours: pull them by key or time, then follow with "
            f"after={published.snapshot_id}",
        )
    return _respond(_tell_changes(request, caller, name, position, marked, first))


def _respond(events: AsyncIterator[bytes]) -> EventSourceResponse:
    return EventSourceResponse(
        events,
        headers={"Cache-Control": "no-store"},
        ping=PING_S,
        ping_message_factory=lambda: ServerSentEvent(comment="keep-alive", sep="\n"),
        sep="\n",
        send_timeout=_SEND_TIMEOUT_S,
    )


async def _tell_state(
    request: Request, caller: Caller, restaurant_id: str, hours: int, has: int | None
) -> AsyncIterator[bytes]:
    """Yield the state at each snapshot, but for the one that the client has."""
    serving = serving_of(request)
    yield _OPENING
    seen: Published | None = None
    with serving.hub.attend((restaurant_id, hours)):
        async for published in _news(serving, request, caller):
            if published == seen:
                continue
            found = await _insist(serving, lambda: serving.answers.restaurant(restaurant_id))
            if found is None or not found.has(hours):
                # It went with this snapshot, or the server is closing: who asks again is told.
                return
            is_new = seen is None or not is_same(found.facts.published, seen)
            seen = found.facts.published
            if is_new and seen.snapshot_id != has and is_still_allowed(request, caller):
                data = with_server_time(found.get("state", hours), serving.now())
                serving.measurements.sent(_OF_RESTAURANT)
                yield event("snapshot", data, seen.snapshot_id)
            has = None


async def _tell_changes(
    request: Request,
    caller: Caller,
    name: str,
    position: Position,
    marked: int | None,
    first: Page | None = None,
) -> AsyncIterator[bytes]:
    """Yield the changes behind `position`, then a mark for each snapshot but `marked`.

    `first`: what comes behind the position, if it was read already.
    """
    serving = serving_of(request)
    yield _OPENING
    with serving.hub.attend():
        async for published in _news(serving, request, caller):
            while position.snapshot_id != published.snapshot_id or position.within:
                at = position.snapshot_id
                if first is None:
                    page = await _insist(serving, partial(read_page, serving, caller, name, at))
                else:
                    page, first = first, None
                if page is None or page.is_too_large or not is_still_allowed(request, caller):
                    return
                if page.upto == at and not position.within:
                    # The store is further than `published`, and so are we.
                    break
                if page.is_reset:
                    serving.measurements.sent(_OF_MODEL, len(page.changes))
                    for slice_ in page.slices:
                        yield slice_
                elif events := page.behind(position):
                    serving.measurements.sent(_OF_MODEL, len(page.changes))
                    yield events
                position = Position(page.upto)
            first = None
            if position.snapshot_id == published.snapshot_id != marked:
                marked = published.snapshot_id
                yield event("snapshot", to_json(snapshot_head(published)), marked)


async def _news(serving: Serving, request: Request, caller: Caller) -> AsyncIterator[Published]:
    """Yield each snapshot that is newest at some time while the caller may see it."""
    seen: Published | None = None
    while not serving.hub.is_closing and is_still_allowed(request, caller):
        published = await serving.hub.wait(seen)
        if published is None or (seen is not None and is_same(published, seen)):
            continue
        if is_still_allowed(request, caller):
            seen = published
            yield published


async def _insist(serving: Serving, work: Callable[[], Awaitable[Result]]) -> Result | None:
    """Return the result of `work`, which is done again while the store is away."""
    while not serving.hub.is_closing:
        try:
            return await work()
        except PublishError:
            await asyncio.sleep(_PATIENCE_S)
    return None


def _read_position(request: Request, after: str | None) -> Position | None:
    """Return where the client is; of a reconnect, the header counts."""
    given = request.headers.get("last-event-id") or after
    if given is None:
        return None
    form = _POSITION.fullmatch(given)
    if form is None:
        raise ProblemError(
            "PARAMETER_WRONG", f"Last-Event-ID: send back the id of an event; found {given[:40]!r}"
        )
    return Position(int(form[1]), int(form[2] or 0), int(form[3] or -1))


def _require_room(request: Request) -> None:
    if serving_of(request).hub.clients >= MOST_STREAMS:
        raise ProblemError("TOO_MANY_STREAMS", f"{MOST_STREAMS} are open; try again")
