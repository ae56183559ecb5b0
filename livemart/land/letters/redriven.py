"""Marks dead letters whose records were handed over again.

Used by a re-drive, which marks a letter before its record is handed over, and by whoever shows
letters. The marks of a source schema are a table of their own, so that letters stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.records.schema import TIMESTAMP

MARKS_TABLE = "_redriven_letters"
# What tells a letter from all others; a new epoch counts its batches anew.
LETTER_KEY = ("source", "origin", "code", "batch_id", "landed_at")
MARKS = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("origin", pa.string()),
        pa.field("code", pa.string()),
        pa.field("batch_id", pa.int64()),
        pa.field("landed_at", TIMESTAMP),
        pa.field("redriven_at", TIMESTAMP),
        pa.field("file", pa.string()),
    ]
)


def marks_relation(letters: str) -> str:
    """Return the table of marks beside a table of letters.

    >>> marks_relation("bronze._dead_letters")
    'bronze._redriven_letters'
    """
    return f"{letters.partition('.')[0]}.{MARKS_TABLE}"


def letter_key(letter: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells a letter from all others."""
    return tuple(letter[name] for name in LETTER_KEY)


def unmarked(warehouse: Warehouse, relation: str, letters: pa.Table) -> pa.Table:
    """Return the letters of a table that were not handed over again; they have `LETTER_KEY`."""
    marks = marks_relation(relation)
    if not letters.num_rows or not warehouse.exists(marks):
        return letters
    marked = warehouse.read(marks, columns=list(LETTER_KEY))
    return letters.join(marked, keys=list(LETTER_KEY), join_type="left anti").combine_chunks()


def mark(
    warehouse: Warehouse,
    relation: str,
    letters: Sequence[Mapping[str, Any]],
    file: str,
    redriven_at: datetime,
) -> None:
    """Mark letters of a table, at most once for a file.

    Args:
        warehouse: the tables.
        relation: the table of letters.
        letters: with the columns of `LETTER_KEY`.
        file: which hands their records over.
        redriven_at: when.
    """
    marks = marks_relation(relation)
    if not warehouse.exists(marks):
        warehouse.create(marks, MARKS)
    rows = [
        {name: letter[name] for name in LETTER_KEY} | {"redriven_at": redriven_at, "file": file}
        for letter in letters
    ]
    tag = Tag(f"redrive/{marks}/{file}", 1)
    warehouse.commit(marks, as_added(pa.Table.from_pylist(rows, schema=MARKS)), tag)
