"""Runs functions in a few threads, in turns of callers.

Used by `Readings` and by the side processes. An executor would run them in order of arrival, and
all that one caller asks for would come before what another asks for next.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from livemart.serve.shares.round_robin import LINE, RoundRobin

_Result = TypeVar("_Result")


class FairThreads:
    """Threads that take a function of each line in turn.

    Args:
        count: how many functions run at the same time.
        name: of the threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._waiting = RoundRobin[tuple[Future[Any], Callable[[], Any]]]()
        self._lock = Lock()

    def submit(self, call: Callable[[], _Result]) -> Future[_Result]:
        """Return the future result of a function, which waits in the line of this task."""
        future = Future[_Result]()
        with self._lock:
            self._waiting.put(LINE.get(), (future, call))
            # A thread that is free takes the function whose turn it is: not always this one.
            self._threads.submit(self._run_next)
        return future

    def close(self) -> None:
        """Begin no further function, and give the threads back."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            while self._waiting:
                self._waiting.take()[0].cancel()

    def _run_next(self) -> None:
        with self._lock:
            if not self._waiting:
                return
            future, call = self._waiting.take()
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
