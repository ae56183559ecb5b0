"""Reads the records of an Avro file by fastavro.

Used for each such file. Its records are typed by the file's own schema; what fits a column is told
by the declared types, as for every format.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from livemart.land.records.judge import Chunk, Group, malformed
from livemart.land.records.runs import Span
from livemart.land.records.typed_records import read_typed_records
from livemart.project.record_logs.avro_types import parse_schemas

_RUN_RECORDS = 8_192


def read_avro(group: Group, path: Path, span: Span) -> Iterator[Chunk]:
    """Yield the records of a file, numbered from 1; what is behind a broken one is one refusal.

    Args:
        group: columns of the records.
        path: where the file is.
        span: all of it: blocks of Avro do not say how many records are before them.
    """
    import fastavro

    if not path.stat().st_size:
        return
    number, run = 0, []
    problem: str | None = None
    with path.open("rb") as file:
        try:
            records = fastavro.reader(file)
            parse_schemas([records.metadata["avro.schema"]], are_items=True)
            for record in records:
                if not isinstance(record, dict):
                    raise ValueError("its records have no fields")
                number += 1
                run.append((number, record))
                if len(run) == _RUN_RECORDS:
                    yield read_typed_records(group, run)
                    run = []
        # fastavro raises whatever a broken byte leads to.
        except Exception as error:
            problem = f"from here on the file cannot be read: {type(error).__name__}: {error}"
    if run:
        yield read_typed_records(group, run)
    if problem is not None:
        yield malformed(group, [(number + 1, b"")], problem)
