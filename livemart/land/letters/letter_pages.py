"""Shows dead letters a page at a time, under counts by source and reason.

Used by `dead-letters list` and `show`, and by the server. There may be millions: they pass through
memory a part at a time, without their records, and only those of the page are read whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from livemart.delta.warehouse import Warehouse
from livemart.land.letters.chosen_letters import LetterChoice, letter_batches, letter_relations
from livemart.land.letters.dead_letters import LETTERS
from livemart.land.letters.redriven import LETTER_KEY, is_one_of, letter_key, marks_of, near
from livemart.land.records.judge import KEPT_RECORD_BYTES

_KEYS = pa.schema([LETTERS.field(name) for name in LETTER_KEY])
# The newest first, and no two letters of one table at the same place.
_ORDER = {
    "landed_at": "descending",
    "batch_id": "descending",
    "source": "ascending",
    "origin": "ascending",
    "reason": "ascending",
}
# The facts about letters by source and reason, and about the counts of parts of them.
_OF_KEYS = [("landed_at", "count"), ("landed_at", "min"), ("landed_at", "max")]
_OF_COUNTS = [("letters", "sum"), ("first_seen", "min"), ("last_seen", "max")]
# 8 KiB of each record are kept.
_MOST_RECORDS = 1_024

# The values of `_ORDER`, in its order.
LetterPlace = tuple[datetime, int, str, str, str]


@dataclass(frozen=True, slots=True)
class LetterCount:
    """How many letters of a source there are for a reason, and when the first and last landed."""

    source: str
    reason: str
    letters: int
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, as it is shown. Times are UTC."""

    source: str
    reason: str
    detail: str
    origin: str
    record: str | None
    """Its text; None for a whole file or range."""
    record_bytes: int | None
    """The size of the record as it arrived."""
    is_cut: bool
    """True if only the beginning of the record is kept."""
    batch_id: int
    landed_at: datetime
    redriven_at: datetime | None
    """When its record was handed over again."""
    redriven_in: str | None
    """The file in which it was handed over again."""


@dataclass(frozen=True, slots=True)
class LetterPage:
    """Some of the chosen letters, and the number of all."""

    counts: Sequence[LetterCount]
    """The counts of the chosen letters, by source and reason."""
    overview: Sequence[LetterCount]
    """The same for all sources and reasons in the span of time."""
    letters: Sequence[Letter]
    """The newest letters behind the place that was asked for."""
    last: LetterPlace | None
    """The place of the last letter on the page; None if no more follow."""

    @property
    def total(self) -> int:
        """How many letters are chosen, on this page or not."""
        return sum(count.letters for count in self.counts)


def read_letter_page(
    warehouse: Warehouse,
    choice: LetterChoice,
    *,
    limit: int,
    after: LetterPlace | None = None,
) -> LetterPage:
    """Return counts of the chosen letters, and the newest of those that come behind `after`."""
    span = replace(choice, source=None, reason=None)
    counts = [_counted(_KEYS.empty_table(), _OF_KEYS)]
    newest = {relation: _KEYS.empty_table() for relation in letter_relations(warehouse)}
    for relation in newest:
        for keys in letter_batches(warehouse, relation, span):
            counts.append(_counted(keys, _OF_KEYS))
            if limit:
                chosen = _behind(keys.filter(choice.condition()), after)
                # One more tells whether others follow.
                newest[relation] = _first([newest[relation], chosen], limit + 1)
    picked = _first([_KEYS.empty_table(), *newest.values()], limit + 1)
    page = picked.slice(0, limit)
    letters = {key: it for name in newest for key, it in _whole(warehouse, name, page).items()}
    places = [_place(row) for row in page.to_pylist()]
    totals = _counted(pa.concat_tables(counts), _OF_COUNTS)
    totals = totals.sort_by([("source", "ascending"), ("reason", "ascending")])
    overview = [LetterCount(**row) for row in totals.to_pylist()]
    return LetterPage(
        counts=[count for count in overview if choice.is_about(count.source, count.reason)],
        overview=overview,
        # One that was taken back meanwhile is not there any more.
        letters=[letters[key] for row in page.to_pylist() if (key := letter_key(row)) in letters],
        last=places[-1] if places and picked.num_rows > limit else None,
    )


def _counted(letters: pa.Table, aggregates: Sequence[tuple[str, str]]) -> pa.Table:
    """Return a row for each source and reason: how many letters, the first and the last moment."""
    return (
        letters.group_by(["source", "reason"])
        .aggregate(list(aggregates))
        .rename_columns(["source", "reason", "letters", "first_seen", "last_seen"])
    )


def _behind(keys: pa.Table, after: LetterPlace | None) -> pa.Table:
    """Return the letters that come after a place."""
    if after is None:
        return keys
    condition = pc.scalar(False)
    for (name, order), value in reversed(list(zip(_ORDER.items(), after, strict=True))):
        column, bound = pc.field(name), pa.scalar(value, _KEYS.field(name).type)
        is_later = column < bound if order == "descending" else column > bound
        condition = is_later | ((column == bound) & condition)
    return keys.filter(condition)


def _first(tables: Sequence[pa.Table], count: int) -> pa.Table:
    keys = pa.concat_tables(tables)
    return keys.take(pc.select_k_unstable(keys, min(count, len(keys)), list(_ORDER.items())))


def _place(row: Mapping[str, Any]) -> LetterPlace:
    return (row["landed_at"], row["batch_id"], row["source"], row["origin"], row["reason"])


def _whole(warehouse: Warehouse, relation: str, keys: pa.Table) -> dict[tuple[Any, ...], Letter]:
    """Return those of some letters that are in a table, by their key."""
    if not keys.num_rows:
        return {}
    marks = {letter_key(mark): mark for mark in marks_of(warehouse, relation, keys).to_pylist()}
    letters = {}
    for rows in warehouse.files(relation).batches(LETTERS.names, near(keys), _MOST_RECORDS):
        for row in rows.filter(is_one_of(rows, keys)).to_pylist():
            key, record = letter_key(row), row["record"]
            mark = marks.get(key, {})
            # Escapes can make the text of a part as long as the whole record.
            most = min(len((record or "").encode()), KEPT_RECORD_BYTES)
            letters[key] = Letter(
                **row,
                is_cut=record is not None and (row["record_bytes"] or 0) > most,
                redriven_at=mark.get("redriven_at"),
                redriven_in=mark.get("file"),
            )
    return letters
