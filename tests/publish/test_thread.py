"""Publication beside the run: newest first, again until it succeeds, said once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from structlog.testing import capture_logs
from tenacity.wait import wait_fixed

from livemart.errors import PublishError
from livemart.publish.publisher import Publication
from livemart.publish.thread import PublisherThread
from livemart.state.snapshots import Snapshot
from tests.store.stores import make_snapshot
from tests.waits import PATIENCE_S, wait_until

SOON = wait_fixed(0.01)
NEVER = wait_fixed(3600)
LONG = timedelta(seconds=PATIENCE_S)


class FakeStore:
    """Notes what is published; is down for the first `failures` attempts."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.is_away = False
        self.refused: dict[str, str] = {}
        self.attempts: list[tuple[int, bool]] = []
        self.shown = 0
        self.confirmed: list[datetime] = []
        self.attempted = Event()
        self.go_on = Event()
        self.go_on.set()

    def publish(self, snapshot: Snapshot, is_start: bool) -> Publication | None:
        self.attempts.append((snapshot.snapshot_id, is_start))
        self.attempted.set()
        assert self.go_on.wait(PATIENCE_S)
        if len(self.attempts) <= self.failures:
            raise PublishError("STORE_UNREACHABLE", "no route to host", hint="wait")
        done = Publication(snapshot.snapshot_id, refused=self.refused)
        self.shown = snapshot.snapshot_id
        return done

    def confirm(self, snapshot: Snapshot, checked_at: datetime) -> bool:
        if self.is_away:
            raise PublishError("STORE_UNREACHABLE", "no route to host", hint="wait")
        if snapshot.snapshot_id == self.shown:
            self.confirmed.append(checked_at)
        return snapshot.snapshot_id == self.shown


@pytest.fixture
def logs() -> Iterator[list[dict[str, object]]]:
    with capture_logs() as found:
        yield found  # type: ignore[misc]


def events(logs: list[dict[str, object]]) -> list[object]:
    return [each["event"] for each in logs if each["log_level"] != "debug"]


def let_end(store: FakeStore, thread: PublisherThread) -> None:
    """Let an abandoned thread end: its lines belong to no other test."""
    store.go_on.set()
    assert thread.close(LONG)


def test_the_newest_snapshot_of_the_log_is_published_at_the_start() -> None:
    store = FakeStore()
    thread = PublisherThread(store.publish, store.confirm)

    thread.start(make_snapshot(7, []))

    assert thread.close(LONG)
    assert store.attempts == [(7, True)]


def test_without_a_snapshot_nothing_is_published() -> None:
    store = FakeStore()
    thread = PublisherThread(store.publish, store.confirm)

    thread.start(None)

    assert thread.close(LONG)
    assert store.attempts == []


def test_snapshots_that_came_meanwhile_are_passed_over() -> None:
    store = FakeStore()
    store.go_on.clear()
    thread = PublisherThread(store.publish, store.confirm)
    thread.start(make_snapshot(1, []))
    assert store.attempted.wait(PATIENCE_S)

    for number in (2, 3, 4):
        thread.offer(make_snapshot(number, []))
    store.go_on.set()

    assert thread.close(LONG)
    assert store.attempts == [(1, True), (4, False)]


def test_a_store_that_is_down_is_said_once_and_said_to_be_back(
    logs: list[dict[str, object]],
) -> None:
    store = FakeStore(failures=5)
    thread = PublisherThread(store.publish, store.confirm, wait=SOON)

    thread.start(make_snapshot(1, []))
    wait_until(lambda: len(store.attempts) > store.failures)

    assert thread.close(LONG)
    assert events(logs) == ["store_unreachable", "store_back"]
    assert all(is_start for _, is_start in store.attempts)


def test_a_model_that_the_store_does_not_take_is_said_once_and_said_to_be_back(
    logs: list[dict[str, object]],
) -> None:
    store = FakeStore()
    thread = PublisherThread(store.publish, store.confirm)
    thread.start(None)

    for number, refused in enumerate([{"wide": "too many columns"}] * 2 + [{}], 1):
        store.refused = refused
        thread.offer(make_snapshot(number, []))
        wait_until(lambda: store.shown == number)  # noqa: B023

    assert thread.close(LONG)
    assert events(logs) == ["model_not_served", "model_served_again"]


