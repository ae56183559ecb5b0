"""Which faults are replayed, how often, and when it ends."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from random import Random
from threading import Event

import pytest

from livemart.conflicts import TableChangedError
from livemart.errors import ConfigError, LivemartError, StateError
from livemart.land.sources.files.problems import unreadable
from livemart.land.sources.log_deliveries import unreadable_log
from livemart.run import replays
from livemart.run.replays import Replays, is_retriable

CHANGED = TableChangedError("TABLE_CHANGED", "written meanwhile", hint="")
GONE = RuntimeError("[DELTA_TABLE_NOT_FOUND] gone")
LOG_AWAY = unreadable_log("outbox", "its end", ConnectionError("no route to host"))
DISK_AWAY = unreadable("orders/1.jsonl", OSError(errno.ESTALE, "Stale file handle"))
REFUSED = unreadable("orders/1.jsonl", PermissionError(errno.EACCES, "Permission denied"))


class _Clock(Event):
    """Notes how long it is waited for, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.rests.append(timeout or 0)
        return self.is_set()


@pytest.fixture
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "_LONGEST_REST_S", 0.0)


class _Told:
    def __init__(self) -> None:
        self.failures: list[int] = []

    def __call__(self, error: BaseException, failures: int, attempts: int) -> None:
        self.failures.append(failures)


def _body(errors: Sequence[BaseException | None], then: Callable[[], None]) -> Callable[[], None]:
    waiting = list(errors)

    def body() -> None:
        while waiting:
            error = waiting.pop(0)
            if error is not None:
                raise error
            then()

    return body


def test_rests_grow_to_half_a_minute_and_chance_shortens_each_by_up_to_a_half() -> None:
    longest = [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    rests = []
    for seed in (1, 1, 2):
        clock = _Clock()
        replay = Replays(10, clock, _Told(), chance=Random(seed))
        replay.run(_body([GONE] * 9, lambda: None))
        rests.append(clock.rests)

    assert all(most / 2 <= rest <= most for rest, most in zip(rests[0], longest, strict=True))
    assert rests[0] == rests[1] != rests[2]


@pytest.mark.parametrize("error", [LOG_AWAY, DISK_AWAY], ids=["log", "disk"])
def test_a_stream_waits_for_a_source_that_is_away_and_a_refresh_ends(error: Exception) -> None:
    told, clock = _Told(), _Clock()

    Replays(3, clock, told, waits_for_sources=True).run(_body([error] * 500, lambda: None))
    with pytest.raises(type(error)):
        Replays(3, _Clock(), told).run(_body([error] * 3, lambda: None))

    assert told.failures == [0] * 500 + [1, 2]
    # Four hours.
    assert sum(clock.rests) > 500 * 14


def test_a_stream_ends_at_a_file_that_it_may_not_read() -> None:
    told = _Told()

    with pytest.raises(type(REFUSED)):
        Replays(3, _Clock(), told, waits_for_sources=True).run(_body([REFUSED] * 3, lambda: None))

    assert told.failures == [1, 2]


@pytest.mark.usefixtures("short_rests")
def test_commits_of_another_writer_are_replayed_without_end() -> None:
    told = _Told()

    Replays(3, Event(), told).run(_body([CHANGED] * 1_100, lambda: None))

    assert told.failures == [0] * 1_100


@pytest.mark.usefixtures("short_rests")
def test_failures_in_a_row_are_counted_whatever_lies_between() -> None:
    told = _Told()

    with pytest.raises(RuntimeError, match="gone"):
        Replays(3, Event(), told).run(_body([GONE, CHANGED, GONE, CHANGED, GONE], lambda: None))

    assert told.failures == [1, 1, 2, 2]


@pytest.mark.usefixtures("short_rests")
def test_a_batch_that_ends_well_begins_the_count_anew() -> None:
    told = _Told()
    runs = Replays(2, Event(), told)

    runs.run(_body([GONE, None, GONE, None, GONE], runs.succeeded))

    assert told.failures == [1, 1, 1]


def test_what_no_replay_overcomes_is_raised_at_once() -> None:
    told = _Told()
    lost = StateError("LANDED_TABLE_LOST", "gone", hint="")

    with pytest.raises(StateError):
        Replays(3, Event(), told).run(_body([lost], lambda: None))

    assert told.failures == []


def test_after_a_stop_nothing_is_replayed() -> None:
    stop, told = Event(), _Told()

    Replays(3, stop, told).run(_body([None, GONE, GONE], stop.set))

    assert told.failures == []


@pytest.mark.parametrize("lasting", [StateError, ConfigError])
def test_a_fault_that_would_pass_is_not_replayed_below_one_that_lasts(
    lasting: type[LivemartError],
) -> None:
    error = lasting("CODE", "the state is to be mended first", hint="")
    error.__cause__ = CHANGED

    assert (is_retriable(CHANGED), is_retriable(error)) == (True, False)
