"""Finds dead letters by source, reason and time, in all their tables.

Used by whatever shows, exports or re-drives letters. Those whose records were handed over again are
left out, unless they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.dataset as pds

from livemart.delta.warehouse import Warehouse
from livemart.land.letters.dead_letters import LETTERS, TABLE
from livemart.land.letters.redriven import LETTER_KEY, MOST_KEYS, unmarked
from livemart.land.records.schema import TIMESTAMP


@dataclass(frozen=True, slots=True)
class LetterChoice:
    """The letters that a command is about; None stands for all."""

    source: str | None = None
    """A relation."""
    reason: str | None = None
    """A `LetterReason`."""
    since: datetime | None = None
    """The first moment at which the letter may have been written, UTC."""
    until: datetime | None = None
    """The moment before which it was written, UTC."""
    with_redriven: bool = False
    """Includes letters whose records were handed over again."""

    def condition(self) -> pds.Expression:
        """Return the condition that a row must fulfil."""
        chosen = pds.scalar(True)
        if self.source is not None:
            chosen &= pds.field("source") == self.source
        if self.reason is not None:
            chosen &= pds.field("reason") == self.reason
        if self.since is not None:
            chosen &= pds.field("landed_at") >= pa.scalar(self.since, TIMESTAMP)
        if self.until is not None:
            chosen &= pds.field("landed_at") < pa.scalar(self.until, TIMESTAMP)
        return chosen

    def is_about(self, source: str, reason: str) -> bool:
        """Return whether it leaves letters of this source and reason in."""
        return self.source in (None, source) and self.reason in (None, reason)


def letter_relations(warehouse: Warehouse) -> list[str]:
    """Return the tables of dead letters, one for each schema of sources."""
    return warehouse.relations(TABLE)


def letter_batches(
    warehouse: Warehouse,
    relation: str,
    choice: LetterChoice,
    columns: Sequence[str] = LETTER_KEY,
) -> Iterator[pa.Table]:
    """Yield the chosen letters of a table, a part at a time: there may be millions.

    `columns` are at least those of `LETTER_KEY`.
    """
    for letters in warehouse.files(relation).batches(columns, choice.condition(), MOST_KEYS):
        yield letters if choice.with_redriven else unmarked(warehouse, relation, letters)


def read_letters(
    warehouse: Warehouse,
    relation: str,
    choice: LetterChoice,
    columns: Sequence[str] = LETTER_KEY,
) -> pa.Table:
    """Return the chosen letters of a table at once; see `letter_batches`."""
    none = pa.schema([LETTERS.field(name) for name in columns]).empty_table()
    return pa.concat_tables([none, *letter_batches(warehouse, relation, choice, columns)])


def whole_letters(warehouse: Warehouse, choice: LetterChoice) -> Iterator[tuple[str, pa.Table]]:
    """Yield each table's chosen letters with all their columns."""
    for relation in letter_relations(warehouse):
        letters = read_letters(warehouse, relation, choice, LETTERS.names)
        if letters.num_rows:
            yield relation, letters
