"""Counts the records that wait for each source: delivered, and in no micro-batch yet.

Used by `status` and by the server's measurements. For files the count is read from the checkpoint
and the landing folder; for record logs from the runner's last answer of the log. Records that a
micro-batch has begun to read wait no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from livemart.epoch import clock_moment
from livemart.land.sources.files.bucket import LandingPlace, open_landing
from livemart.land.sources.files.folder import literal_folder
from livemart.land.sources.files.record_sizes import RecordSizes
from livemart.land.sources.files.stream import Slot, folder_of, kept_slots, seen_files
from livemart.land.sources.log_looks import LogLook, log_looks
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace


@dataclass(frozen=True, slots=True)
class SourceLag:
    """The records of one source table that wait."""

    files: int | None = 0
    """None for a record log."""
    size: int | None = 0
    """The bytes of these files; None for a record log."""
    oldest_at: datetime | None = None
    """When the oldest record was delivered, UTC; None if none waits or the time is unknown."""
    records: int | None = None
    """The number of waiting records: for a log the most there can be, for files an estimate."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """The same for each partition of a log, also for those without a waiting record."""
    looked_at: datetime | None = None
    """When a log last answered, UTC; None for files, which are looked at now."""
    away: str = ""
    """Why the source cannot be looked at; empty if it can."""
    away_since: datetime | None = None
    """Since when it cannot, UTC; None if unknown."""

    def waits_s(self, now: datetime) -> float:
        """Return how long the oldest has waited, in seconds; 0 if nothing waits."""
        return 0.0 if self.oldest_at is None else max(0.0, (now - self.oldest_at).total_seconds())

    def look_age_s(self, now: datetime) -> float | None:
        """Return how long ago a log last answered, in seconds; None for files."""
        if self.looked_at is None:
            return None
        return max(0.0, (now - self.looked_at).total_seconds())


def source_lags(warehouse: StoragePlace, landing: StoragePlace | None) -> dict[str, SourceLag]:
    """Return the lag of each source table that the stream has begun to read.

    Args:
        warehouse: root of all tables.
        landing: the landing folder; None leaves out sources of files.

    Raises:
        StateError: CHECKPOINT_TORN.
    """
    lags = {name: _lag_of_log(look) for name, look in log_looks(warehouse).items()}
    checkpoint, sizes = StateFolder(warehouse).checkpoint, RecordSizes(warehouse)
    if landing is not None:
        for position, slot in enumerate(kept_slots(checkpoint), 1):
            if slot.relations:
                lag = _lag_of_files(checkpoint, open_landing(landing), position, slot)
                for name in slot.relations:
                    lags[name] = replace(lag, records=_count(lag.size, sizes.mean(name)))
    return lags


def _count(size: int | None, mean: float | None) -> int | None:
    """Return about how many records some bytes of files hold; None if unknown."""
    if not size:
        return size
    return None if mean is None else max(1, round(size / mean))


def _lag_of_log(look: LogLook) -> SourceLag:
    waiting = look.waiting
    return SourceLag(
        None,
        None,
        look.waits_since if waiting else None,
        sum(waiting.values()) if look.at is not None else None,
        {name: waiting.get(name, 0) for name in sorted(look.ends)},
        look.at,
        look.away,
        look.away_since,
    )


def _lag_of_files(
    checkpoint: StoragePlace, folder: LandingPlace, position: int, slot: Slot
) -> SourceLag:
    seen = seen_files(checkpoint, position)
    place = folder_of(folder.root, slot.path)
    try:
        if not folder.has_folder(literal_folder(slot.path)):
            return SourceLag(None, None, away=f"{place} is not there")
        waiting = [file for file in folder.found(slot.path) if file.place not in seen]
    except OSError as error:
        return SourceLag(None, None, away=f"{place}: {error.strerror or error}")
    oldest = min((file.modified_s for file in waiting), default=None)
    return SourceLag(
        len(waiting),
        sum(file.size for file in waiting),
        None if oldest is None else clock_moment(oldest),
    )


@dataclass(eq=False)
class WatchedLags:
    """The waiting records, counted again only once in a while.

    A scrape must not list a large folder each time.

    `seconds`: between two looks; `clock`: seconds that only rise.
    """

    read: Callable[[], dict[str, SourceLag]]
    seconds: float = 15
    clock: Callable[[], float] = time.monotonic
    _read_at: float | None = field(default=None, init=False)
    _lags: dict[str, SourceLag] = field(default_factory=dict, init=False)

    def lags(self) -> dict[str, SourceLag]:
        """Return the lags of the last look; nothing if they cannot be found."""
        if self._read_at is None or self.clock() - self._read_at >= self.seconds:
            self._read_at = self.clock()
            try:
                self._lags = self.read()
            # Measurements go on without what another process may be writing.
            except Exception:
                self._lags = {}
        return self._lags
