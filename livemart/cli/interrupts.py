"""Holds SIGINT and SIGTERM: the first lets the micro-batch under way finish, the second ends it.

Used by every command that runs for long. Giving up is safe at any instant: what was not recorded in
the snapshot log is run again.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# For what has to be left in order once a micro-batch is given up.
_LAST_WORD_S = 10


class Interrupted(BaseException):
    """Raised in the main thread by the first signal outside a micro-batch."""


class Interrupts:
    """Holds the two signals while a run goes on; use as a context manager in the main thread.

    Args:
        patience: how long a micro-batch may go on after the first signal.
        notify: is told once that the run is being stopped.
    """

    def __init__(self, patience: timedelta, notify: Callable[[], None] = lambda: None) -> None:
        self.stop = threading.Event()
        self.abandon = threading.Event()
        self._patience = patience
        self._notify = notify
        self._signal: int | None = None
        self._is_patient = False
        self._timer: threading.Timer | None = None
        self._before: dict[int, signal.Handlers | Callable[..., object] | int | None] = {}

    @property
    def exit_code(self) -> int | None:
        """130 after SIGINT, 143 after SIGTERM, None if neither came."""
        return None if self._signal is None else 128 + self._signal

    def __enter__(self) -> Interrupts:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer:
            self._timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def install(self, *, patient: bool = False) -> None:
        """Take the signals (again: PySpark takes SIGINT for itself when its session starts).

        `patient`: from now on the first signal waits for the micro-batch under way.
        """
        self._is_patient = patient
        for number in _SIGNALS:
            handler = signal.signal(number, self._handle)
            self._before.setdefault(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:
            self._give_up()
            return
        self._signal = number
        self.stop.set()
        # A micro-batch that never ends must not keep the process alive.
        self._timer = threading.Timer(self._patience.total_seconds(), self._give_up)
        self._timer.daemon = True
        self._timer.start()
        self._notify()
        if not self._is_patient:
            raise Interrupted

    def _give_up(self) -> None:
        """Leave at once; the kernel frees the lock, Spark's JVM ends with its parent."""
        if self.abandon.is_set() or self._signal is None:
            os._exit(128 + (self._signal or signal.SIGTERM))
        self.abandon.set()
        last_word = threading.Timer(_LAST_WORD_S, os._exit, args=(128 + self._signal,))
        last_word.daemon = True
        last_word.start()
