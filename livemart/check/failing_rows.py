"""Writes rows that fail a data test as short lines.

Used by the checks, for tests that hold a snapshot back: who mends it sees a few of the rows at
once. Values are cut and signs that a terminal would obey are written out.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_ROWS = 3
_MOST_COLUMNS = 12
_MOST_SIGNS = 60
_MORE = "\u2026"


def failing_row(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return a row as one line.

    Args:
        names: of the columns.
        values: as text, None for NULL.

    >>> failing_row(["id", "note"], ["7", "two\\nlines"])
    'id=7, note=two\\\\nlines'
    >>> failing_row(["id", "note"], [None, "x" * 100])[:20]
    'id=null, note=xxxxxx'
    """
    cells = [f"{_cut(name)}={_cut(value)}" for name, value in zip(names, values, strict=True)]
    more = [_MORE] if len(cells) > _MOST_COLUMNS else []
    return ", ".join(cells[:_MOST_COLUMNS] + more)


def _cut(text: str | None) -> str:
    if text is None:
        return "null"
    short = text if len(text) <= _MOST_SIGNS else text[:_MOST_SIGNS] + _MORE
    return "".join(sign if sign.isprintable() else _written_out(sign) for sign in short)


def _written_out(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
