"""Lays out text for a terminal: columns below each other, and others' text without its commands.

Used by the reports of this room.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows of cells as lines whose columns stand below each other.

    >>> aligned([("a", "b"), ("long", "c")])
    ['a     b', 'long  c']
    """
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def one_line(text: str) -> str:
    r"""Return a text of somebody else's in one line, without what a terminal obeys.

    >>> print(one_line("a\nb\x1b[2J"))
    a\nb\x1b[2J
    """
    return _CONTROL.sub(lambda sign: _ESCAPES.get(sign[0], f"\\x{ord(sign[0]):02x}"), text)
