"""Shows dead letters: counted by source and reason, and the newest one by one.

Used by the command `dead-letters`. Records are shown as text that no terminal takes for a command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError, nearest
from livemart.inspect.terminal_text import aligned, one_line
from livemart.land.letters.dead_letters import LETTERS, TABLE

_SHOWN_CHARACTERS = 500
_NEWEST_FIRST = [("landed_at", "descending"), ("batch_id", "descending"), ("origin", "ascending")]


def describe_letters(
    warehouse: Path, *, source: str | None = None, reason: str | None = None, limit: int = 20
) -> dict[str, Any]:
    """Return dead letters as JSON values.

    Args:
        warehouse: root of all tables.
        source: relation of the source whose letters are asked for, or its last part; None for all.
        reason: code of those that are asked for; None for all.
        limit: how many single letters to show.

    Returns:
        `counts`: by source and reason, with the first and last time of landing; `letters`: the
        newest of them; `total`: how many there are.

    Raises:
        ConfigError: LETTER_SOURCE_UNKNOWN.
    """
    tables = Warehouse(warehouse)
    relations = [f"{path.parent.name}.{TABLE}" for path in sorted(warehouse.glob(f"*/{TABLE}"))]
    relations = [relation for relation in relations if tables.exists(relation)]
    heads = [
        tables.read(name, columns=["source", "code", "landed_at"]).group_by(["source", "code"])
        for name in relations
    ]
    counts = [
        row
        for head in heads
        for row in head.aggregate(
            [("landed_at", "count"), ("landed_at", "min"), ("landed_at", "max")]
        ).to_pylist()
    ]
    if source is not None:
        source = _source_named(source, sorted({row["source"] for row in counts}), tables)
    chosen = [
        row for row in counts if source in (None, row["source"]) and (reason in (None, row["code"]))
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
            for row in sorted(chosen, key=lambda row: (row["source"], row["code"]))
        ],
        "letters": [_letter(row) for row in _newest(tables, relations, source, reason, limit)],
        "total": sum(row["landed_at_count"] for row in chosen),
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
    if report["total"] > len(report["letters"]):
        shown = len(report["letters"])
        blocks.append(f"the newest {shown:,} of {report['total']:,}; --limit shows more")
    blocks.append(
        "  next: mend the records where they come from and deliver them in a file of another name"
    )
    return "\n\n".join(blocks)


def _newest(
    tables: Warehouse, relations: Sequence[str], source: str | None, reason: str | None, limit: int
) -> list[dict[str, Any]]:
    chosen = pds.scalar(True)
    if source is not None:
        chosen &= pds.field("source") == source
    if reason is not None:
        chosen &= pds.field("code") == reason
    newest = LETTERS.empty_table()
    for relation in relations:
        # There may be millions: first when they landed, and then those that landed last.
        times = tables.read(relation, columns=["landed_at"], filter=chosen).column("landed_at")
        if not len(times):
            continue
        last = pc.select_k_unstable(times, min(limit, len(times)), [("landed_at", "descending")])
        since = pds.field("landed_at") >= pc.min(times.take(last))
        letters = tables.read(relation, columns=LETTERS.names, filter=chosen & since)
        both = pa.concat_tables([newest, letters.cast(LETTERS)])
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
