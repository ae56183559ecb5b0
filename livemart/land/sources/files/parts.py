"""Reads the records of a file, or of a part of it that begins and ends with a line.

Used by the driver for files that it holds, and by Spark's workers. A file is split only where each
part can be read without the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from livemart.land.records.judge import Group, judge, malformed
from livemart.land.records.misread import misread_file
from livemart.land.records.origin import Place
from livemart.land.records.parse import RECORD_FORMATS, FileFormat, LineFormat, parse_runs
from livemart.land.records.runs import WHOLE, CutLine, Lines, Span
from livemart.land.sources.files.blocks import (
    BYTE_ORDER_MARK,
    HEAD_BYTES,
    compression_of,
    read_head,
)
from livemart.land.sources.files.bucket import on_this_machine
from livemart.land.sources.files.elements import begins_array, is_array, read_elements
from livemart.land.sources.files.lines import read_lines, split_file
from livemart.storage.location import StoragePlace

_SPAN_BYTES = 24 << 20
# A dead letter shows so much of a file that holds no records.
_SHOWN_BYTES = 16


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file or a span of it.

    `name`: of the file in `_origin`; `path`: where it is; `digest`: of one in a bucket.
    """

    name: str
    path: StoragePlace
    span: Span = WHOLE
    digest: str = ""

    def read(self, group: Group) -> Iterator[pa.Table]:
        """Yield its records as tables of `group.judged`: good and refused ones."""
        with on_this_machine(self.path, self.digest) as path:
            yield from self._read(group, path)

    def _read(self, group: Group, path: Path) -> Iterator[pa.Table]:
        place, record_format = Place(self.name), RECORD_FORMATS[group.record_rules.format]
        if isinstance(record_format, LineFormat):
            head = read_head(path)
            if misread := misread_file(head):
                if self.span.start == 0:
                    record = CutLine.of(head[:_SHOWN_BYTES], path.stat().st_size)
                    yield judge(group, place, malformed(group, [(1, record)], misread))
                return
            yield from parse_runs(group, place, self._runs(record_format, path, head))
            return
        for chunk in record_format.read(group, path, self.span):
            yield judge(group, place, chunk)

    def _runs(self, line_format: LineFormat, path: Path, head: bytes) -> Iterator[Lines]:
        if self.span.start == 0 and line_format.may_be_array and begins_array(head):
            return read_elements(path)
        return read_lines(path, self.span)


def content_of(lines: bytes, format_name: str) -> bytes:
    """Return lines as a file that is read as just these, whatever the first of them looks like.

    It may begin as an array does, a file of another kind, or one that is compressed. Then a blank
    line goes before it, for it would decide how all others are read.
    """
    record_format, head = RECORD_FORMATS[format_name], lines[:HEAD_BYTES]
    assert isinstance(record_format, LineFormat), format_name
    misleads = (
        head.startswith(BYTE_ORDER_MARK)
        or compression_of(head) is not None
        or misread_file(head) is not None
        or (record_format.may_be_array and begins_array(head))
    )
    # The first line of a format with a header is that.
    if record_format.has_header or not misleads:
        return lines
    # A line end alone may well precede an array.
    return (b"\f\n" if record_format.may_be_array else b"\n") + lines


def parts_of(name: str, path: StoragePlace, format_name: str, digest: str = "") -> list[FilePart]:
    """Return the parts of a file that can be read by themselves.

    A small file is one, and so is one in a bucket: each reader of a span would copy all of it.
    """
    if not isinstance(path, Path):
        return [FilePart(name, path, digest=digest)]
    return [FilePart(name, path, span) for span in _spans(path, RECORD_FORMATS[format_name])]


def _spans(path: Path, record_format: LineFormat | FileFormat) -> list[Span]:
    if path.stat().st_size <= _SPAN_BYTES:
        return [WHOLE]
    if isinstance(record_format, FileFormat):
        return record_format.spans(path)
    if record_format.has_header or (record_format.may_be_array and is_array(path)):
        return [WHOLE]
    return split_file(path, _SPAN_BYTES)
