"""Decides how the records of some keys change a table, given all that it stores of these keys.

The one upsert of landing: a small batch calls it once in the driver, a bulk load for ranges of keys
in Spark's workers. It takes rows and gives positions, and knows neither tables nor Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from livemart.land.records.schema import LANDING_FIELDS
from livemart.land.upsert.event_time import find_moved
from livemart.land.upsert.kept_values import as_recorded, keep_values
from livemart.land.upsert.winners import KeyVersions, decide
from livemart.project.graph import RowRules, SourceTable
from livemart.project.landing_columns import KEPT, RESCUED

_NOT_COMPARED = {KEPT, *(field.name for field in LANDING_FIELDS)} - {RESCUED}


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
