"""Reads lines of text: each is one record with one column, `line`.

Used for logs and for whatever has a format of its own, which SQL then takes apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from livemart.land.records.exact_values import decode_text
from livemart.land.records.judge import Chunk, Group
from livemart.land.records.one_by_one import read_one_by_one
from livemart.project.sources import TEXT_COLUMN


def read_text_lines(group: Group, lines: Sequence[tuple[int, bytes]]) -> Chunk:
    """Return a row of each line, and the lines that fit no row.

    Args:
        group: its column is `line`.
        lines: line number and content without the line's end.
    """
    return read_one_by_one(group, lines, lambda content: {TEXT_COLUMN: decode_text(content)})
