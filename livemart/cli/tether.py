"""Ties a process to the supervisor that started it, by the socket that is its standard input.

Used by the two processes of `up`. The process sends one byte when it is ready. When the
socket closes, the supervisor has ended, in whatever way.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from threading import Thread

READY = b"r"
# Time for a process to end itself after its supervisor has ended.
_LAST_WORD_S = 10.0


class Tether:
    """The end of the socket that a supervised process holds."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        Thread(target=self._watch, name="tether", daemon=True).start()

    def report_ready(self) -> None:
        """Tell the supervisor that the process is ready."""
        with suppress(OSError):
            os.write(self._descriptor, READY)

    def _watch(self) -> None:
        """End the process as by SIGTERM once the supervisor has ended."""
        with suppress(OSError):
            while os.read(self._descriptor, 64):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LAST_WORD_S)
        os._exit(128 + signal.SIGTERM)
