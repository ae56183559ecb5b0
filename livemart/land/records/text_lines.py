"""Reads lines of text: each is one record with one column, `line`.

Used for logs and for whatever has a format of its own, which SQL then takes apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from livemart.land.records.exact_values import MalformedError
from livemart.land.records.judge import Chunk, Group
from livemart.land.records.one_by_one import read_one_by_one
from livemart.land.records.runs import CutLine
from livemart.project.sources import TEXT_COLUMN


def read_text_lines(group: Group, lines: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return a row of each line, and the lines that fit no row.

    Args:
        group: its column is `line`.
        lines: line number and content; a carriage return at its end is part of the line's end.
    """
    contents = [
        (number, raw if isinstance(raw, CutLine) else raw.removesuffix(b"\r"))
        for number, raw in lines
    ]
    return read_one_by_one(group, contents, lambda content: {TEXT_COLUMN: _text(content)})


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(f"invalid UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise MalformedError("a NUL character")
    return text
