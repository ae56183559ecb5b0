"""Answers pull queries about dead letters: how many, of which source, why, and the newest of them.

Used by admins alone: a record that could not land may be anybody's, and nothing tells whose. They
are no rows of a snapshot, and no copy of them is in the serving store: the warehouse is read.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, datetime
from threading import Lock
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from livemart.delta.warehouse import Warehouse
from livemart.epoch import epoch_micros, epoch_moment
from livemart.land.letters.chosen_letters import LetterChoice, letter_relations
from livemart.land.letters.letter_pages import LetterPage, LetterPlace, read_letter_page
from livemart.land.letters.redriven import marks_relation
from livemart.land.reasons import LetterReason, meaning_of
from livemart.serve.auth.callers import AdminOf
from livemart.serve.http.forms import JSON, answer, choose_form, is_known, tag_of
from livemart.serve.http.known_parameters import Moment
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.schemas import answer_shapes
from livemart.serve.letters import schemas
from livemart.serve.live.snapshot_json import to_json
from livemart.serve.shares.shares import note_rows
from livemart.storage.location import StoragePlace

# 8 KiB of each record are kept.
_MOST_LETTERS = 1_000


letters_router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"])
# Time, batch, and source, origin and reason as the digits of their bytes: whatever matches is the
# place of a letter, of one that is there or not.
PLACE_PATTERN = r"^[0-9]{1,17}\.[0-9]{1,18}(\.([0-9a-f]{2})*){3}$"


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


class LetterDesk:
    """The dead letters of one warehouse."""

    def __init__(self, warehouse: StoragePlace) -> None:
        self._warehouse = Warehouse(warehouse)
        # The memory of one reading is bounded, however many letters exist; that of many is not.
        self._one_at_a_time = Lock()

    def versions(self) -> list[tuple[str, str, int]]:
        """Return name, id and version of all tables that an answer is computed from.

        Raises:
            ProblemError: LETTERS_MISSING.
        """
        letters = letter_relations(self._warehouse)
        if not letters:
            raise ProblemError(
                "LETTERS_MISSING",
                f"no table of dead letters in {self._warehouse.place}: nothing has landed "
                "there yet, or this server runs on another machine than the pipeline",
            )
        tables = [name for it in letters for name in (it, marks_relation(it))]
        return [
            (name, self._warehouse.table_id(name), self._warehouse.version(name))
            for name in tables
            if self._warehouse.exists(name)
        ]

    def read(self, choice: LetterChoice, limit: int, after: LetterPlace | None) -> LetterPage:
        """Return counts and some of the chosen letters; see `read_letter_page`."""
        with self._one_at_a_time:
            return read_letter_page(self._warehouse, choice, limit=limit, after=after)


def utc_moment(moment: datetime) -> datetime:
    """Return a moment that was asked for, UTC.

    One before the first or behind the last moment of UTC becomes that: no letter is beyond.
    """
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return (datetime.min if moment.year == 1 else datetime.max).replace(tzinfo=UTC)


def write_place(place: LetterPlace) -> str:
    """Return the place of a letter as text that is sent back for those that follow."""
    landed_at, batch_id, *texts = place
    return ".".join(
        [str(epoch_micros(landed_at)), str(batch_id), *(text.encode().hex() for text in texts)]
    )


def read_place(text: str) -> LetterPlace:
    """Return the place that `write_place` wrote.

    Raises:
        ProblemError: PARAMETER_WRONG, if the text is not of `PLACE_PATTERN`.
    """
    if not re.fullmatch(PLACE_PATTERN, text):
        raise ProblemError(
            "PARAMETER_WRONG", "after: not the position of a letter; send `next` of an answer"
        )
    micros, batch_id, *others = text.split(".")
    source, origin, reason = (
        bytes.fromhex(other).decode("utf-8", errors="replace") for other in others
    )
    return (epoch_moment(int(micros)), int(batch_id), source, origin, reason)
