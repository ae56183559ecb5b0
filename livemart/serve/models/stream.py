"""Pushes every change of a served model, once and in order.

Used by those who keep a copy of a model. A client that is too far behind gets all rows again.

Streams that are equally far and follow the same rows share a page of changes, written once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from sse_starlette import EventSourceResponse
from starlette.requests import Request

from livemart.serve.auth.callers import Caller, CallerOf, is_still_allowed
from livemart.serve.auth.seal import Seal
from livemart.serve.http.forms import EVENTS, choose_form
from livemart.serve.http.held_bytes import HeldBytes
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.schemas import answer_shapes
from livemart.serve.live.hub import Hub
from livemart.serve.live.readings import Readings
from livemart.serve.live.snapshot_json import event, snapshot_head, to_json
from livemart.serve.live.streams import (
    STREAM_CONTENT,
    last_id,
    new_snapshots,
    require_room,
    retry_while_away,
    stream_response,
)
from livemart.serve.models.event_ids import EventIds
from livemart.serve.models.pull import CONDITIONS, ModelName, find_model, read_asked
from livemart.serve.models.written_changes import MOST_RESET_BYTES, Followed, Page, write_page
from livemart.serve.shares.round_robin import LINE
from livemart.serve.shares.shares import Shares, owner_of, shared_turn
from livemart.store.positions import Position

_PATH = "/v1/models/{name}/stream"

model_stream_router = APIRouter(tags=["streams"])
# Rows of a reset: they are in memory all at once.
MOST_RESET = 50_000


@model_stream_router.get(
    _PATH,
    operation_id="follow_rows",
    response_class=EventSourceResponse,
    responses=answer_shapes(None, STREAM_CONTENT, has_304=False),
    openapi_extra=CONDITIONS,
)
async def model_stream(
    request: Request,
    caller: CallerOf,
    name: ModelName,
    after: Annotated[
        str | None,
        Query(
            max_length=200,
            description="The id of the last event that you have; 0 for all rows; else from now on.",
        ),
    ] = None,
) -> EventSourceResponse:
    """Every change of a served model, once and in order; an event `snapshot` ends each snapshot.

    A position older than what is kept, or of another store: an event `reset` (forget your rows),
    then all rows as events `change` with `op` `insert`, then `snapshot`. On a reconnect
    `Last-Event-ID` takes the place of `after`. With conditions on columns there is nothing but the
    rows that fulfil them: one that begins to is an `insert`, one that ends a `delete`.
    """
    choose_form(request, [EVENTS])
    require_room(request, caller)
    model, published = await find_model(request, caller, name)
    ids = EventIds(part_of(request, Seal), name, caller.tenants)
    followed = Followed.of(ids, model, read_asked(request, model).conditions)
    text = last_id(request, after)
    position = None if text is None else ids.read(text)
    if position is None:
        start = Position(published.snapshot_id, None)
        return stream_response(request, caller, _tell_changes(request, caller, followed, start))
    part_of(request, Shares).require_rows(request, caller)
    first = await read_page(request, caller, followed, position)
    if first is not None and first.is_too_large:
        raise ProblemError(
            "MODEL_TOO_LARGE",
            f"more than {MOST_RESET} rows, or {MOST_RESET_BYTES >> 20} MiB, are yours: pull them "
            f"by key or time, then follow with after={ids.write(first.upto)}",
        )
    marked = None if position.within else position
    changes = _tell_changes(request, caller, followed, position, marked, first)
    return stream_response(request, caller, changes)


async def _tell_changes(
    request: Request,
    caller: Caller,
    followed: Followed,
    position: Position,
    marked: Position | None = None,
    first: Page | None = None,
) -> AsyncGenerator[bytes]:
    """Yield the changes behind `position`, then a mark for each snapshot but `marked`.

    `first`: what comes behind the position, if it was read already.
    """
    hub, measurements = part_of(request, Hub), part_of(request, Measurements)
    held, owner = part_of(request, HeldBytes), owner_of(request, caller)
    async for published in new_snapshots(request, caller):
        while True:
            page, is_fresh, first = first, first is None, None
            if page is None:
                load = partial(read_page, request, caller, followed, position)
                page = await retry_while_away(hub, load)
            if page is None or page.is_too_large:
                return
            if page.is_reset:
                marked = None
            measurements.sent(_PATH, page.sent)
            # Others may need the memory of a page that this client takes slowly: it comes back.
            with held.holding(id(page), owner, page.size, page.slices.clear):
                for number in range(len(page.slices)):
                    if page.is_dropped or not is_still_allowed(request, caller):
                        return
                    yield page.slices[number]
            if page.is_dropped:
                return
            # The store may be further than `published`, and then so are we.
            has_moved = page.is_reset or page.upto.snapshot_id != position.snapshot_id
            position = page.upto
            if position.snapshot_id == published.snapshot_id or (is_fresh and not has_moved):
                break
        is_there = (page.epoch, position.snapshot_id) == (
            published.epoch,
            published.snapshot_id,
        )
        if is_there and position != marked:
            marked = position
            event_id = followed.ids.write(position)
            yield event("snapshot", to_json(snapshot_head(published)), event_id)


async def read_page(
    request: Request, caller: Caller, followed: Followed, position: Position
) -> Page | None:
    """Return the changes behind a position; None if the model can no longer be followed."""
    readings = part_of(request, Readings)
    # Others share the page of all changes: it waits behind nothing that this caller alone wants.
    line = "filtered changes" if followed.conditions else "changes"

    async def load() -> Page | None:
        if followed.conditions:
            # It may look through all rows and find none: it is this caller's, as a pull is.
            LINE.set(owner_of(request, caller))
        async with shared_turn(request, caller, line) as held:
            asked = (followed, position, MOST_RESET)
            small = await readings.read_fresh(lambda view: write_page(view, *asked, is_small=True))
            page = small.value
            if page is not None and page.is_too_large:
                is_own = page.is_reset or followed.conditions
                async with shared_turn(request, caller, "large" if is_own else "large changes", 1):
                    page = (await readings.read_aside(write_page, *asked)).value
            held.rows = page.read if page else 0
            return page

    return await readings.share(("changes", followed, position), load)
