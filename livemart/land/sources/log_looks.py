"""Keeps the last looks at a record log: the waiting records, and when they waited.

Written by landing at each micro-batch, and read to count waiting records. So a log that is away
makes no reader wait, and its options stay with the project.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from livemart.land.sources.manifest import Offsets
from livemart.land.sources.record_log import waiting_records
from livemart.state.atomic_files import look_at_state_file, write_state_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

# Beyond that, the later half of them is kept whole, and of the earlier every second one.
_LOOKS = 64


@dataclass(frozen=True, slots=True)
class LogLook:
    """The newest look at the record log of one source table, and a selection of earlier ones."""

    at: datetime | None = None
    """When the log last answered, UTC; None if it never has."""
    ends: Offsets = field(default_factory=dict)
    """Its answer: the end of each partition."""
    after: Offsets = field(default_factory=dict)
    """The offsets behind the records that micro-batches have read."""
    earlier: tuple[tuple[datetime, Offsets], ...] = ()
    """Time and ends of each look that saw records which still wait, oldest first."""
    told_at: datetime | None = None
    """When the oldest of these was written, UTC, if the kind of log knows it."""
    away: str = ""
    """Why the log did not answer; empty if it did."""
    away_since: datetime | None = None
    """Since when it has not answered, UTC."""

    @property
    def waiting(self) -> dict[str, int]:
        """How many offsets wait, by partition; those of which none does are left out."""
        return waiting_records(self.after, self.ends)

    @property
    def waits_since(self) -> datetime | None:
        """When the oldest that waits was written, or first seen, UTC; None if nothing waits.

        As exporters of lag do it that know offsets alone: a record is as old as the first look at
        which the log ended behind it.
        """
        return self.told_at or next((at for at, _ in self.earlier), None)

    def answered(
        self, at: datetime, ends: Offsets, after: Offsets, told_at: datetime | None
    ) -> LogLook:
        """Return this look with a newer one, at which the log answered."""
        looks = [look for look in self.earlier if waiting_records(after, look[1])]
        looks += [(at, ends)] if waiting_records(after, ends) else []
        if len(looks) > _LOOKS:
            half = len(looks) // 2
            looks = [*looks[:half:2], *looks[half:]]
        return LogLook(at, dict(ends), dict(after), tuple(looks), told_at)

    def missed(self, at: datetime, why: str) -> LogLook:
        """Return this look after one at which the log did not answer."""
        return replace(self, away=why, away_since=self.away_since or at)


class LogLooks:
    """The looks of a warehouse, by relation; those of other relations are forgotten."""

    def __init__(self, warehouse: StoragePlace, relations: Collection[str]) -> None:
        self._warehouse = warehouse
        looks = log_looks(warehouse)
        self._looks = {name: looks.get(name, LogLook()) for name in relations}
        self._is_stale = looks.keys() - self._looks.keys() != set()

    def answered(
        self,
        relations: Iterable[str],
        at: datetime,
        ends: Offsets,
        after: Offsets,
        told_at: datetime | None,
    ) -> None:
        """Note the answer of a log."""
        for name in relations:
            self._looks[name] = self._looks[name].answered(at, ends, after, told_at)
            self._is_stale = True

    def missed(self, relations: Iterable[str], at: datetime, why: str) -> None:
        """Note that a log did not answer, and keep all that was noted."""
        for name in relations:
            self._looks[name] = self._looks[name].missed(at, why)
            self._is_stale = True
        self.keep()

    def keep(self) -> None:
        """Store the notes."""
        if not self._is_stale:
            return
        write_state_file(StateFolder(self._warehouse).log_looks, self._looks)
        self._is_stale = False


def log_looks(warehouse: StoragePlace) -> dict[str, LogLook]:
    """Return the stored looks, by relation; without those that cannot be read."""
    return look_at_state_file(StateFolder(warehouse).log_looks, dict[str, LogLook]) or {}
