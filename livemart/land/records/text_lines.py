"""Reads lines of text: each is one record with one column, `line`.

Used for logs and for whatever has a format of its own, which SQL then takes apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livemart.land.reasons import LetterReason
from livemart.land.records.judge import (
    MAX_RECORD_BYTES,
    Chunk,
    Group,
    MisfitError,
    Refused,
    convert_fields,
    to_rows,
)
from livemart.land.records.runs import line_size
from livemart.land.records.values import MalformedError
from livemart.land.records.written import Rescued
from livemart.project.sources import TEXT_COLUMN


def read_text_lines(group: Group, lines: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return a row of each line, and the lines that fit no row.

    Args:
        group: its column is `line`.
        lines: line number and content; a carriage return at its end is part of the line's end.
    """
    values: list[list[Any]] = []
    rescued: list[Rescued] = []
    kept: list[tuple[int, bytes]] = []
    refused: list[Refused] = []
    for number, raw in lines:
        content = raw.removesuffix(b"\r")
        if len(content) > MAX_RECORD_BYTES:
            detail = f"{line_size(raw)} bytes, at most {MAX_RECORD_BYTES} are read"
            refused.append(Refused(number, LetterReason.RECORD_TOO_LARGE, detail, raw))
            continue
        try:
            converted, _ = convert_fields(group, {TEXT_COLUMN: _text(content)})
        except MisfitError as error:
            refused.append(Refused(number, error.code, str(error), content))
        except MalformedError as error:
            refused.append(Refused(number, LetterReason.MALFORMED_RECORD, str(error), content))
        else:
            values.append(converted)
            rescued.append({})
            kept.append((number, content))
    rows = to_rows(group, values, rescued)
    return Chunk(rows, [number for number, _ in kept], [raw for _, raw in kept], refused)


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"invalid UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise MalformedError("a NUL character")
    return text
