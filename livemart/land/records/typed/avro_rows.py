"""Reads the records of an Avro file by fastavro.

Used for each such file. Its records are typed by the file's own schema; the declared types decide
which values fit a column, as for every format.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from livemart.land.records.judge import Chunk, Group, malformed
from livemart.land.records.runs import Span
from livemart.land.records.typed.avro_values import with_own_types
from livemart.land.records.typed.calendars import calendar_of
from livemart.land.records.typed.typed_records import read_typed_records
from livemart.project.record_logs.avro_types import parse_schemas

_RUN_RECORDS = 8_192
_MAGIC = b"Obj\x01"
_SCHEMA = "avro.schema"
# As the specification of Avro has it.
_HEADER = {
    "type": "record",
    "name": "org.apache.avro.file.Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": len(_MAGIC)}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
    ],
}


def read_avro(group: Group, path: Path, span: Span) -> Iterator[Chunk]:
    """Yield the records of a file, numbered from 1; all behind a broken one is one refusal.

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
            content: Any = _with_own_types(file)
            # A text that is no UTF-8 is refused later, by its place.
            for record in fastavro.reader(content, handle_unicode_errors="surrogateescape"):
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


class _Content:
    """A file with another header than its own."""

    def __init__(self, header: bytes, rest: BinaryIO) -> None:
        self._header = io.BytesIO(header)
        self._rest = rest

    def read(self, size: int) -> bytes:
        """Return so many bytes, fewer at the end."""
        begin = self._header.read(size)
        return begin if len(begin) == size else begin + self._rest.read(size - len(begin))


def _with_own_types(file: BinaryIO) -> _Content:
    """Return a file in whose schema logical types have our names.

    Raises:
        ValueError: its header is that of no such file, or its schema sets no end to a record.
        Exception: whatever a wrong header leads fastavro to.
    """
    import fastavro

    header: Any = fastavro.schemaless_reader(file, _HEADER, None)
    meta = header["meta"]
    if header["magic"] != _MAGIC:
        raise ValueError("it does not begin like an Avro file")
    notes = {name: text.decode(errors="replace") for name, text in meta.items()}
    schema = with_own_types(notes[_SCHEMA], calendar_of(notes))
    parse_schemas([schema], are_items=True)
    meta[_SCHEMA] = schema.encode()
    written = io.BytesIO()
    fastavro.schemaless_writer(written, _HEADER, header)
    return _Content(written.getvalue(), file)
