"""Reads the content of a file, compressed or not, in blocks.

Used by the readers of lines and of elements, which join what blocks have cut. Memory holds one
block, and of what is long only its beginning.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from livemart.land.records.runs import CutLine

_MAGICS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    # Three letters could begin a line of text: ten bytes do not.
    "bz2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
}
MAGIC_BYTES = 10
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# As far as this the beginning of a file may be blank.
HEAD_BYTES = 4 << 10
# If blocks do not end a line, this much of it is kept: twice the size that a record may have.
_KEPT_BYTES = 2 << 20


class Unended:
    """The line or element that no block has ended yet; the first may begin with a mark to drop."""

    def __init__(self, mark: bytes) -> None:
        self._mark = mark
        self._content = bytearray()
        self._size = 0

    def add(self, part: bytes) -> None:
        """Add a part of it."""
        self._size += len(part)
        if (room := _KEPT_BYTES - len(self._content)) > 0:
            self._content += part[:room]

    def end(self) -> bytes:
        """Return all of it, or its beginning, and begin with the next one."""
        content = bytes(self._content).removeprefix(self._mark)
        size = self._size - len(self._content) + len(content)
        self._mark, self._size = b"", 0
        self._content.clear()
        return content if len(content) == size else CutLine.of(content, size)


def read_blocks(
    path: Path, start: int, end: int | None, size: int
) -> Iterator[tuple[bytes, str | None]]:
    """Yield the content from byte `start` to `end` in blocks of `size`; of a compressed file all.

    The second value says why the content ends with this block, if it does not end as it should.
    """
    with path.open("rb") as file:
        compression = compression_of(file.read(MAGIC_BYTES))
        file.seek(0 if compression else start)
        if compression == "gzip":
            yield from _unzipped(file, size)
            return
        if compression:
            yield from _decompressed(path, compression, size)
            return
        left = None if end is None else end - start
        while block := file.read(size if left is None else min(size, left)):
            left = None if left is None else left - len(block)
            yield block, None


def read_head(path: Path) -> bytes:
    """Return the beginning of the content, at most 4 KiB; nothing of an empty file."""
    return next(read_blocks(path, 0, None, HEAD_BYTES), (b"", None))[0]


def compression_of(head: bytes) -> str | None:
    """Return how a file is compressed by its first bytes, None if it is not.

    >>> compression_of(b"BZh91AY&SY..."), compression_of(b"BZh is how this line begins")
    ('bz2', None)
    """
    return next((name for name, magic in _MAGICS.items() if magic.match(head)), None)


def _decompressed(path: Path, compression: str, size: int) -> Iterator[tuple[bytes, str | None]]:
    """Yield the content of a file as far as it can be read."""
    with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, compression) as file:
        while True:
            try:
                block = file.read(size)
            except OSError as error:
                yield b"", f"broken {compression}: {error}"
                return
            if not block:
                return
            yield block, None


def _unzipped(file: io.BufferedReader, size: int) -> Iterator[tuple[bytes, str | None]]:
    """Yield the content of a gzip file of one or more members, as far as it can be read."""
    member = zlib.decompressobj(wbits=31)
    waiting = b""
    while waiting or (waiting := file.read(size)):
        try:
            block = member.decompress(waiting, size)
        except zlib.error as error:
            yield b"", f"broken gzip: {error}"
            return
        waiting = member.unconsumed_tail
        yield block, None
        if member.eof:
            waiting = member.unused_data or file.read(size)
            # Padding after the last member is not content.
            if not waiting.strip(b"\0"):
                return
            member = zlib.decompressobj(wbits=31)
    if not member.eof:
        yield member.flush(), "gzip content ends early"
