"""Builds the texts of the page of dead letters: counts, letters, and the commands that mend.

Used by the page for admins. Records come from anywhere: here they become text without signs that
are obeyed or not seen, and the template escapes it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.letters.letter_pages import Letter, LetterCount, LetterPage
from livemart.land.letters.plain_text import one_line, plain_lines
from livemart.land.reasons import LetterReason, meaning_of
from livemart.serve.letters.pull import write_place
from livemart.serve.page.text import count
from livemart.settings import Settings

LETTERS_PATH = "/dead-letters"
# The rest of a longer record is unfolded.
_SHOWN_CHARACTERS, _SHOWN_LINES = 600, 8
_EXPORT = "letters.jsonl"


def build_letters(
    page: LetterPage, choice: LetterChoice, settings: Settings, *, is_first: bool
) -> dict[str, Any]:
    """Return the texts of the page of dead letters, by the names of its template.

    `older`, `newest`: addresses, empty if there is nothing; `redrive`, `export`, `redrive_export`:
    commands, word by word as a shell reads them.

    Args:
        page: counts and some letters.
        choice: which letters were asked for.
        settings: of the server: where the commands find what it shows.
        is_first: the page begins with the newest letter.
    """
    places = _options(
        {
            "--project-dir": settings.project_dir,
            "--profiles-dir": settings.profiles_dir,
            "--warehouse": str(settings.warehouse),
            "--landing": str(settings.landing),
        }
    )
    chosen = _options(
        {
            "--source": choice.source,
            "--reason": choice.reason,
            "--since": _time(choice.since),
            "--until": _time(choice.until),
        }
    )
    return {
        "total": page.total,
        "total_text": count(page.total),
        "counts": [_shown_count(it, choice) for it in page.overview],
        "letters": [_shown_letter(letter) for letter in page.letters],
        # One that was chosen is there, with letters or without.
        "sources": sorted({*(it.source for it in page.overview), *filter(None, [choice.source])}),
        "reasons": list(LetterReason),
        "newest": "" if is_first else _address(choice),
        "older": "" if page.last is None else _address(choice, after=write_place(page.last)),
        "redrive": _command("redrive", *chosen, *places),
        "export": [*_command("export", *chosen, *places), ">", _EXPORT],
        "redrive_export": _command("redrive", _EXPORT, *places),
    }


def _shown_count(it: LetterCount, choice: LetterChoice) -> dict[str, Any]:
    """Return how many letters there are of a source for a reason; `href` chooses them.

    `meaning`: pieces of the reason's sentence, and whether each is a name.
    """
    pieces = meaning_of(it.reason).split("`")
    return _in_one_line(it) | {
        "meaning": [(piece, index % 2 == 1) for index, piece in enumerate(pieces) if piece],
        "letters": count(it.letters),
        "href": _address(replace(choice, source=it.source, reason=it.reason)),
        "is_chosen": (it.source, it.reason) == (choice.source, choice.reason),
    }


def _shown_letter(letter: Letter) -> dict[str, Any]:
    """Return a dead letter as text.

    `opening`: of the record, None if there is no record; `whole`: all that is kept, empty if that
    is the opening; `size`: of the record as it arrived.
    """
    record = letter.record
    opening = "\n".join((record or "")[:_SHOWN_CHARACTERS].split("\n")[:_SHOWN_LINES])
    return _in_one_line(replace(letter, record=None)) | {
        "opening": None if record is None else plain_lines(opening),
        "whole": plain_lines(record) if record and record != opening else "",
        "size": "" if letter.record_bytes is None else f"{count(letter.record_bytes)} bytes",
    }


def _in_one_line(it: Letter | LetterCount) -> dict[str, Any]:
    """Return the values of a letter or a count, each text as one line of signs that are seen."""
    return {
        name: one_line(value) if isinstance(value, str) else value
        for name, value in asdict(it).items()
    }


def _address(choice: LetterChoice, after: str = "") -> str:
    parameters = {
        "source": choice.source,
        "reason": choice.reason,
        "from": _time(choice.since),
        "to": _time(choice.until),
        "redriven": "true" if choice.with_redriven else "",
        "after": after,
    }
    query = urlencode({name: value for name, value in parameters.items() if value})
    return f"{LETTERS_PATH}?{query}" if query else LETTERS_PATH


def _command(*words: str) -> list[str]:
    return [shlex.quote(word) for word in ("livemart", "dead-letters", *words)]


def _options(values: Mapping[str, str | Path | None]) -> list[str]:
    return [word for flag, value in values.items() if value for word in (flag, str(value))]


def _time(moment: datetime | None) -> str:
    """Return a moment of UTC as the field of the form has it."""
    return "" if moment is None else moment.replace(tzinfo=None).isoformat()
