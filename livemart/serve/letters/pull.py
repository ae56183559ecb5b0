"""Answers pull queries about dead letters: how many, of which source, why, and the newest of them.

Used by admins alone: a record that could not land may be anybody's, and nothing tells whose.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.reasons import LetterReason, meaning_of
from livemart.serve.auth.callers import AdminOf
from livemart.serve.http.forms import JSON, answer, choose_form, is_known, tag_of
from livemart.serve.http.known_parameters import Moment
from livemart.serve.http.parts import part_of
from livemart.serve.http.schemas import answer_shapes
from livemart.serve.letters import schemas
from livemart.serve.letters.letter_desk import (
    PLACE_PATTERN,
    LetterDesk,
    read_place,
    utc_moment,
    write_place,
)
from livemart.serve.live.snapshot_json import to_json
from livemart.serve.shares.shares import note_rows

# 8 KiB of each record are kept.
_MOST_LETTERS = 1_000


letters_router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"])


@letters_router.get(
    "", operation_id="pull_dead_letters", responses=answer_shapes(schemas.DeadLetters)
)
def pull_letters(
    request: Request,
    caller: AdminOf,
    source: Annotated[
        str | None,
        Query(max_length=400, description="Letters of this source table: bronze.orders."),
    ] = None,
    reason: Annotated[LetterReason | None, Query(description="For this reason.")] = None,
    from_: Annotated[
        Moment | None, Query(alias="from", description="Landed at or after it, ISO 8601.")
    ] = None,
    to: Annotated[Moment | None, Query(description="Landed before it.")] = None,
    redriven: Annotated[
        bool, Query(description="Also those whose records were handed over again.")
    ] = False,
    limit: Annotated[
        int, Query(ge=0, le=_MOST_LETTERS, description="Most letters to return.")
    ] = 100,
    after: Annotated[
        str | None,
        Query(
            max_length=16_000,
            pattern=PLACE_PATTERN,
            description="`next` of the answer before.",
        ),
    ] = None,
) -> Response:
    """Dead letters, the newest first, with how many there are of each source and reason.

    For admins. They are no rows of a snapshot: an answer is of what has landed by now.
    """
    choose_form(request, [JSON])
    choice = LetterChoice(
        source, reason, from_ and utc_moment(from_), to and utc_moment(to), redriven
    )
    place = None if after is None else read_place(after)
    desk = part_of(request, LetterDesk)
    etag = tag_of("letters", *desk.versions(), choice, limit, after)
    if is_known(request, etag):
        return answer(request, b"", etag)
    page = desk.read(choice, limit, place)
    note_rows(request, len(page.letters))
    body = {
        "total": page.total,
        "counts": [{**asdict(count), "meaning": meaning_of(count.reason)} for count in page.counts],
        "letters": [asdict(letter) for letter in page.letters],
        "next": None if page.last is None else write_place(page.last),
    }
    return answer(request, to_json(body), etag)
