"""Keeps the bytes that a record of each source takes in its files.

Written by landing, which limits micro-batches of files by records that way. Read to count the
waiting records, so that no file is read for that.
"""

from __future__ import annotations

from livemart.state.atomic_files import look_at_state_file, write_state_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

# The mean is over about so many records, the newest.
_RECORDS = 1_000_000


class RecordSizes:
    """The mean size of a record by relation, in bytes of files as they were delivered."""

    def __init__(self, warehouse: StoragePlace) -> None:
        self._path = StateFolder(warehouse).record_sizes
        # By relation, how many records there were, and in how many bytes.
        # Sizes that cannot be read are learned again.
        self._sums = look_at_state_file(self._path, dict[str, tuple[float, float]]) or {}
        self._is_stale = False

    def mean(self, relation: str) -> float | None:
        """Return the bytes of a record; None before the first one."""
        records, size = self._sums.get(relation, (0.0, 0.0))
        return size / records if records else None

    def add(self, relation: str, records: int, size: int) -> None:
        """Take records that have landed from files of `size` bytes into account."""
        if records and size:
            before = self._sums.get(relation, (0.0, 0.0))
            total = before[0] + records
            share = min(1.0, _RECORDS / total)
            self._sums[relation] = (total * share, (before[1] + size) * share)
            self._is_stale = True

    def keep(self) -> None:
        """Keep the sizes for the next process."""
        if self._is_stale:
            write_state_file(self._path, self._sums)
            self._is_stale = False
