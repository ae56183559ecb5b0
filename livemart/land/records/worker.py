"""Parses parts of a delivery in Spark's Python workers.

Used by the staging of a bulk load. It imports the parser and nothing of Spark or the warehouse.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from livemart.land.records.judge import Group

PICKLED_PARTS = "part binary"


class Part(Protocol):
    """A part of a delivery that can be read by itself. Picklable for Spark's workers."""

    def read(self, group: Group) -> Iterator[pa.Table]:
        """Yield its records as tables of `group.judged`: good and refused ones."""
        ...


@dataclass(frozen=True, slots=True)
class ParseParts:
    """Parses pickled parts (rows of `PICKLED_PARTS`) to batches of `group.judged`."""

    group: Group

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for content in batch.column(0).to_pylist():
                part: Part = pickle.loads(content)
                for table in part.read(self.group):
                    yield from table.to_batches()
