"""Shows dead letters: counted by source and reason, and the newest one by one.

Used by `dead-letters list` and `show`. Records are shown as text that no terminal obeys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError, nearest
from livemart.inspect.terminal_text import aligned
from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.letters.letter_pages import read_letter_page
from livemart.land.letters.plain_text import one_line
from livemart.storage.location import StoragePlace

_SHOWN_CHARACTERS = 500
_SECONDS = "%Y-%m-%d %H:%M:%S"


def letter_choice(warehouse: StoragePlace, choice: LetterChoice) -> LetterChoice:
    """Return a choice with the whole name of its source.

    Args:
        warehouse: root of all tables.
        choice: names a relation, or its last part.

    Raises:
        ConfigError: LETTER_SOURCE_UNKNOWN.
    """
    if choice.source is None:
        return choice
    tables = Warehouse(warehouse)
    every = read_letter_page(tables, LetterChoice(with_redriven=True), limit=0)
    relations = sorted({count.source for count in every.counts})
    return replace(choice, source=_source_named(choice.source, relations, tables))


def describe_letters(
    warehouse: StoragePlace, choice: LetterChoice | None = None, *, limit: int = 20
) -> dict[str, Any]:
    """Return dead letters as JSON values, but for their times.

    Args:
        warehouse: root of all tables.
        choice: which of them; None for all that were not handed over again.
        limit: how many single letters to show.

    Returns:
        `counts`: by source and reason, with the first and last time of landing; `letters`: the
        newest of them; `total`: how many there are.
    """
    page = read_letter_page(Warehouse(warehouse), choice or LetterChoice(), limit=limit)
    return {
        "counts": list(map(asdict, page.counts)),
        "letters": list(map(asdict, page.letters)),
        "total": page.total,
    }


def render_letters(report: Mapping[str, Any]) -> str:
    """Return dead letters as lines for a terminal."""
    if not report["total"]:
        return "no dead letters"
    header = ("source", "reason", "letters", "first seen", "last seen")
    rows = [
        (
            one_line(row["source"]),
            row["reason"],
            f"{row['letters']:,}",
            f"{row['first_seen']:{_SECONDS}}",
            f"{row['last_seen']:{_SECONDS}}",
        )
        for row in report["counts"]
    ]
    blocks = ["\n".join(aligned([header, *rows])), *map(_block, report["letters"])]
    if report["letters"] and report["total"] > len(report["letters"]):
        shown = len(report["letters"])
        blocks.append(f"the newest {shown:,} of {report['total']:,}; --limit shows more")
    blocks.append(
        "  next: correct the rule, then run `livemart dead-letters redrive`; or correct the "
        "records of "
        "`livemart dead-letters export`, and re-drive that file"
    )
    return "\n\n".join(blocks)


def _source_named(text: str, relations: Sequence[str], tables: Warehouse) -> str:
    """Return the relation that is meant: in full, or, of one with letters, by its last part."""
    name = text.strip().lower()
    if "." in name and tables.exists(name):
        return name
    meant = [
        relation
        for relation in relations
        if name in (relation.lower(), relation.lower().partition(".")[2])
    ]
    if len(meant) == 1:
        return meant[0]
    raise ConfigError(
        "LETTER_SOURCE_UNKNOWN",
        f"--source: found {text}, which has no dead letters{nearest(name, relations)}",
        hint=f"name one of {', '.join(relations)}"
        if relations
        else "leave it out: there are no letters",
    )


def _block(letter: Mapping[str, Any]) -> str:
    landed = f"{letter['landed_at']:{_SECONDS}} UTC, batch {letter['batch_id']}"
    lines = [
        f"{one_line(letter['source'])}  {letter['reason']}",
        f"  landed  {landed}",
        f"  origin  {one_line(letter['origin'])}",
        f"  detail  {one_line(letter['detail'])}",
    ]
    if (record := letter["record"]) is not None:
        is_whole = not letter["is_cut"] and len(record) <= _SHOWN_CHARACTERS
        size = "" if is_whole else f"... ({letter['record_bytes'] or 0:,} bytes)"
        lines.append(f"  record  {one_line(record[:_SHOWN_CHARACTERS])}{size}")
    return "\n".join(lines)
