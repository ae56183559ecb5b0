"""Push queries: server-sent events, the state of a restaurant or every change of a model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request

from livemart.errors import PublishError
from livemart.serve.auth.callers import Caller, is_still_allowed
from livemart.serve.http import schemas
from livemart.serve.http.forms import EVENTS, choose_form
from livemart.serve.http.parts import Serving, serving_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.models.changes import MOST_RESET, Page, event, read_page
from livemart.serve.models.pull import ModelName, find_model
from livemart.serve.owner.bodies import snapshot_head
from livemart.serve.owner.facts import WINDOWS
from livemart.serve.owner.pull import (
    CallerOf,
    RestaurantId,
    Window,
    find_restaurant,
    require_own,
)
from livemart.serve.owner.restaurant import to_json, with_times
from livemart.store.positions import Position, state_id
from livemart.store.served import Published

RETRY_MS = 3_000
PING_S = 15
# A client that takes nothing for so long is closed; it comes back and goes on where it was.
_SEND_TIMEOUT_S = 30.0
MOST_STREAMS = 5_000
# One that leaks connections must not shut out all others. Who may read everything serves many.
MOST_OF_TOKEN = 200
_PATIENCE_S = 1.0
_ID = r"(?:([0-9a-f]{8})-)?([0-9]{1,18})"
_POSITION = re.compile(_ID + r"(?:\.([0-9]{1,18})\.([0-9]{1,18}))?")
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
        str | None,
        Query(
            pattern=f"^{_ID}$",
            description="The id of the event that you have; any other state comes at once.",
        ),
    ] = None,
) -> EventSourceResponse:
    """State of a window, at every new snapshot: event `snapshot`, data complete.

    The newest snapshot always arrives. One that was skipped is no loss: each event says everything.
    In between, events `checked` without id: what you have was the newest at `checked_at`. On a
    reconnect `Last-Event-ID` takes the place of `after`.
    """
    choose_form(request, [EVENTS])
    _require_room(request, caller)
    position = _read_position(request, after)
    require_own(caller, restaurant_id)
    # A window that is not there is told before the stream begins.
    (await find_restaurant(request, caller, restaurant_id, "state")).require(WINDOWS[window])
    has = None if position is None else position.event_id
    return _respond(_tell_state(request, caller, restaurant_id, WINDOWS[window], has))


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
            pattern=f"^{_POSITION.pattern}$",
            description="The id of the last event that you have; 0 for all rows; else from now on.",
        ),
    ] = None,
) -> EventSourceResponse:
    """Every change of a served model, once and in order; an event `snapshot` ends each snapshot.

    A position older than what is kept, or of another store: an event `reset` (forget your rows),
    then all rows as events `change` with `op` `insert`, then `snapshot`. On a reconnect
    `Last-Event-ID` takes the place of `after`.
    """
    choose_form(request, [EVENTS])
    _require_room(request, caller)
    position = _read_position(request, after)
    _, published = await find_model(request, caller, name)
    if position is None:
        start = Position(published.snapshot_id, None)
        return _respond(_tell_changes(request, caller, name, start, None))
    marked = None if position.within else position.event_id
    first = await read_page(serving_of(request), caller, name, position)
    if first is not None and first.is_too_large:
        raise ProblemError(
            "MODEL_TOO_LARGE",
            f"more than {MOST_RESET} rows are yours: pull them by key or time, then follow with "
            f"after={first.upto.event_id}",
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
    request: Request, caller: Caller, restaurant_id: str, hours: int, has: str | None
) -> AsyncIterator[bytes]:
    """Yield the state at each snapshot, but for the one that the client has.

    Without a new one, yield when it was last known to be the newest: its age is counted from then.
    """
    serving = serving_of(request)
    yield _OPENING
    seen: Published | None = None
    checked_at: datetime | None = None
    if _is_crowded(serving, caller):
        return
    with serving.hub.attend((restaurant_id, hours), _counted(caller)):
        async for published in _news(serving, request, caller, tells_checks=True):
            if seen is not None and published.is_same_as(seen):
                if checked_at != serving.hub.checked(seen):
                    checked_at = serving.hub.checked(seen)
                    told = with_times(to_json(snapshot_head(seen)), serving.now(), checked_at)
                    yield event("checked", told, None)
                continue
            found = await _insist(
                serving, lambda: serving.answers.restaurant(restaurant_id, "state")
            )
            if found is None or not found.has(hours):
                # It went with this snapshot, or the server is closing: who asks again is told.
                return
            is_new = seen is None or not found.facts.published.is_same_as(seen)
            seen, event_id = found.facts.published, state_id(found.facts.published)
            checked_at = serving.hub.checked(seen)
            if is_new and event_id != has and is_still_allowed(request, caller):
                data = with_times(found.get("state", hours), serving.now(), checked_at)
                serving.measurements.sent(_OF_RESTAURANT)
                yield event("snapshot", data, event_id)
            has = None


async def _tell_changes(
    request: Request,
    caller: Caller,
    name: str,
    position: Position,
    marked: str | None,
    first: Page | None = None,
) -> AsyncIterator[bytes]:
    """Yield the changes behind `position`, then a mark for each snapshot but `marked`.

    `first`: what comes behind the position, if it was read already.
    """
    serving = serving_of(request)
    yield _OPENING
    if _is_crowded(serving, caller):
        return
    with serving.hub.attend(None, _counted(caller)):
        async for published in _news(serving, request, caller):
            while True:
                page, is_fresh, first = first, first is None, None
                if page is None:
                    read = partial(read_page, serving, caller, name, position)
                    page = await _insist(serving, read)
                if page is None or page.is_too_large:
                    return
                if page.is_reset:
                    marked = None
                serving.measurements.sent(_OF_MODEL, len(page.changes))
                for slice_ in page.behind(position):
                    if not is_still_allowed(request, caller):
                        return
                    yield slice_
                # The store may be further than `published`, and then so are we.
                has_moved = page.is_reset or page.upto.snapshot_id != position.snapshot_id
                position = page.upto
                if position.snapshot_id == published.snapshot_id or (is_fresh and not has_moved):
                    break
            is_there = (page.epoch, position.snapshot_id) == (
                published.epoch,
                published.snapshot_id,
            )
            if is_there and position.event_id != marked:
                marked = position.event_id
                yield event("snapshot", to_json(snapshot_head(published)), marked)


async def _news(
    serving: Serving, request: Request, caller: Caller, *, tells_checks: bool = False
) -> AsyncIterator[Published]:
    """Yield each publication that is newest at some time while the caller may see it.

    With `tells_checks`, yield it again whenever it is known anew to be the newest.
    """
    hub = serving.hub
    seen: Published | None = None
    checked_at: datetime | None = None
    while not hub.is_closing and is_still_allowed(request, caller):
        published = await hub.wait(seen, checked_at)
        now_at = hub.checked_at if tells_checks else None
        is_news = published is not None and (seen is None or not published.is_same_as(seen))
        if published is None or not (is_news or now_at != checked_at):
            continue
        if is_still_allowed(request, caller):
            seen, checked_at = published, now_at
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
    # Without a mark it is of no history that is known, and so begins anew.
    return Position(int(form[2]), form[1] or "", int(form[3] or 0), int(form[4] or -1))


def _require_room(request: Request, caller: Caller) -> None:
    hub, token_id = serving_of(request).hub, _counted(caller)
    if hub.clients >= MOST_STREAMS:
        raise ProblemError("TOO_MANY_STREAMS", f"{MOST_STREAMS} are open; try again")
    if token_id is not None and hub.clients_of(token_id) >= MOST_OF_TOKEN:
        raise ProblemError(
            "TOO_MANY_STREAMS", f"{MOST_OF_TOKEN} are open by this token; close some, or try again"
        )


def _counted(caller: Caller) -> str | None:
    """Return the token whose streams are counted; None for an admin, and at this machine."""
    return None if caller.is_admin else caller.token_id


def _is_crowded(serving: Serving, caller: Caller) -> bool:
    """Return True if others came in while this one was let in; it comes back and is told."""
    token_id = _counted(caller)
    return token_id is not None and serving.hub.clients_of(token_id) >= MOST_OF_TOKEN
