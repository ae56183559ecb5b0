"""Decides how the records of some keys change a table, given all that it stores of these keys.

The one upsert of landing: a small batch calls it once in the driver, a bulk load for ranges of keys
in Spark's workers. It takes rows and gives positions, and knows neither tables nor Spark.

A change may leave values of a row as they were, and its record does not hold them. Such a value is
taken from the newest version before that holds it, and the row says from which (`_kept_values`). So
a version that arrives late in between can still give it, and the order of arrival does not matter.
A delete leaves no values. The value of a field that no column names is a rescued one.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import row_codes
from livemart.land.reasons import LetterReason
from livemart.land.records.schema import LANDING_FIELDS
from livemart.land.records.untyped_values import first_name
from livemart.project.graph import RowRules, SourceTable
from livemart.project.landing_columns import KEPT, RESCUED, SEQUENCE

_NOT_COMPARED = {KEPT, *(field.name for field in LANDING_FIELDS)} - {RESCUED}
Kept = Mapping[str, str | None]
MOVED = LetterReason.EVENT_TIME_MOVED


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """The change that arrived rows make. Rows that are in none of these are superseded."""

    is_refused: np.ndarray
    """True for each arrived row that moves the time of its key."""
    written: pa.Table
    """Rows that become the row of their key."""
    deleting: pa.Table
    """Arrived deletes to remember."""
    removed: pa.Table
    """Stored rows that are replaced or deleted."""
    forgotten: pa.Table
    """Remembered deletes of keys that are deleted once more."""


@dataclass(frozen=True, slots=True)
class Upsert:
    """The rules of a source with keys. `fixed_time` is the event time if it is promised to stay."""

    rules: RowRules
    fixed_time: str | None

    @classmethod
    def of(cls, source: SourceTable) -> Upsert:
        """Return the rules that a source declares."""
        rules = source.row_rules
        return cls(rules, source.event_time if rules.event_time_is_fixed else None)

    def change(
        self, stored: pa.Table, remembered: pa.Table, arrived: pa.Table, is_delete: np.ndarray
    ) -> KeyChanges:
        """Return the changes by arrived rows.

        Args:
            stored: rows of the arrived keys before the batch, in the columns of `arrived`.
            remembered: deletes remembered of these keys: keys and sequence among the columns.
            arrived: good records as rows of the landed table, in file and line order.
            is_delete: for each of them, whether it deletes its key.
        """
        is_moved = np.zeros(len(arrived), dtype=bool)
        if self.fixed_time is not None:
            is_moved = find_moved(self.rules, self.fixed_time, stored, arrived, is_delete)
        positions = np.flatnonzero(~is_moved)
        rows = arrived.take(pa.array(positions)) if is_moved.any() else arrived
        keys, sequence_by = self.rules.keys, self.rules.sequence_by
        names = tuple(name for name in rows.column_names if name not in _NOT_COMPARED)
        recorded = as_recorded(stored)
        versions = KeyVersions(
            keys, sequence_by, names, recorded, remembered, rows, is_delete[positions]
        )
        winners = decide(versions)
        written, removed = rows.take(pa.array(winners.written)), winners.removed
        if KEPT in rows.column_names:
            written, removed = keep_values(versions, stored, winners)
        return KeyChanges(
            is_moved,
            written,
            rows.take(pa.array(winners.deleting)),
            stored.take(pa.array(removed)),
            remembered.take(pa.array(winners.forgotten)),
        )


def as_recorded(stored: pa.Table) -> pa.Table:
    """Return stored rows as their records were: without the values that were kept."""
    if KEPT not in stored.column_names or _keeps_nothing(stored):
        return stored
    names_by_row = [dict(names or ()) for names in stored.column(KEPT).to_pylist()]
    all_names = {name for names in names_by_row for name in names}
    for name in sorted(all_names.intersection(stored.column_names)):
        # A position that is NULL takes NULL.
        positions = [None if name in names else row for row, names in enumerate(names_by_row)]
        column = stored.column(name).take(pa.array(positions, pa.int64()))
        stored = _with_column(stored, name, column)
    rescued = [
        _without(fields, names)
        for fields, names in zip(_rescued(stored), names_by_row, strict=True)
    ]
    return _with_rescued(stored, rescued)


def keep_values(
    versions: KeyVersions, stored: pa.Table, winners: Winners
) -> tuple[pa.Table, np.ndarray]:
    """Return the rows that are written, with the values that they keep, and which are removed.

    Args:
        versions: all that is known of the keys.
        stored: its stored rows, with the values that they keep.
        winners: of the versions.

    Returns:
        The winners' rows, and stored rows that keep other values than before; positions in
        `stored`.
    """
    arrived = versions.arrived
    if _keeps_nothing(stored) and _keeps_nothing(arrived):
        return arrived.take(pa.array(winners.written)), winners.removed
    history = _Versions(versions, stored)
    written = winners.written + len(stored) + len(versions.remembered)
    standing = np.setdiff1d(np.arange(len(stored)), winners.removed)
    tops = [top for top in np.concatenate([written, standing]).tolist() if history.unsent[top]]
    values = {top: history.kept_by(top) for top in tops}
    moved = [
        top for top in standing.tolist() if top in values and values[top][0] != history.unsent[top]
    ]
    positions = np.array([*written.tolist(), *moved], dtype=np.int64)
    removed = np.array(sorted([*winners.removed.tolist(), *moved]), dtype=np.int64)
    return history.rows_at(positions, values), removed


def _keeps_nothing(rows: pa.Table) -> bool:
    return bool(rows.column(KEPT).null_count == len(rows))


class _Source(NamedTuple):
    """A place that holds the value of a column; the newest sorts last."""

    sequence: str
    is_delete: bool
    text: str
    position: int


class _Versions:
    """All versions of the keys in one table: stored, remembered as deleted, arrived."""

    def __init__(self, versions: KeyVersions, stored: pa.Table) -> None:
        parts = [stored, versions.remembered, versions.arrived]
        every = pa.concat_tables(parts, promote_options="default")
        self._rows = every.select(versions.arrived.column_names).combine_chunks()
        self.unsent: list[Kept] = [
            dict(names or ()) for names in self._rows.column(KEPT).to_pylist()
        ]
        self._rescued = _rescued(self._rows)
        self._sequences: list[Any] = self._rows.column(SEQUENCE).to_pylist()
        known_deletes = np.repeat([False, True], [len(stored), len(versions.remembered)])
        self._is_delete = np.concatenate([known_deletes, versions.is_delete])
        columns = [self._rows.column(name) for name in versions.keys]
        self._keys = row_codes(columns, len(self._rows)).tolist()
        self._of_key: dict[int, list[int]] = {}
        for position, key in enumerate(self._keys):
            self._of_key.setdefault(key, []).append(position)

    def kept_by(self, top: int) -> tuple[Kept, dict[str, int | None]]:
        """Return sequence and position of each value that the newest version of a key keeps."""
        names: dict[str, str | None] = {}
        positions: dict[str, int | None] = {}
        for name in self.unsent[top]:
            sources = [
                source
                for position in self._of_key[self._keys[top]]
                if (source := self._source(name, position, top)) is not None
            ]
            newest = max(sources, default=None)
            names[name] = newest.sequence if newest else None
            positions[name] = newest.position if newest else None
        return names, positions

    def _source(self, name: str, position: int, top: int) -> _Source | None:
        """Return the value that a version has for a field of a newer one, None if it has none."""
        unsent = self.unsent[position]
        sequence = unsent[name] if name in unsent else self._sequences[position]
        if sequence is None or sequence > self._sequences[top]:
            return None
        is_column = name in self._rows.column_names
        value = self._rows.column(name)[position].as_py() if is_column else None
        text = canonical_text({"column": value, "rescued": self._rescued_of(name, position)})
        return _Source(sequence, bool(self._is_delete[position]), text, position)

    def _rescued_of(self, name: str, position: int) -> dict[str, str | None]:
        """Return what is rescued of a field in a version: all of it, or fields within it."""
        fields = self._rescued[position]
        return {path: value for path, value in fields.items() if first_name(path) == name}

    def rows_at(
        self, positions: np.ndarray, values: Mapping[int, tuple[Kept, Mapping[str, int | None]]]
    ) -> pa.Table:
        """Return the rows at some positions, with the values that they keep."""
        rows = self._rows.take(pa.array(positions, pa.int64()))
        changed = [values.get(top) for top in positions.tolist()]
        all_names = {name for change in changed if change for name in change[0]}
        for name in sorted(all_names.intersection(rows.column_names)):
            sources = [
                change[1][name] if change and name in change[1] else top
                for top, change in zip(positions.tolist(), changed, strict=True)
            ]
            column = self._rows.column(name).take(pa.array(sources, pa.int64()))
            rows = _with_column(rows, name, column)
        if not all_names:
            return rows
        noted = [sorted(change[0].items()) if change else None for change in changed]
        rows = _with_column(rows, KEPT, pa.array(noted, rows.schema.field(KEPT).type))
        rescued = []
        for top, change in zip(positions.tolist(), changed, strict=True):
            fields = _without(self._rescued[top], change[0] if change else ())
            for name, source in (change[1] if change else {}).items():
                if source is not None:
                    fields |= self._rescued_of(name, source)
            rescued.append(fields)
        return _with_rescued(rows, rescued)


def _rescued(rows: pa.Table) -> list[dict[str, str | None]]:
    """Return the rescued fields of each row."""
    return [dict(fields or ()) for fields in rows.column(RESCUED).to_pylist()]


def _without(fields: Mapping[str, str | None], names: Collection[str]) -> dict[str, str | None]:
    """Return rescued fields without those of some names, and those within these."""
    return {path: value for path, value in fields.items() if first_name(path) not in names}


def _with_rescued(rows: pa.Table, rescued: Sequence[Mapping[str, str | None]]) -> pa.Table:
    maps = [sorted(fields.items()) or None for fields in rescued]
    return _with_column(rows, RESCUED, pa.array(maps, rows.schema.field(RESCUED).type))


def _with_column(rows: pa.Table, name: str, column: Any) -> pa.Table:
    position = rows.schema.get_field_index(name)
    return rows.set_column(position, rows.schema.field(position), column)


@dataclass(frozen=True, slots=True)
class KeyVersions:
    """All that is known of some keys: stored rows, remembered deletes, arrived rows.

    `stored` and `arrived` hold `columns` (keys and sequence among them), `remembered` keys and
    sequence only. `is_delete`: for each arrived row, whether it deletes its key.
    """

    keys: tuple[str, ...]
    sequence_by: tuple[str, ...]
    columns: tuple[str, ...]
    stored: pa.Table
    remembered: pa.Table
    arrived: pa.Table
    is_delete: np.ndarray


@dataclass(frozen=True, slots=True)
class Winners:
    """Positions of the rows that change. Rows that are in none of these are superseded."""

    written: np.ndarray
    """Arrived rows that become the row of their key."""
    deleting: np.ndarray
    """Arrived deletes to remember."""
    removed: np.ndarray
    """Stored rows that are replaced or deleted."""
    forgotten: np.ndarray
    """Remembered deletes of keys that are deleted once more."""


def decide(versions: KeyVersions) -> Winners:
    """Return the changes by the arrived versions: the same whatever the order, or the repeats.

    The newest by sequence wins; at an equal sequence a delete, then the greater canonical row text.
    Being a maximum, it can be taken over any grouping of the versions.
    """
    names = list(dict.fromkeys([*versions.keys, *versions.sequence_by]))
    sizes = [len(versions.stored), len(versions.remembered), len(versions.arrived)]
    every = pa.concat_tables(
        [part.select(names) for part in (versions.stored, versions.remembered, versions.arrived)]
    ).combine_chunks()
    origin = np.repeat(np.arange(3), sizes)
    is_delete = np.concatenate(
        [np.zeros(sizes[0], bool), np.ones(sizes[1], bool), versions.is_delete]
    )
    key = row_codes([every.column(name) for name in versions.keys], len(every))
    ranks = [_ranks(every.column(name)) for name in versions.sequence_by]

    # Last of its key in this order: the greatest; what is known already beats a repeat of it.
    order = np.lexsort((-np.arange(len(key)), is_delete, *reversed(ranks), key))
    last = np.flatnonzero(np.append(np.diff(key[order]) != 0, True)) if len(order) else order
    best = order[last]
    best = _break_ties(versions, best, key, [*ranks, is_delete], sizes)

    arrived = best[origin[best] == 2]
    offset = sizes[0] + sizes[1]
    deleting = arrived[is_delete[arrived]]
    written = arrived[~is_delete[arrived]]
    removed = np.flatnonzero(np.isin(key[: sizes[0]], key[arrived]))
    forgotten = np.flatnonzero(np.isin(key[sizes[0] : offset], key[deleting]))
    return Winners(np.sort(written - offset), np.sort(deleting - offset), removed, forgotten)


def canonical_text(row: Mapping[str, Any]) -> str:
    """Return the text that orders different rows of one key and sequence.

    NULLs are left out and names sorted, so a column that drift adds later does not change it.

    >>> canonical_text({"status": "placed", "amount": Decimal("1.50"), "note": None})
    '{"amount":"1.50","status":"placed"}'
    """
    present = {name: value for name, value in row.items() if value is not None}
    return json.dumps(
        present, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain
    )


def _break_ties(
    versions: KeyVersions,
    best: np.ndarray,
    key: np.ndarray,
    ranks: Sequence[np.ndarray],
    sizes: Sequence[int],
) -> np.ndarray:
    """Among rows of one key and sequence take the greatest text; repeats change nothing."""
    if len(best) == len(key):
        return best
    top_of = np.full(int(key.max()) + 1, -1)
    top_of[key[best]] = best
    tops = top_of[key]
    is_tied = np.ones(len(key), dtype=bool)
    for rank in ranks:
        is_tied &= rank == rank[tops]
    is_delete = ranks[-1].astype(bool)
    is_tied &= ~is_delete
    tied = np.flatnonzero(is_tied & (np.bincount(key, weights=is_tied)[key] > 1))
    if not len(tied):
        return best
    rows = _rows_at(versions, tied, sizes)
    # Which of two equal rows arrived first must not matter, so they are two unless identical.
    content = row_codes(rows.columns, len(rows), identical=True)
    reference = np.searchsorted(tied, tops[tied])
    differing = np.isin(key[tied], key[tied][content != content[reference]])
    greatest: dict[int, tuple[str, int]] = {}
    for index in np.flatnonzero(differing).tolist():
        position = int(tied[index])
        text = canonical_text(rows.slice(index, 1).to_pylist()[0])
        leader = greatest.get(int(key[position]))
        if leader is None or text > leader[0]:
            greatest[int(key[position])] = (text, position)
    for code, (_, position) in greatest.items():
        top_of[code] = position
    chosen: np.ndarray = top_of[key[best]]
    return chosen


def _rows_at(versions: KeyVersions, positions: np.ndarray, sizes: Sequence[int]) -> pa.Table:
    """Return stored and arrived rows by their position among all versions."""
    columns = list(versions.columns)
    # Remembered deletes are between the two, and are not among these.
    stored = positions[positions < sizes[0]]
    arrived = positions[positions >= sizes[0] + sizes[1]] - sizes[0] - sizes[1]
    parts = ((versions.stored, stored), (versions.arrived, arrived))
    picked = [rows.select(columns).take(pa.array(places, pa.int64())) for rows, places in parts]
    return pa.concat_tables(picked).combine_chunks()


def _ranks(column: pa.ChunkedArray) -> np.ndarray:
    """Return integers in the order of a column's values, equal for equal ones."""
    ranks: np.ndarray = pc.rank(column, tiebreaker="dense").to_numpy()
    return ranks.astype(np.int64)


