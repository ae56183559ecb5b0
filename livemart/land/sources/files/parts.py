"""Reads the records of a file, or of a part of it that begins and ends with a line.

Used by the driver for files that it holds, and by Spark's workers. A file is split only where each
part can be read without the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from livemart.land.records.judge import Group
from livemart.land.records.origin import Place
from livemart.land.records.parse import RECORD_FORMATS, parse_runs
from livemart.land.records.runs import Lines
from livemart.land.sources.files.elements import is_array, read_elements
from livemart.land.sources.files.folder import WHOLE, Span, read_lines, split_file

_SPAN_BYTES = 24 << 20


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file or a span of it. `name`: what `_origin` calls the file; `path`: where it is."""

    name: str
    path: Path
    span: Span = WHOLE

    def read(self, group: Group) -> Iterator[pa.Table]:
        """Yield its records as tables of `group.judged`: good and refused ones."""
        return parse_runs(group, Place(self.name), self._runs(group.format))

    def _runs(self, record_format: str) -> Iterator[Lines]:
        if self.span.start == 0 and _is_one_array(record_format, self.path):
            return read_elements(self.path)
        return read_lines(self.path, self.span)


def parts_of(name: str, path: Path, record_format: str) -> list[FilePart]:
    """Return the parts of a file that can be read by themselves; a small file is one."""
    if RECORD_FORMATS[record_format].has_header or path.stat().st_size <= _SPAN_BYTES:
        return [FilePart(name, path)]
    if _is_one_array(record_format, path):
        return [FilePart(name, path)]
    return [FilePart(name, path, span) for span in split_file(path, _SPAN_BYTES)]


def _is_one_array(record_format: str, path: Path) -> bool:
    return RECORD_FORMATS[record_format].may_be_array and is_array(path)
