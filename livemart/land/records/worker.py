"""Parses parts of a delivery in Spark's Python workers.

Used by the staging of a bulk load. It imports the parser and nothing of Spark or the warehouse.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from livemart.errors import LivemartError
from livemart.land.records.judge import Group

# The input and the output of a worker, as Spark's DDL.
NUMBERED_PARTS = "number bigint, part binary"
STAGED_PARTS = "number bigint, records bigint, failure binary"
_STAGED = pa.schema(
    [("number", pa.int64()), ("records", pa.int64()), ("failure", pa.binary())],
)


class Part(Protocol):
    """A part of a delivery that can be read by itself. Picklable for Spark's workers."""

    def read(self, group: Group) -> Iterator[pa.Table]:
        """Yield its records as tables of `group.judged`: good and refused ones."""
        ...


@dataclass(frozen=True, slots=True)
class StageParts:
    """Parses pickled parts (rows of `NUMBERED_PARTS`), each to one Parquet file of `folder`.

    The worker writes the file itself: its rows need not pass through the JVM. A part that is tried
    twice has one file all the same. Gives rows of `STAGED_PARTS`; `failure` is the pickled error of
    a source that cannot be read, which Spark would hand to the driver as text alone.
    """

    group: Group
    folder: Path

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                part: Part = pickle.loads(row["part"])
                staged = {"number": row["number"], "records": 0, "failure": None}
                try:
                    tables = part.read(self.group)
                    staged["records"] = stage_tables(
                        self.folder, row["number"], self.group.judged, tables
                    )
                except (LivemartError, OSError) as error:
                    staged["failure"] = pickle.dumps(error)
                yield pa.RecordBatch.from_pylist([staged], schema=_STAGED)


def stage_tables(folder: Path, number: int, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """Write rows as the file of one task, in place of one of an earlier try; return how many."""
    # Spark passes over names that begin with a dot.
    draft = folder / f".{number}.{uuid.uuid4().hex}"
    count = 0
    with pq.ParquetWriter(draft, schema) as writer:
        for table in tables:
            writer.write_table(table)
            count += table.num_rows
    draft.replace(folder / f"part-{number}.parquet")
    return count