def _plain(value: object) -> object:
    match value:
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case _:
            raise TypeError(f"{type(value)} in a row")


def moved_detail(source: SourceTable) -> str:
    """Return the reason against a record that moves its key's event time."""
    return f"{source.event_time} differs from the key's, which is promised to be fixed"


def find_moved(
    rules: RowRules, event_time: str, stored: pa.Table, rows: pa.Table, is_delete: np.ndarray
) -> np.ndarray:
    """Return which of `rows` give their key another event time (boolean array).

    Such a row is a dead letter (ADR-0009). A key's time is the stored one. For a key that is not
    stored, it is that of its lowest sequence in the batch: the earliest of several, none last, so
    that order never matters. Deletes need no time.
    """
    names = list(dict.fromkeys([*rules.keys, event_time, *rules.sequence_by]))
    every = pa.concat_tables([stored.select(names), rows.select(names)]).combine_chunks()
    split = stored.num_rows
    codes = row_codes([every.column(name) for name in rules.keys], len(every))
    times = row_codes([every.column(event_time)], len(every))
    order = list(dict.fromkeys([*rules.sequence_by, event_time]))
    is_row = np.concatenate([np.ones(split, bool), ~is_delete])
    by_sequence = pc.sort_indices(
        every.select(order), sort_keys=[(name, "ascending") for name in order]
    ).to_numpy()
    stored_first = by_sequence[np.argsort(by_sequence >= split, kind="stable")]
    ordered = stored_first[is_row[stored_first]]
    _, first = np.unique(codes[ordered], return_index=True)
    reference = np.full(int(codes.max(initial=0)) + 1, -2, dtype=np.int64)
    reference[codes[ordered[first]]] = times[ordered[first]]
    moved: np.ndarray = (times != reference[codes])[split:] & ~is_delete
    return moved
