"""Holds records as they arrived, as runs of numbered lines.

Used by every source and by the readers of formats. A record that is no line (a message, an element
of an array) is held as one.
"""

from __future__ import annotations

from dataclasses import dataclass


class CutLine(bytes):
    """The beginning of a line that is longer than memory should hold; `size` is that of it all."""

    size: int

    @classmethod
    def of(cls, beginning: bytes, size: int) -> CutLine:
        """Return the line of `size` bytes that begins so."""
        line = cls(beginning)
        line.size = size
        return line


class KeyedLine(bytes):
    """The content of a message with its `key`, None without one."""

    key: bytes | None

    @classmethod
    def of(cls, content: bytes, key: bytes | None) -> KeyedLine:
        """Return the content of a message whose key is `key`."""
        line = cls(content)
        line.key = key
        return line


def line_size(line: bytes) -> int:
    """Return the bytes of a line, also of one that is cut."""
    return line.size if isinstance(line, CutLine) else len(line)


@dataclass(frozen=True, slots=True)
class Lines:
    """A run of whole lines with their numbers, without line ends.

    `problem` says why a file ends with the last of them, if it does not end as it should.
    """

    lines: list[tuple[int, bytes]]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file that can be read by itself, from `start` to before `end`.

    Bytes of a file of lines, which begin and end with a line; row groups of a Parquet file. `end`
    is None for the rest of the file; `first_line` is the number of the first record, from 1.
    """

    start: int = 0
    end: int | None = None
    first_line: int = 1


WHOLE = Span()
