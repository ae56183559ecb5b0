"""That no snapshot comes is logged once, and so is the end of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from structlog.testing import capture_logs

from livemart.serve.live.hub import Hub
from livemart.serve.live.late_watch import LateWatch

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
EVERY = timedelta(minutes=5)


class FakeHub:
    """A hub whose newest snapshot was confirmed at noon."""

    def __init__(self) -> None:
        self.published: Any = SimpleNamespace(snapshot_id=7)
        self.failure: Exception | None = None
        self.checked_at = NOON

    def age(self, published: object, now: datetime) -> timedelta:
        return now - self.checked_at


def test_three_intervals_without_a_snapshot_are_logged_once_and_so_is_the_next_one() -> None:
    hub, now = FakeHub(), [NOON]
    watch = LateWatch(cast(Hub, hub), EVERY, lambda: now[0])
    with capture_logs() as events:
        for minutes in (0, 10, 14, 15, 16, 30):
            now[0] = NOON + timedelta(minutes=minutes)
            watch.look()
        hub.checked_at = now[0]
        watch.look()
        watch.look()

    assert [(event["event"], event["log_level"]) for event in events] == [
        ("snapshot_late", "warning"),
        ("snapshot_in_time", "info"),
    ]
    late = events[0]
    assert (late["code"], late["snapshot_id"], late["seconds"]) == ("STORE_STALE", 7, 900)


def test_before_the_first_snapshot_and_while_the_store_is_away_nothing_is_late() -> None:
    hub = FakeHub()
    watch = LateWatch(cast(Hub, hub), EVERY, lambda: NOON + timedelta(days=1))
    with capture_logs() as events:
        hub.failure = OSError()
        watch.look()
        hub.failure, hub.published = None, None
        watch.look()

    assert events == []
