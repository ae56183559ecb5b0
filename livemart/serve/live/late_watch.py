"""Logs once that no snapshot came for three intervals, and once that the pipeline is back.

Used by the server, which notices whether the pipeline ended, hangs, or is slow: from the store,
all three look the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from livemart.intervals import format_interval, is_late
from livemart.serve.live.hub import Hub

_LOOK_S = 1.0


class LateWatch:
    """Watches the age of the newest snapshot.

    Args:
        hub: knows it.
        every: the interval of the pipeline.
        now: the wall clock, UTC.
    """

    def __init__(self, hub: Hub, every: timedelta, now: Callable[[], datetime]) -> None:
        self._hub = hub
        self._every = every
        self._now = now
        self._is_late = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            self.look()

    def look(self) -> None:
        """Log a change; a store that is away is logged elsewhere, and says nothing of this."""
        published = self._hub.published
        if published is None or self._hub.failure is not None:
            return
        age = self._hub.age(published, self._now())
        if is_late(age, self._every) is self._is_late:
            return
        self._is_late = not self._is_late
        log = structlog.get_logger().bind(snapshot_id=published.snapshot_id)
        if self._is_late:
            log.warning(
                "snapshot_late",
                code="STORE_STALE",
                seconds=round(age.total_seconds()),
                every=format_interval(self._every),
                next="`livemart status` shows the state of the pipeline",
            )
        else:
            log.info("snapshot_in_time")
