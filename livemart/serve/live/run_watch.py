"""Knows how the newest run goes, as the warehouse says it, or else the store.

Used by `/metrics` and by the pages.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from livemart.state.last_run import LastRun, read_last_run, run_from_json
from livemart.state.project_graph import serves_nothing
from livemart.storage.location import StoragePlace
from livemart.store.reader import StoreReader


class RunWatch:
    """How the newest run goes, looked at again at most once in a while: many may ask.

    For a server that cannot see the warehouse the store has a copy. A copy of a run that goes on
    does not say whether its process still lives.

    Args:
        warehouse: which may not be on this machine.
        reader: the store.
        seconds: between two looks.
        clock: seconds that only rise.
    """

    def __init__(
        self,
        warehouse: StoragePlace,
        reader: StoreReader,
        seconds: float = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._warehouse = warehouse
        self._reader = reader
        self._seconds = seconds
        self._clock = clock
        self._seen: tuple[float, LastRun | None] | None = None
        self._served: tuple[float, bool] | None = None

    def newest(self) -> LastRun | None:
        """Return how it went at the last look; None if unknown. It may wait for the store."""
        now, seen = self._clock(), self._seen
        if seen is None or now - seen[0] >= self._seconds:
            run = read_last_run(self._warehouse)
            if run is None and (copy := self._reader.run_copy()) is not None:
                run = run_from_json(copy)
            self._seen = seen = (now, run)
        return seen[1]

    def serves_nothing(self) -> bool:
        """Return whether the project had no model to serve at the last look."""
        now, served = self._clock(), self._served
        if served is None or now - served[0] >= self._seconds:
            self._served = served = (now, serves_nothing(self._warehouse))
        return served[1]
