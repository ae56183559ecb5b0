"""Counts the records of one source.

Landing makes them, the snapshot log stores them, `status` shows them. They always add up:
produced = landed + superseded + dead_letters.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """Records of one source; produced = landed + superseded + dead_letters."""

    produced: int = 0
    landed: int = 0
    superseded: int = 0
    dead_letters: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            produced=self.produced + other.produced,
            landed=self.landed + other.landed,
            superseded=self.superseded + other.superseded,
            dead_letters=self.dead_letters + other.dead_letters,
        )


@dataclass(frozen=True, slots=True)
class TableCounts(Counts):
    """Counts of a landed table in one batch; `table_id` differs if a table is created again."""

    table_id: str = ""
