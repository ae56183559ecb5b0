"""Parses spans of files in Spark's Python workers.

Used by the staging of a bulk load. It imports the parser and nothing of Spark or the warehouse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from livemart.land.files.folder import Span
from livemart.land.records.judge import Group
from livemart.land.records.parse import parse_file

SPANS = "name string, path string, start bigint, end bigint, first_line bigint"


@dataclass(frozen=True, slots=True)
class ParseSpans:
    """Parses spans of files (rows of `SPANS`) to batches of `group.judged`."""

    group: Group

    def __call__(self, spans: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in spans:
            for row in batch.to_pylist():
                span = Span(row["start"], row["end"], row["first_line"])
                for table in parse_file(self.group, Path(row["path"]), row["name"], span):
                    yield from table.to_batches()
