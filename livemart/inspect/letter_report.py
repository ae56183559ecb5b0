"""Shows dead letters: counted by source and reason, and the newest one by one.

Used by `dead-letters list` and `show`. Records are shown as text that no terminal obeys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError, nearest
from livemart.inspect.terminal_text import aligned, one_line
from livemart.land.letters.chosen_letters import LetterChoice, letter_relations, read_letters
from livemart.land.letters.dead_letters import LETTERS

_SHOWN_CHARACTERS = 500
_NEWEST_FIRST = [("landed_at", "descending"), ("batch_id", "descending"), ("origin", "ascending")]


def letter_choice(
    warehouse: Path,
    *,
    source: str | None = None,
    reason: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    with_redriven: bool = False,
) -> LetterChoice:
    """Return which letters are meant.

    Args:
        warehouse: root of all tables.
        source: relation of the source whose letters are asked for, or its last part; None for all.
        reason: see `LetterChoice`, as the others.

    Raises:
        ConfigError: LETTER_SOURCE_UNKNOWN.
    """
    tables = Warehouse(warehouse)
    if source is not None:
        known = {
            name
            for relation in letter_relations(tables)
            for name in pc.unique(tables.read(relation, columns=["source"])["source"]).to_pylist()
        }
        source = _source_named(source, sorted(known), tables)
    return LetterChoice(source, reason, since, until, with_redriven)


def describe_letters(
    warehouse: Path, choice: LetterChoice | None = None, *, limit: int = 20
) -> dict[str, Any]:
    """Return dead letters as JSON values.

    Args:
        warehouse: root of all tables.
        choice: which of them; None for all that were not handed over again.
        limit: how many single letters to show.

    Returns:
        `counts`: by source and reason, with the first and last time of landing; `letters`: the
        newest of them; `total`: how many there are.
    """
    tables, choice = Warehouse(warehouse), choice or LetterChoice()
    chosen = {name: read_letters(tables, name, choice) for name in letter_relations(tables)}
    counts = [
        row
        for letters in chosen.values()
        for row in letters.group_by(["source", "code"])
        .aggregate([("landed_at", "count"), ("landed_at", "min"), ("landed_at", "max")])
        .to_pylist()
    ]
    return {
        "counts": [
            {
                "source": row["source"],
                "reason": row["code"],
                "letters": row["landed_at_count"],
                "first_seen": row["landed_at_min"].isoformat(),
                "last_seen": row["landed_at_max"].isoformat(),
            }
            for row in sorted(counts, key=lambda row: (row["source"], row["code"]))
        ],
        "letters": [_letter(row) for row in _newest(tables, chosen, choice, limit)],
        "total": sum(row["landed_at_count"] for row in counts),
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
            _shown_time(row["first_seen"]),
            _shown_time(row["last_seen"]),
        )
        for row in report["counts"]
    ]
    blocks = ["\n".join(aligned([header, *rows])), *map(_block, report["letters"])]
    if report["letters"] and report["total"] > len(report["letters"]):
        shown = len(report["letters"])
        blocks.append(f"the newest {shown:,} of {report['total']:,}; --limit shows more")
    blocks.append(
        "  next: mend the rule, then `livemart dead-letters redrive`; or mend the records of "
        "`livemart dead-letters export`, and re-drive that file"
    )
    return "\n\n".join(blocks)


def _newest(
    tables: Warehouse, chosen: Mapping[str, pa.Table], choice: LetterChoice, limit: int
) -> list[dict[str, Any]]:
    newest = LETTERS.empty_table()
    for relation, letters in chosen.items() if limit else ():
        # There may be millions: first when they landed, and then those that landed last.
        times = letters.column("landed_at")
        if not len(times):
            continue
        last = pc.select_k_unstable(times, min(limit, len(times)), [("landed_at", "descending")])
        since = pc.min(times.take(last)).as_py()
        whole = read_letters(tables, relation, replace(choice, since=since), LETTERS.names)
        both = pa.concat_tables([newest, whole.select(LETTERS.names).cast(LETTERS)])
        newest = both.sort_by(_NEWEST_FIRST).slice(0, limit)
    return list(newest.to_pylist())


def _letter(row: Mapping[str, Any]) -> dict[str, Any]:
    record = row["record"]
    is_cut = record is not None and (row["record_bytes"] or 0) > len(record.encode())
    return {
        "source": row["source"],
        "reason": row["code"],
        "detail": row["detail"],
        "origin": row["origin"],
        "record": record,
        "record_bytes": row["record_bytes"],
        "cut": is_cut,
        "batch_id": row["batch_id"],
        "landed_at": row["landed_at"].isoformat(),
    }


def _source_named(text: str, known: Sequence[str], tables: Warehouse) -> str:
    """Return the relation that is meant: in full, or, of one with letters, by its last part."""
    name = text.strip().lower()
    if "." in name and tables.exists(name):
        return name
    meant = [it for it in known if name in (it.lower(), it.lower().partition(".")[2])]
    if len(meant) == 1:
        return meant[0]
    raise ConfigError(
        "LETTER_SOURCE_UNKNOWN",
        f"--source: found {text}, which has no dead letters{nearest(name, known)}",
        hint=f"name one of {', '.join(known)}" if known else "leave it out: there are no letters",
    )


def _block(letter: Mapping[str, Any]) -> str:
    landed = f"{_shown_time(letter['landed_at'])} UTC, batch {letter['batch_id']}"
    lines = [
        f"{one_line(letter['source'])}  {letter['reason']}",
        f"  landed  {landed}",
        f"  origin  {one_line(letter['origin'])}",
        f"  detail  {one_line(letter['detail'])}",
    ]
    if (record := letter["record"]) is not None:
        is_whole = not letter["cut"] and len(record) <= _SHOWN_CHARACTERS
        size = "" if is_whole else f"... ({letter['record_bytes'] or 0:,} bytes)"
        lines.append(f"  record  {one_line(record[:_SHOWN_CHARACTERS])}{size}")
    return "\n".join(lines)


def _shown_time(text: str) -> str:
    return text[:19].replace("T", " ")
