"""Tells what waits below the landing folder: delivered, and in no micro-batch yet.

Used by `status` and by the server's measurements. It is read from the checkpoint and the folder
alone; a file that a micro-batch has begun to read waits no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from livemart.land.sources.files.folder import LandingFolder
from livemart.land.sources.files.stream import kept_slots, seen_files


@dataclass(frozen=True, slots=True)
class SourceLag:
    """What waits for one source table: files, their bytes, when the oldest was delivered, UTC."""

    files: int = 0
    size: int = 0
    oldest_at: datetime | None = None

    def waits_s(self, now: datetime) -> float:
        """Return how long the oldest has waited, in seconds; 0 if nothing waits."""
        return 0.0 if self.oldest_at is None else max(0.0, (now - self.oldest_at).total_seconds())


def source_lags(checkpoint: Path, landing: Path) -> dict[str, SourceLag]:
    """Return what waits for each source table of files that the stream has begun to read.

    Args:
        checkpoint: of the landing stream.
        landing: the landing folder.

    Raises:
        StateError: CHECKPOINT_TORN.
    """
    folder = LandingFolder(landing)
    lags: dict[str, SourceLag] = {}
    for position, slot in enumerate(kept_slots(checkpoint), 1):
        if not slot.relations:
            continue
        seen = seen_files(checkpoint, position)
        waiting = []
        for path in folder.find(slot.path):
            if path not in seen:
                try:
                    waiting.append(path.stat())
                except FileNotFoundError:
                    continue
        oldest = min((status.st_mtime for status in waiting), default=None)
        lag = SourceLag(
            len(waiting),
            sum(status.st_size for status in waiting),
            None if oldest is None else datetime.fromtimestamp(oldest, UTC),
        )
        lags |= dict.fromkeys(slot.relations, lag)
    return lags


class WatchedLags:
    """What waits, looked at again at most once in a while: a scrape must not list a large folder.

    Args:
        read: looks.
        seconds: between two looks.
        clock: seconds that only rise.
    """

    def __init__(
        self,
        read: Callable[[], dict[str, SourceLag]],
        seconds: float = 15,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._clock = clock
        self._read_at: float | None = None
        self._lags: dict[str, SourceLag] = {}

    def lags(self) -> dict[str, SourceLag]:
        """Return what waited at the last look; nothing if it cannot be told."""
        if self._read_at is None or self._clock() - self._read_at >= self._seconds:
            self._read_at = self._clock()
            try:
                self._lags = self._read()
            # Measurements go on without what another process may be writing.
            except Exception:
                self._lags = {}
        return self._lags
