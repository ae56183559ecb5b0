"""Pushes the state of a restaurant: one complete event at every new snapshot.

Used by the owner's page and by other clients that follow a restaurant. A client that skips a
snapshot loses nothing: each event says everything.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from sse_starlette import EventSourceResponse
from starlette.requests import Request

from livemart.serve.auth.callers import Caller, CallerOf, Guard, is_still_allowed
from livemart.serve.http.forms import EVENTS, choose_form
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.schemas import answer_shapes
from livemart.serve.live.hub import Hub, Topic
from livemart.serve.live.snapshot_json import event, snapshot_head, to_json, with_times
from livemart.serve.live.streams import (
    STREAM_CONTENT,
    last_id,
    new_snapshots,
    require_room,
    retry_while_away,
    stream_response,
)
from livemart.serve.owner.answers import Answers
from livemart.serve.owner.facts import WINDOWS
from livemart.serve.owner.pull import RestaurantId, WindowLength, WindowName, find_restaurant
from livemart.store.positions import state_id
from livemart.store.served import Published

_PATH = "/v1/restaurants/{restaurant_id}/stream"
_STATE_ID = r"(?:[0-9a-f]{8}-)?[0-9]{1,18}"

restaurant_stream_router = APIRouter(tags=["streams"])


@restaurant_stream_router.get(
    _PATH,
    operation_id="follow_restaurant",
    response_class=EventSourceResponse,
    responses=answer_shapes(None, STREAM_CONTENT, has_304=False),
)
async def restaurant_stream(
    request: Request,
    caller: CallerOf,
    restaurant_id: RestaurantId,
    window: WindowName = WindowLength.DAY,
    after: Annotated[
        str | None,
        Query(
            pattern=f"^{_STATE_ID}$",
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
    require_room(request, caller)
    has = last_id(request, after)
    if has is not None and not re.fullmatch(_STATE_ID, has):
        raise ProblemError(
            "PARAMETER_WRONG", f"Last-Event-ID: send back the id of an event; found {has[:40]!r}"
        )
    # An unknown window is refused before the stream begins.
    restaurant = await find_restaurant(request, caller, restaurant_id, "state")
    restaurant.facts.of_window(WINDOWS[window])
    topic = (restaurant_id, WINDOWS[window])
    return stream_response(request, caller, _tell_state(request, caller, topic, has), topic)


async def _tell_state(
    request: Request, caller: Caller, topic: Topic, has: str | None
) -> AsyncGenerator[bytes]:
    """Yield the state at each snapshot, but for the one that the client has.

    Without a new one, yield when it was last known to be the newest: its age is counted from then.
    """
    restaurant_id, hours = topic
    hub, answers = part_of(request, Hub), part_of(request, Answers)
    measurements, now = part_of(request, Measurements), part_of(request, Guard).now
    last: Published | None = None
    checked_at: datetime | None = None
    async for published in new_snapshots(request, caller, tells_checks=True):
        if last is not None and published == last:
            if checked_at != hub.checked(last):
                checked_at = hub.checked(last)
                checked = with_times(to_json(snapshot_head(last)), now(), checked_at)
                yield event("checked", checked, None)
            continue
        bodies = await retry_while_away(hub, lambda: answers.restaurant(restaurant_id, "state"))
        if bodies is None or not bodies.has(hours):
            # It was removed by this snapshot, or the server is closing: a new request is refused.
            return
        is_new = bodies.facts.published != last
        last, event_id = bodies.facts.published, state_id(bodies.facts.published)
        checked_at = hub.checked(last)
        if is_new and event_id != has and is_still_allowed(request, caller):
            data = with_times(bodies.get("state", hours), now(), checked_at)
            measurements.sent(_PATH)
            yield event("snapshot", data, event_id)
        has = None
