"""Exports dead letters as JSON lines, to be read back once they were mended by hand.

Used by `dead-letters export` and `redrive`. A line has what tells its letter from others, why it
was written, and the record; who mends it changes `record` and nothing else.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError
from livemart.land.letters.chosen_letters import (
    LetterChoice,
    letter_relations,
    read_letters,
    whole_letters,
)
from livemart.land.letters.redriven import letter_key
from livemart.land.redrive import RedriveCounts, mended
from livemart.project.graph import SourceTable
from livemart.storage.location import StoragePlace

# The columns that identify a letter, as a line has them beside the time.
_NAMES = ("source", "origin", "reason", "batch_id")


def exported_letters(
    warehouse: Warehouse,
    landing: StoragePlace,
    sources: Mapping[str, SourceTable],
    choice: LetterChoice,
    counts: RedriveCounts,
) -> Iterator[str]:
    """Yield a line of JSON for each letter whose record can be handed over again.

    Args:
        landing: the landing folder, where long records are read again.
        sources: by relation.
        counts: are added to, also by what is left out.
    """
    for _, table in whole_letters(warehouse, choice):
        for records in mended(landing, sources, table.to_pylist(), {}, counts).values():
            for record in records:
                counts.records += 1
                letter = record.letter
                line: dict[str, Any] = {name: letter[name] for name in _NAMES}
                line |= {"landed_at": letter["landed_at"].isoformat(), "detail": letter["detail"]}
                if record.header:
                    line["header"] = record.header.decode("utf-8", errors="surrogateescape")
                try:
                    line["record"] = record.content.decode("utf-8")
                except UnicodeDecodeError:
                    line["record_base64"] = base64.b64encode(record.content).decode()
                # A byte of a header that is no text is a surrogate, which JSON can write escaped.
                yield (
                    json.dumps(line, ensure_ascii=False).encode(errors="backslashreplace").decode()
                )


def read_exported(lines: Iterable[str]) -> dict[tuple[Any, ...], tuple[bytes, bytes | None]]:
    """Return record and header of each letter that a file of an export names, by its key.

    Raises:
        ConfigError: LETTER_EXPORT_INVALID, with each line that is none.
    """
    contents: dict[tuple[Any, ...], tuple[bytes, bytes | None]] = {}
    mistakes = []
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            key, content = _read_line(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            mistakes.append(f"line {number}: {type(error).__name__}: {error}")
            continue
        if key in contents:
            mistakes.append(f"line {number}: the letter of {key[1]} a second time")
        contents[key] = content
    if mistakes:
        raise ConfigError(
            "LETTER_EXPORT_INVALID",
            "; ".join(mistakes[:20]),
            hint="change only the text of `record`; `dead-letters export` writes the lines again",
        )
    return contents


def named_letters(
    warehouse: Warehouse, contents: Mapping[tuple[Any, ...], object]
) -> dict[str, list[dict[str, Any]]]:
    """Return the letters that a file of an export names, by table; those handed over are left out.

    Raises:
        ConfigError: LETTER_EXPORT_INVALID, if there is no such letter.
    """
    letters: dict[str, list[dict[str, Any]]] = {}
    unknown = set(contents)
    for relation in letter_relations(warehouse):
        stored = read_letters(warehouse, relation, LetterChoice(with_redriven=True))
        unknown.difference_update(map(letter_key, stored.to_pylist()))
    if unknown:
        named = Counter(f"{key[0]} {key[1]} {key[2]}" for key in unknown)
        raise ConfigError(
            "LETTER_EXPORT_INVALID",
            f"no such letter: {'; '.join(sorted(named)[:20])}",
            hint="the file belongs to another warehouse, or more than `record` was changed",
        )
    for relation, table in whole_letters(warehouse, LetterChoice()):
        rows = [row for row in table.to_pylist() if letter_key(row) in contents]
        if rows:
            letters[relation] = rows
    return letters


def chosen_rows(
    warehouse: Warehouse, choice: LetterChoice
) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Return the chosen letters that were not handed over again, by table."""
    return {name: table.to_pylist() for name, table in whole_letters(warehouse, choice)}


def _read_line(
    line: Mapping[str, Any],
) -> tuple[tuple[Any, ...], tuple[bytes, bytes | None]]:
    letter = {name: line[name] for name in _NAMES}
    letter["landed_at"] = datetime.fromisoformat(line["landed_at"]).astimezone(UTC)
    if "record" in line:
        content = line["record"].encode()
    else:
        content = base64.b64decode(line["record_base64"], validate=True)
    header = line.get("header")
    header_bytes = None if header is None else header.encode("utf-8", errors="surrogateescape")
    return letter_key(letter), (content, header_bytes)
