"""Gives data tests the changes of each table since they last ran.

Used by the proofs. A change that cannot be read any more is None, and its tests run in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import WEIGHT, repeated
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError


@dataclass(frozen=True, slots=True)
class CheckedVersions:
    """The versions of all stored tables, by relation, at the frontier and now.

    `before` leaves out tables that are new or rebuilt: their tests run in full.
    """

    before: Mapping[str, int]
    now: Mapping[str, int]

    def is_unchanged(self, relation: str) -> bool:
        """True if the table is the one of the frontier."""
        return relation in self.now and self.before.get(relation) == self.now[relation]


def repeated_rows(
    warehouse: Warehouse, versions: CheckedVersions, relation: str, sign: int
) -> pa.Table | None:
    """Return the rows that came (1) or went (-1), each as often as it did; None if unknown."""
    moved = rows_of_sign(warehouse, versions, relation, sign)
    if moved is None:
        return None
    return repeated(moved.drop_columns([WEIGHT]), pc.abs(moved[WEIGHT]))


def rows_of_sign(
    warehouse: Warehouse, versions: CheckedVersions, relation: str, sign: int
) -> pa.Table | None:
    """Return the rows that came (1) or went (-1) in the end, with `WEIGHT`; None if unknown."""
    before, now = versions.before.get(relation), versions.now.get(relation)
    if before is None or now is None:
        return None
    try:
        changed = warehouse.changes(relation, before, now)
    except RefreshError:
        return None
    weights = pc.multiply(changed[WEIGHT], sign)
    return changed.filter(pc.greater(weights, 0)).combine_chunks()
