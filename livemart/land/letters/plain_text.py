"""Escapes text from records, so that a terminal or a page shows it and does not obey it.

Used by all who show dead letters: their records, details and origins come from anywhere.
"""

from __future__ import annotations

import re

# Also what turns the order of reading, and what is not seen at all.
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    r"""Return a text in one line, with escapes for signs that a terminal obeys or does not show.

    >>> print(one_line("a\nb\x1b[2J\u202e"))
    a\nb\x1b[2J\u202e
    """
    return _UNSEEN.sub(_escape, text)


def plain_lines(text: str) -> str:
    r"""Return the same, but with its lines as they are.

    >>> print(plain_lines("a\r\nb\x00"))
    a\r
    b\x00
    """
    return "\n".join(map(one_line, text.split("\n")))


def _escape(sign: re.Match[str]) -> str:
    number = ord(sign[0])
    return _ESCAPES.get(sign[0], f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")