def test_the_last_attempt_of_a_run_does_not_wait_and_is_not_repeated(
    logs: list[dict[str, object]],
) -> None:
    store = FakeStore(failures=1_000)
    thread = PublisherThread(store.publish, store.confirm, wait=NEVER)
    thread.start(make_snapshot(1, []))
    assert store.attempted.wait(PATIENCE_S)

    is_published = thread.close(LONG)

    assert not is_published
    assert len(store.attempts) == 2
    assert events(logs) == ["store_unreachable", "store_behind"]


def test_a_publication_that_hangs_is_given_up(logs: list[dict[str, object]]) -> None:
    store = FakeStore()
    store.go_on.clear()
    thread = PublisherThread(store.publish, store.confirm)
    thread.start(make_snapshot(1, []))
    assert store.attempted.wait(PATIENCE_S)

    is_published = thread.close(timedelta(milliseconds=300))

    assert not is_published
    assert events(logs) == ["store_behind"]
    let_end(store, thread)


def test_a_second_signal_ends_the_wait() -> None:
    store = FakeStore()
    store.go_on.clear()
    thread = PublisherThread(store.publish, store.confirm)
    thread.start(make_snapshot(1, []))
    assert store.attempted.wait(PATIENCE_S)
    abandon = Event()
    abandon.set()

    is_published = thread.close(LONG, abandon)

    assert not is_published
    let_end(store, thread)


def test_any_failure_is_tried_again_and_told_with_its_text(logs: list[dict[str, object]]) -> None:
    calls: list[int] = []
    failed = Event()

    def publish(snapshot: Snapshot, is_start: bool) -> Publication | None:
        calls.append(snapshot.snapshot_id)
        if len(calls) == 1:
            failed.set()
            raise RuntimeError("a table of the warehouse cannot be read")
        return Publication(snapshot.snapshot_id, rebuilt=("m",))

    thread = PublisherThread(publish, lambda *_: True, wait=SOON)
    thread.start(make_snapshot(1, []))
    assert failed.wait(PATIENCE_S)

    assert thread.close(LONG)
    assert calls == [1, 1]
    assert events(logs) == ["publication_failed", "store_back", "snapshot_served"]
    assert "cannot be read" in str(logs[0]["error"])


def test_what_is_still_the_newest_is_noted_without_a_publication() -> None:
    store, moments = FakeStore(), [datetime(2026, 3, 2, 12, n, tzinfo=UTC) for n in range(3)]
    thread = PublisherThread(store.publish, store.confirm)
    thread.start(make_snapshot(1, []))

    for number, moment in enumerate(moments, start=1):
        thread.confirm(make_snapshot(1, []), moment)
        wait_until(lambda: len(store.confirmed) == number)  # noqa: B023

    assert thread.close(LONG)
    assert (store.attempts, store.confirmed) == ([(1, True)], moments)


def test_a_store_that_does_not_show_the_newest_gets_it(logs: list[dict[str, object]]) -> None:
    store, moment = FakeStore(), datetime(2026, 3, 2, 12, tzinfo=UTC)
    thread = PublisherThread(store.publish, store.confirm)
    thread.start(None)

    thread.confirm(make_snapshot(4, []), moment)

    assert thread.close(LONG)
    assert store.attempts == [(4, True)]
    assert events(logs) == []


def test_a_store_that_cannot_be_told_stops_nothing(logs: list[dict[str, object]]) -> None:
    store, moment = FakeStore(), datetime(2026, 3, 2, 12, tzinfo=UTC)
    thread = PublisherThread(store.publish, store.confirm, wait=SOON)
    thread.start(None)
    store.is_away = True

    thread.confirm(make_snapshot(4, []), moment)

    assert thread.close(LONG)
    assert store.attempts == [(4, True)]
    assert events(logs) == ["store_unreachable", "store_back"]
