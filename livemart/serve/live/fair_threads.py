"""Runs functions in a few threads, in turns of callers.

Used by `Readings` and by the side processes. An executor would run them in order of arrival, and
all that one caller asks for would come before what another asks for next. A caller whose questions
take long would have all threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

from livemart.serve.shares.round_robin import LINE, RoundRobin

_Result = TypeVar("_Result")


class FairThreads:
    """Threads that take a function of each line in turn. No line has more than half of them.

    Args:
        count: how many functions run at the same time.
        name: of the threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._most_of_line = max(1, count // 2)
        self._waiting = RoundRobin[_Call]()
        self._running: Counter[Hashable] = Counter()
        self._lock = Lock()

    def submit(self, function: Callable[[], _Result]) -> Future[_Result]:
        """Return the future result of a function, which waits in the line of this task."""
        future, line = Future[_Result](), LINE.get()
        with self._lock:
            self._waiting.put(line, _Call(line, function, future))
            # A thread that is free takes the function whose turn it is: not always this one.
            self._threads.submit(self._run)
        return future

    def close(self) -> None:
        """Begin no further function, and give the threads back."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            while (call := self._waiting.take()) is not None:
                call.future.cancel()

    def _run(self) -> None:
        """Run what waits, until nothing does but what is of lines that have their share."""
        while True:
            with self._lock:
                full = {line for line, n in self._running.items() if n >= self._most_of_line}
                call = self._waiting.take(full)
                if call is None:
                    return
                self._running[call.line] += 1
            call.run()
            with self._lock:
                self._running[call.line] -= 1
                if not self._running[call.line]:
                    del self._running[call.line]


@dataclass(frozen=True, slots=True)
class _Call:
    line: Hashable
    function: Callable[[], Any]
    future: Future[Any]

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.function()
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)
