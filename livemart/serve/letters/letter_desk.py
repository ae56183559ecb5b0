"""Reads dead letters for admins, from the warehouse at this machine.

Used by the route and the page of dead letters. They are no rows of a snapshot, and no copy of them
is in the serving store.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from threading import Lock

from livemart.delta.warehouse import Warehouse
from livemart.epoch import epoch_micros, epoch_moment
from livemart.land.letters.chosen_letters import LetterChoice, letter_relations
from livemart.land.letters.letter_pages import LetterPage, LetterPlace, read_letter_page
from livemart.land.letters.redriven import marks_relation
from livemart.serve.http.problems import ProblemError
from livemart.storage.location import StoragePlace

# Time, batch, and source, origin and reason as the digits of their bytes: whatever matches is the
# place of a letter, of one that is there or not.
PLACE_PATTERN = r"^[0-9]{1,17}\.[0-9]{1,18}(\.([0-9a-f]{2})*){3}$"


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
