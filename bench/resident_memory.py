"""Tells how much more memory this process and its children hold while a block runs (Linux)."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import TracebackType

_EVERY_S = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ResidentMemory:
    """Looks ten times a second; `growth_mb` is the most that was seen above the first look."""

    def __init__(self) -> None:
        self.growth_mb = 0.0
        self._ended = Event()
        self._thread = Thread(target=self._watch, args=(_resident_bytes(),), daemon=True)

    def __enter__(self) -> ResidentMemory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self, before: int) -> None:
        while not self._ended.wait(_EVERY_S):
            self.growth_mb = max(self.growth_mb, (_resident_bytes() - before) / 1e6)


def _resident_bytes() -> int:
    """Return the bytes of memory that this process and all below it hold."""
    children: dict[int, list[int]] = defaultdict(list)
    pages: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end in between.
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            children[int(fields[1])].append(int(folder.name))
            pages[int(folder.name)] = int(fields[21])
    total, waiting = 0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += pages.get(process, 0)
        waiting += children[process]
    return total * _PAGE
