"""Marks dead letters that are done: handed over again, or dismissed.

Used by a re-drive, which marks a letter before its record is handed over, and by the pages and
commands that show letters. Upkeep forgets those that were done long ago. The marks of a source
schema are a separate table, so that letters stay as they were.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds

from livemart.arrow.bags import is_member
from livemart.arrow.change_sets import as_added, as_removed
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters.dead_letters import LETTERS
from livemart.land.records.schema import TIMESTAMP

MARKS_TABLE = "_redriven_letters"
# Letters with their records, of up to 8 KiB each.
_FORGOTTEN_AT_ONCE = 4_096
# Without their records, so many letters are some 10 MiB.
MOST_KEYS = 65_536
# These columns tell a letter from all others; a new epoch counts its batches from 0.
LETTER_KEY = ("source", "origin", "reason", "batch_id", "landed_at")
MARKS = pa.schema(
    [
        *(LETTERS.field(name) for name in LETTER_KEY),
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
    """Return the identity of a letter."""
    return tuple(letter[name] for name in LETTER_KEY)


def is_one_of(rows: pa.Table, letters: pa.Table) -> pa.Array:
    """Return, for each row, whether it is, or marks, one of the letters; all have `LETTER_KEY`."""
    return pa.array(is_member(*([rows[name] for name in LETTER_KEY] for rows in (rows, letters))))


def near(letters: pa.Table) -> pds.Expression:
    """Return a condition of few rows but these letters or their marks: it rules files out."""
    condition = pds.scalar(True)
    for name in ("landed_at", "origin"):
        bounds = pc.min_max(letters[name])
        condition &= (pds.field(name) >= bounds["min"]) & (pds.field(name) <= bounds["max"])
    return condition


def marks_of(warehouse: Warehouse, relation: str, letters: pa.Table) -> pa.Table:
    """Return the marks of letters (by `LETTER_KEY`) of a table, in the columns of `MARKS`."""
    marks, marked = marks_relation(relation), [MARKS.empty_table()]
    if letters.num_rows and warehouse.exists(marks):
        batches = warehouse.files(marks).batches(MARKS.names, near(letters), MOST_KEYS)
        marked += [rows.filter(is_one_of(rows, letters)) for rows in batches]
    return pa.concat_tables(marked)


def unmarked(warehouse: Warehouse, relation: str, letters: pa.Table) -> pa.Table:
    """Return the letters of a table that were not handed over again; they have `LETTER_KEY`."""
    marks = marks_of(warehouse, relation, letters)
    return letters.filter(pc.invert(is_one_of(letters, marks))) if marks.num_rows else letters


def mark(
    warehouse: Warehouse,
    relation: str,
    letters: Sequence[Mapping[str, Any]],
    file: str | None,
    redriven_at: datetime,
) -> None:
    """Mark letters (by `LETTER_KEY`) of a table, at most once for the file that hands them over.

    Without a file they are dismissed.
    """
    marks = marks_relation(relation)
    if not warehouse.exists(marks):
        warehouse.create(marks, MARKS)
    rows = [
        {name: letter[name] for name in LETTER_KEY} | {"redriven_at": redriven_at, "file": file}
        for letter in letters
    ]
    tag = Tag(f"redrive/{marks}/{file or uuid.uuid4()}", 1)
    warehouse.commit(marks, as_added(pa.Table.from_pylist(rows, schema=MARKS)), tag)


def forget_done(warehouse: Warehouse, relation: str, before: datetime) -> int:
    """Remove the letters of a table that were marked before a time; return how many.

    Others stay, however old. One that was cut off goes on with the marks that are left.

    Args:
        warehouse: the tables; no other process writes them.
        relation: the table of letters.
        before: UTC.
    """
    marks, count = marks_relation(relation), 0
    if not (warehouse.exists(relation) and warehouse.exists(marks)):
        return 0
    is_old = pds.field("redriven_at") < pa.scalar(before, TIMESTAMP)
    for done in warehouse.files(marks).batches(MARKS.names, is_old, _FORGOTTEN_AT_ONCE):
        letters = warehouse.read(relation, columns=LETTERS.names, filter=near(done))
        letters = letters.filter(is_one_of(letters, done))
        for table, rows in ((relation, letters), (marks, done)):
            if rows.num_rows:
                tag = Tag("livemart/forgotten", warehouse.version(table) + 1)
                warehouse.commit(table, as_removed(rows), tag)
        count += letters.num_rows
    return count
