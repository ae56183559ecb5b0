"""Keeps the values that a change of a row left as they were, where its record does not hold them.

Used by the upsert of sources with an envelope. Such a value is taken from the newest version before
that holds it, and the row says from which (`_kept_values`). So a version that arrives late in
between can still give it, and the order of arrival does not matter. A delete leaves no values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from livemart.arrow.bags import row_codes
from livemart.land.upsert.winners import KeyVersions, Winners, canonical_text
from livemart.project.landing_columns import KEPT, SEQUENCE

Kept = Mapping[str, str | None]


def as_recorded(stored: pa.Table) -> pa.Table:
    """Return stored rows as their records were: without the values that were kept."""
    if KEPT not in stored.column_names or _keeps_nothing(stored):
        return stored
    names_by_row = [dict(names or ()) for names in stored.column(KEPT).to_pylist()]
    for name in sorted({name for names in names_by_row for name in names}):
        # A position that is NULL takes NULL.
        positions = [None if name in names else row for row, names in enumerate(names_by_row)]
        column = stored.column(name).take(pa.array(positions, pa.int64()))
        stored = _with_column(stored, name, column)
    return stored


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
        """Return the value that a version has for a column of a newer one, None if it has none."""
        unsent = self.unsent[position]
        sequence = unsent[name] if name in unsent else self._sequences[position]
        if sequence is None or sequence > self._sequences[top]:
            return None
        value = self._rows.column(name)[position].as_py()
        text = canonical_text({name: value})
        return _Source(sequence, bool(self._is_delete[position]), text, position)

    def rows_at(
        self, positions: np.ndarray, values: Mapping[int, tuple[Kept, Mapping[str, int | None]]]
    ) -> pa.Table:
        """Return the rows at some positions, with the values that they keep."""
        rows = self._rows.take(pa.array(positions, pa.int64()))
        changed = [values.get(top) for top in positions.tolist()]
        names = sorted({name for change in changed if change for name in change[0]})
        for name in names:
            sources = [
                change[1][name] if change and name in change[1] else top
                for top, change in zip(positions.tolist(), changed, strict=True)
            ]
            column = self._rows.column(name).take(pa.array(sources, pa.int64()))
            rows = _with_column(rows, name, column)
        if names:
            noted = [sorted(change[0].items()) if change else None for change in changed]
            rows = _with_column(rows, KEPT, pa.array(noted, rows.schema.field(KEPT).type))
        return rows


def _with_column(rows: pa.Table, name: str, column: Any) -> pa.Table:
    position = rows.schema.get_field_index(name)
    return rows.set_column(position, rows.schema.field(position), column)
