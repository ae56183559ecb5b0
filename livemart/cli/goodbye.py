"""Shows which work a run still finishes after a signal to stop.

Used by the commands that write, so that no wait is without a word.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic

from livemart.cli.interrupts import SignalEvent
from livemart.errors import first_names
from livemart.intervals import format_interval
from livemart.observe.logs import UNDER_WAY
from livemart.project.graph import short_name
from livemart.project.node_results import NodeProgress
from livemart.run import events
from livemart.run.events import RunEvent

_EVERY_S = 10.0
_LOOK_S = 1.0


class Goodbye:
    """Shows the work in progress when a run is stopped.

    Args:
        patience: how long the work in progress may continue.
        say: prints a line.
        every_s: seconds between two lines.

    `waits`: true once the first signal waits for the work in progress instead of ending the run.
    """

    def __init__(
        self, patience: timedelta, say: Callable[[str], None], *, every_s: float = _EVERY_S
    ) -> None:
        self.waits = False
        self._patience = patience
        self._say = say
        self._every_s = every_s
        self._work = "the work in progress"
        self._nodes: dict[str, None] = {}
        self._is_idle = False
        # The snapshot that is copied into the serving store: it is waited for as well.
        self._copied: int | None = None
        # Set by a signal handler, which must not take a lock.
        self._begun = SignalEvent()
        self._is_over = SignalEvent()
        # Not by the handler: starting a thread takes locks.
        threading.Thread(target=self._go_on, name="goodbye", daemon=True).start()

    def handle(self, event: RunEvent) -> None:
        """Remember which work the event begins or ends."""
        match event:
            case events.LandingBegan(batch_id):
                self._work, self._is_idle = f"the landing of micro-batch {batch_id}", False
                self._nodes.clear()
            case events.RecordsLanded():
                self._work = "the work in progress"
            case events.StepBegan(text):
                self._work = f"the work in progress: {text}"
            case events.CopyBegan(snapshot_id):
                self._copied = snapshot_id
            case events.CopyEnded():
                self._copied = None
            case events.BatchBegan(batch_id):
                self._work, self._is_idle = f"micro-batch {batch_id}", False
                self._nodes.clear()
            case events.BatchEnded():
                self._is_idle = True
                self._nodes.clear()
            case NodeProgress(unique_id, status):
                self._at_node(unique_id, is_under_way=status is None)
            case events.ModelChanged(unique_id, word):
                self._at_node(unique_id, is_under_way=word in UNDER_WAY)

    def _at_node(self, unique_id: str, *, is_under_way: bool) -> None:
        if is_under_way:
            self._nodes[unique_id] = None
        else:
            self._nodes.pop(unique_id, None)

    def begin(self) -> None:
        """Print the work to finish first; called by the first signal."""
        if not self.waits or self._is_done():
            self._say("stopping")
            return
        self._say(
            f"stopping: finishing {self._what()}, for {format_interval(self._patience)} "
            "at most; repeat to give it up: readers keep the last snapshot"
        )
        self._begun.set()

    def end(self) -> None:
        """Print no more lines."""
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
        names = [short_name(unique_id) for unique_id in [*self._nodes]]
        return f"{self._work} ({first_names(names)})" if names else self._work
