"""Gives streams that are equally far the same page of a model's changes, written once.

Used by the stream of a model. Streams share a page if they follow the same rows.
"""

from __future__ import annotations

from starlette.requests import Request

from livemart.serve.auth.callers import Caller
from livemart.serve.http.parts import part_of
from livemart.serve.live.readings import Readings
from livemart.serve.models.written_changes import Followed, Page, write_page
from livemart.serve.shares.round_robin import LINE
from livemart.serve.shares.shares import owner_of, shared_turn
from livemart.store.positions import Position

# Rows of a reset: they are in memory all at once.
MOST_RESET = 50_000


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
