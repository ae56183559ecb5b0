"""Which faults are replayed, how often, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event

import pytest

from livemart.delta.conflicts import TableChangedError, is_another_writers
from livemart.delta.log import VersionTakenError
from livemart.errors import StateError
from livemart.run import replays
from livemart.run.replays import Replays, is_retriable

CHANGED = TableChangedError("TABLE_CHANGED", "written meanwhile", hint="")
GONE = RuntimeError("[DELTA_TABLE_NOT_FOUND] gone")


@pytest.fixture(autouse=True)
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


def test_commits_of_another_writer_are_replayed_without_end() -> None:
    told = _Told()

    Replays(3, Event(), told).run(_body([CHANGED] * 1_100, lambda: None))

    assert told.failures == [0] * 1_100


def test_failures_in_a_row_are_counted_whatever_lies_between() -> None:
    told = _Told()

    with pytest.raises(RuntimeError, match="gone"):
        Replays(3, Event(), told).run(_body([GONE, CHANGED, GONE, CHANGED, GONE], lambda: None))

    assert told.failures == [1, 1, 2, 2]


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


@pytest.mark.parametrize(
    ("error", "another_writers", "retriable"),
    [
        (CHANGED, True, True),
        (VersionTakenError("12"), True, True),
        (RuntimeError("[DELTA_CONCURRENT_APPEND] x"), True, True),
        (RuntimeError("CommitFailedError: x"), False, True),
        (GONE, False, True),
        (RuntimeError("[PARSE_SYNTAX_ERROR] x"), False, False),
        (StateError("CODE", "DELTA_CONCURRENT_APPEND", hint=""), False, False),
    ],
)
def test_faults_are_told_apart(
    error: BaseException, another_writers: bool, retriable: bool
) -> None:
    outer = RuntimeError("the micro-batch failed")
    outer.__cause__ = error

    assert [is_another_writers(error), is_another_writers(outer)] == [another_writers] * 2
    assert [is_retriable(error), is_retriable(outer)] == [retriable] * 2
