"""Tells the user what a run still finishes after it was told to stop.

Used by the commands that write. It hears what the run's watcher hears, so that a wait is never one
without a word.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any

from livemart.cli.interrupts import SignalEvent
from livemart.intervals import format_interval
from livemart.observe.listening import Told, listening

_EVERY_S = 10.0
_LOOK_S = 1.0
_MOST_NAMES = 3
# A model's word while it is worked on; None is dbt's, when a node begins.
_UNDER_WAY = frozenset({None, "running", "refreshing", "rebuilding", "started"})


class Goodbye:
    """Tells what a run is at when it is stopped.

    Args:
        patience: how long what is under way may go on.
        say: prints a line.
        every_s: seconds between two lines while it goes on.

    `waits`: set once the first signal waits for what is under way, and does not end the run.
    """

    def __init__(
        self, patience: timedelta, say: Callable[[str], None], *, every_s: float = _EVERY_S
    ) -> None:
        self.waits = False
        self._patience = patience
        self._say = say
        self._every_s = every_s
        self._work = "what is under way"
        self._nodes: dict[str, None] = {}
        self._is_idle = False
        self._thread: threading.Thread | None = None
        # The snapshot that is copied into the serving store: it is waited for as well.
        self._copied: int | None = None
        # Set by a signal's handler, which may take no lock.
        self._begun = SignalEvent()
        self._is_over = SignalEvent()

    def hears(self, watcher: Told) -> Told:
        """Return a proxy that records every event and passes it on to the watcher."""
        if self._thread is None:
            # Not by the handler: starting a thread takes locks.
            self._thread = threading.Thread(target=self._go_on, name="goodbye", daemon=True)
            self._thread.start()
        return listening(watcher, self._heard)

    def begin(self) -> None:
        """Say what is finished first; called by the first signal."""
        if not self.waits or self._is_done():
            self._say("stopping")
            return
        self._say(
            f"stopping: finishing {self._what()}, for {format_interval(self._patience)} "
            "at most; once more gives it up, and readers keep what they have"
        )
        self._begun.set()

    def end(self) -> None:
        """Say no more."""
        self._is_over.set()

    def _go_on(self) -> None:
        while not self._begun.wait(_LOOK_S):
            if self._is_over.is_set():
                return
        began_at = monotonic()
        while not self._is_over.wait(self._every_s) and not self._is_done():
            waited = monotonic() - began_at
            self._say(f"stopping: still finishing {self._what()}, {waited:.0f} s")

    def _is_done(self) -> bool:
        return self._is_idle and self._copied is None

    def _what(self) -> str:
        if self._is_idle:
            return f"the copy of snapshot {self._copied} into the serving store"
        return f"{self._work}{self._at()}"

    def _at(self) -> str:
        names = [unique_id.rpartition(".")[2] for unique_id in [*self._nodes]]
        if not names:
            return ""
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return f" ({', '.join(names[:_MOST_NAMES])}{more})"

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        match event, arguments:
            case "landing_began", (batch_id, *_):
                self._work, self._is_idle = f"the landing of micro-batch {batch_id}", False
                self._nodes.clear()
            case "landed", _:
                self._work = "what is under way"
            case "step", (text, *_):
                self._work = f"what is under way: {text}"
            case "publishing", (snapshot_id, *_):
                self._copied = snapshot_id
            case "batch_began", (batch_id, *_):
                self._work, self._is_idle = f"micro-batch {batch_id}", False
                self._nodes.clear()
            case "batch_ended", _:
                self._is_idle = True
                self._nodes.clear()
            case (("node_changed" | "model_changed"), (unique_id, word, *_)):
                if word in _UNDER_WAY:
                    self._nodes[unique_id] = None
                else:
                    self._nodes.pop(unique_id, None)
