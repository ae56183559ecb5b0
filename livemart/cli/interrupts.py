"""Handles SIGINT and SIGTERM: the first lets the running micro-batch finish, the second ends it.

Used by every long command. Giving up is safe at any time: a micro-batch that is not in the snapshot
log is run again.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# For cleaning up after a micro-batch was given up.
_LAST_WORD_S = 10
_LOOK_SECONDS = 0.1


class Interrupted(BaseException):
    """Raised in the main thread by the first signal outside a micro-batch."""


class SignalEvent(threading.Event):
    """An event that a signal handler may set, and that the main thread may wait for.

    Setting it takes no lock, because the interrupted thread might hold it. Waiting polls: a handler
    runs only when the main thread wakes up. A signal that arrives just before the thread falls
    asleep, or in another thread, does not wake it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        while not self._is_set:
            rest = _LOOK_SECONDS if until is None else until - time.monotonic()
            if rest <= 0:
                break
            time.sleep(min(rest, _LOOK_SECONDS))
        return self._is_set


class Interrupts:
    """Handles the two signals during a run; use as a context manager in the main thread.

    Args:
        patience: how long a micro-batch may continue after the first signal.
        notify: called once when the run is being stopped.
        is_supervised: ignore SIGINT; the supervisor sends SIGTERM instead.
    """

    def __init__(
        self,
        patience: timedelta,
        notify: Callable[[], None] = lambda: None,
        *,
        is_supervised: bool = False,
    ) -> None:
        self.stop: threading.Event = SignalEvent()
        self.abandon: threading.Event = SignalEvent()
        self._patience = patience
        self._notify = notify
        self._ignored = {signal.SIGINT} if is_supervised else set()
        self._signal: int | None = None
        self._is_patient = False
        self._is_over = False
        self._before: dict[int, signal.Handlers | Callable[..., object] | int | None] = {}

    @property
    def exit_code(self) -> int | None:
        """130 after SIGINT, 143 after SIGTERM, None if neither came."""
        return None if self._signal is None else 128 + self._signal

    def __enter__(self) -> Interrupts:
        self.install()
        # Not from the handler: starting a thread takes locks.
        threading.Thread(target=self._watch, name="interrupts", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def install(self, *, patient: bool = False) -> None:
        """Take the signals (again: PySpark installs its SIGINT handler when its session starts).

        `patient`: from now on the first signal waits for the running micro-batch.
        """
        self._is_patient = patient
        for number in _SIGNALS:
            is_ignored = number in self._ignored
            handler = signal.signal(number, signal.SIG_IGN if is_ignored else self._handle)
            self._before.setdefault(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:
            self._give_up()
            return
        self._signal = number
        self.stop.set()
        self._notify()
        if not self._is_patient:
            raise Interrupted

    def _give_up(self) -> None:
        """Exit at once; the kernel frees the lock, and Spark's JVM ends with its parent."""
        if self.abandon.is_set() or self._signal is None:
            self._leave()
        self.abandon.set()

    def _leave(self) -> None:
        os._exit(128 + (self._signal or signal.SIGTERM))

    def _watch(self) -> None:
        """After a signal, end the micro-batch, then the process, if they do not end themselves."""
        while self._signal is None:
            if self._is_over:
                return
            time.sleep(_LOOK_SECONDS)
        self.abandon.wait(self._patience.total_seconds())
        is_silent = not self.abandon.is_set()
        self.abandon.set()
        time.sleep(_LAST_WORD_S)
        if is_silent:
            # No second signal came: show where it hangs.
            faulthandler.dump_traceback()
        self._leave()
