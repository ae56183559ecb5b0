"""Parses parts of a delivery in Spark's Python workers.

Used by the staging of a bulk load. It imports the parser, and nothing of Spark or the tables.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from livemart.errors import ConfigError, LivemartError
from livemart.land.records.judge import Group
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

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
    folder: StoragePlace

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


def stage_tables(
    folder: StoragePlace, number: int, schema: pa.Schema, tables: Iterable[pa.Table]
) -> int:
    """Write rows as the file of one task, in place of one of an earlier try; return how many."""
    name, filesystem = f"part-{number}.parquet", open_storage(folder).filesystem()
    # Spark passes over names that begin with a dot.
    draft = f".{number}.{uuid.uuid4().hex}"
    count = 0
    with pq.ParquetWriter(draft, schema, filesystem=filesystem) as writer:
        for table in tables:
            writer.write_table(table)
            count += table.num_rows
    filesystem.move(draft, name)
    return count


def require_staged(folder: StoragePlace, records: int) -> None:
    """Check that this machine sees the rows that Spark's workers have written to a folder.

    Raises:
        ConfigError: EXECUTOR_UNFIT.
    """
    storage = open_storage(folder)
    names = [name for name in storage.names() if name.endswith(".parquet")]
    filesystem = storage.filesystem()
    seen = sum(pq.read_metadata(name, filesystem=filesystem).num_rows for name in names)
    if seen != records:
        raise ConfigError(
            "EXECUTOR_UNFIT",
            f"{folder}: found {seen:,} of the {records:,} records that executors have written; "
            "on other machines, they may have another folder of this name",
            hint="let all machines have the warehouse at the same path, or put it into a bucket",
        )
