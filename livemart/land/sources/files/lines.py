"""Reads the lines of a file, or of a span of it that ends with a line.

Used by the parser and Spark's workers. However long a line is, memory holds only its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from livemart.land.records.runs import WHOLE, Lines, Span
from livemart.land.sources.files.blocks import (
    BYTE_ORDER_MARK,
    MAGIC_BYTES,
    Unended,
    compression_of,
    read_blocks,
)

READ_BYTES = 4 << 20


def read_lines(path: Path, span: Span = WHOLE, run_bytes: int = READ_BYTES) -> Iterator[Lines]:
    """Yield the lines of a file, unpacked if it is compressed, in runs of about `run_bytes`.

    A byte order mark at the start is dropped. The last line needs no line end.
    """
    number, unended = span.first_line, Unended(BYTE_ORDER_MARK if span.start == 0 else b"")
    problem: str | None = None
    for block, trouble in read_blocks(path, span.start, span.end, run_bytes):
        problem = trouble
        first, *others = block.split(b"\n")
        unended.add(first)
        if others:
            whole = [unended.end(), *others[:-1]]
            unended.add(others[-1])
            yield Lines(list(enumerate(whole, number)))
            number += len(whole)
    if (rest := unended.end()) or problem:
        yield Lines([(number, rest)], problem)


def split_file(path: Path, span_bytes: int) -> list[Span]:
    """Return spans of about `span_bytes` that are the file; a compressed one stays whole."""
    with path.open("rb") as file:
        if compression_of(file.read(MAGIC_BYTES)):
            return [WHOLE]
        file.seek(0)
        spans, start, position, line, lines = [], 0, 0, 1, 0
        while block := file.read(READ_BYTES):
            cut = block.rfind(b"\n") + 1
            if cut and position + cut - start >= span_bytes:
                spans.append(Span(start, position + cut, line))
                line += lines + block.count(b"\n")
                start, lines = position + cut, 0
            else:
                lines += block.count(b"\n")
            position += len(block)
    return [*spans, Span(start, None, line)]
