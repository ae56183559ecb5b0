"""Reads the elements of a file that is one JSON array, each like a separate line.

Used by the parser for a JSON source whose file begins with `[`. Like a line, an element takes no
other with it, and however long it is, memory holds only its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from livemart.land.records.runs import Lines
from livemart.land.sources.files.blocks import BYTE_ORDER_MARK, Unended, read_blocks, read_head
from livemart.land.sources.files.lines import READ_BYTES

# Those of JSON: behind another one no array begins.
_BLANKS = b" \t\r\n"
# An escaped character of a string is none of the others.
_MARK = re.compile(rb'\\.|[][{},"\n]', re.DOTALL)


def is_array(path: Path) -> bool:
    """Return whether the content of a file begins with `[`, also that of a compressed one."""
    return begins_array(read_head(path))


def begins_array(head: bytes) -> bool:
    """Return whether a content that begins so is an array."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip(_BLANKS)[:1] == b"["


def read_elements(path: Path, run_bytes: int = READ_BYTES) -> Iterator[Lines]:
    """Yield the elements of the file's array in runs, numbered from 1.

    Text behind the array is read by lines; elements go on being counted. A file that ends
    within the array has a problem.
    """
    elements = Elements()
    problem: str | None = None
    for block, trouble in read_blocks(path, 0, None, run_bytes):
        problem = trouble
        if ended := elements.read(block):
            yield Lines(ended)
    rest = elements.end()
    if elements.is_open and problem is None:
        problem = "the array does not end"
    if rest[1].strip() or problem:
        yield Lines([rest], problem)


class Elements:
    """Takes elements out of blocks, and knows where the last one has left off."""

    def __init__(self) -> None:
        # Within the array; within a string; brackets that are open in the element.
        self.is_open = self._is_text = False
        self._depth = 0
        self._count = 0
        self._unended = Unended(BYTE_ORDER_MARK)
        self._escape = b""

    def read(self, block: bytes) -> list[tuple[int, bytes]]:
        """Return the elements that end in a block, with their numbers."""
        block = self._escape + block
        # The byte that a backslash escapes is in the next block.
        is_cut = (len(block) - len(block.rstrip(b"\\"))) % 2
        self._escape = block[len(block) - is_cut :]
        block = block[: len(block) - is_cut]
        ended: list[tuple[int, bytes]] = []
        start = 0
        for match in _MARK.finditer(block):
            if self._ends(match[0]):
                self._unended.add(block[start : match.start()])
                content = self._unended.end()
                start = match.end()
                if content.strip():
                    self._count += 1
                    ended.append((self._count, content))
        self._unended.add(block[start:])
        return ended

    def end(self) -> tuple[int, bytes]:
        """Return the rest of the last block."""
        self._unended.add(self._escape)
        return self._count + 1, self._unended.end()

    def _ends(self, mark: bytes) -> bool:
        """Take note of a mark; return whether an element ends before it, or may begin behind it."""
        if self._is_text:
            self._is_text = mark not in (b'"', b"\n")
            if mark == b"\n":
                # No string goes on in another line: what lacks a quote takes no other with it.
                self._depth = 0
                return True
        elif mark == b'"':
            self._is_text = True
        elif mark == b"[" and not self.is_open and not self._depth:
            self.is_open = True
            return True
        elif mark in b"[{":
            self._depth += 1
        elif mark == b"]" and self.is_open and not self._depth:
            self.is_open = False
            return True
        elif mark in b"]}":
            self._depth = max(0, self._depth - 1)
        elif not self._depth:
            return mark == (b"," if self.is_open else b"\n")
        return False


def as_lines(elements: Iterable[tuple[int, bytes]]) -> bytes:
    """Return elements of an array as lines: no string spans two lines."""
    return b"".join(content.replace(b"\n", b" ") + b"\n" for _, content in elements)
