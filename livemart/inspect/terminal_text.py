"""Lays out text for a terminal.

Used by the reports of this room.
"""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, word: str) -> str:
    """Return a number of things, with their word in the plural where it is not one.

    >>> counted(1, "file"), counted(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{count:,} {word}{'s'[: count != 1]}"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows of cells as lines whose columns are aligned.

    >>> aligned([("a", "b"), ("long", "c")])
    ['a     b', 'long  c']
    """
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
