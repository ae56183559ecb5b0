"""A few threads run one function of each line in turn, and none that was cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import copy_context

import pytest

from livemart.serve.live.fair_threads import FairThreads
from livemart.serve.shares.round_robin import LINE
from tests.waits import PATIENCE_S


@contextmanager
def busy_threads() -> Iterator[tuple[FairThreads, threading.Event]]:
    """Yield a single thread that is busy until the event is set."""
    threads, may_end = FairThreads(1, "test"), threading.Event()
    is_begun = threading.Event()

    def wait() -> None:
        is_begun.set()
        assert may_end.wait(PATIENCE_S)

    threads.submit(wait)
    assert is_begun.wait(PATIENCE_S)
    try:
        yield threads, may_end
    finally:
        may_end.set()
        threads.close()


def test_what_one_line_asks_for_first_does_not_come_before_all_of_another() -> None:
    done: list[str] = []

    def submit(threads: FairThreads, name: str) -> Future[None]:
        context = copy_context()
        context.run(LINE.set, name[0])
        return context.run(threads.submit, lambda: done.append(name))

    with busy_threads() as (threads, may_end):
        asked = [submit(threads, name) for name in ("a1", "a2", "a3", "a4", "b1", "b2")]
        assert asked[1].cancel()
        may_end.set()
        for number in (0, 2, 3, 4, 5):
            asked[number].result(PATIENCE_S)

    # One that was cancelled has had its turn.
    assert done == ["a1", "b1", "b2", "a3", "a4"]


def test_a_line_has_no_more_than_half_of_the_threads_and_goes_on_when_it_may() -> None:
    """Its functions may take long, and others have theirs run meanwhile."""
    threads, may_end, running = FairThreads(4, "test"), threading.Event(), threading.Semaphore(0)

    def submit(line: str, function: Callable[[], object]) -> Future[object]:
        context = copy_context()
        context.run(LINE.set, line)
        return context.run(threads.submit, function)

    def wait() -> bool:
        running.release()
        return may_end.wait(PATIENCE_S)

    try:
        slow = [submit("greedy", wait) for _ in range(5)]
        assert all(running.acquire(timeout=PATIENCE_S) for _ in range(2))
        others = [submit("other", lambda: 1).result(PATIENCE_S) for _ in range(3)]
        begun = [each.running() for each in slow]
        may_end.set()
        assert [each.result(PATIENCE_S) for each in slow] == [True] * 5
    finally:
        may_end.set()
        threads.close()

    assert (others, begun) == ([1] * 3, [True] * 2 + [False] * 3)


def test_an_error_is_that_of_its_function_alone() -> None:
    def fail() -> None:
        raise ValueError("away")

    threads = FairThreads(1, "test")
    with pytest.raises(ValueError, match="away"):
        threads.submit(fail).result(PATIENCE_S)

    assert threads.submit(lambda: 7).result(PATIENCE_S) == 7
    threads.close()


def test_at_the_end_those_that_wait_are_cancelled_and_no_further_is_taken() -> None:
    with busy_threads() as (threads, _):
        waiting = threads.submit(lambda: 1)
        threads.close()

        with pytest.raises(CancelledError):
            waiting.result(PATIENCE_S)
        with pytest.raises(RuntimeError):
            threads.submit(lambda: 2)
