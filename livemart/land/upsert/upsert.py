"""Decides what the records of some keys change, given all that is stored of these keys.

The one upsert of landing: a small batch calls it once in the driver, a bulk load for ranges of keys
in Spark's workers. It takes rows and gives positions, and knows neither tables nor Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from livemart.land.records.schema import LANDING_FIELDS
from livemart.land.upsert.event_time import find_moved
from livemart.land.upsert.winners import KeyVersions, Winners, decide
from livemart.project.graph import SourceTable, StreamSpec
from livemart.project.landing_columns import RESCUED

_NOT_COMPARED = {field.name for field in LANDING_FIELDS} - {RESCUED}


@dataclass(frozen=True, slots=True)
class Upsert:
    """The rules of a source with keys. `fixed_time` is the event time if it is promised to stay."""

    spec: StreamSpec
    fixed_time: str | None

    @classmethod
    def of(cls, source: SourceTable) -> Upsert:
        """Return the rules that a source declares."""
        spec = source.arrival
        return cls(spec, source.event_time if spec.event_time_is_fixed else None)

    def change(
        self, stored: pa.Table, remembered: pa.Table, arrived: pa.Table, is_delete: np.ndarray
    ) -> tuple[np.ndarray, Winners]:
        """Return which arrived rows are refused (they move their key's time), and what changes.

        Args:
            stored: rows of the arrived keys before the batch, in the columns of `arrived`.
            remembered: deletes remembered of these keys: keys and sequence among the columns.
            arrived: good records as rows of the landed table, in file and line order.
            is_delete: for each of them, whether it deletes its key.
        """
        is_moved = np.zeros(len(arrived), dtype=bool)
        if self.fixed_time is not None:
            is_moved = find_moved(self.spec, self.fixed_time, stored, arrived, is_delete)
        taken = np.flatnonzero(~is_moved)
        rows = arrived.take(pa.array(taken)) if is_moved.any() else arrived
        keys, sequence_by = self.spec.keys, self.spec.sequence_by
        names = tuple(name for name in rows.column_names if name not in _NOT_COMPARED)
        versions = KeyVersions(keys, sequence_by, names, stored, remembered, rows, is_delete[taken])
        winners = decide(versions)
        written, deleting = taken[winners.written], taken[winners.deleting]
        return is_moved, replace(winners, written=written, deleting=deleting)
