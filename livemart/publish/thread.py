"""Publishes in one thread until the store has the newest snapshot.

Used by the pipeline through `Publications`. A store that is slow or down never holds up landing or
refreshing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from threading import Condition, Event, Thread

import structlog
from tenacity import RetryError, Retrying, retry_if_exception_type
from tenacity.nap import sleep_using_event
from tenacity.wait import wait_base, wait_exponential_jitter

from livemart.errors import LivemartError
from livemart.publish.publisher import Publication
from livemart.state.snapshots import Snapshot

_POLL_SECONDS = 0.1
# A store that is back has its snapshot within 15 s, the time that an attempt takes included.
_WAIT = wait_exponential_jitter(multiplier=0.5, max=6, jitter=1)

Publish = Callable[[Snapshot, bool], Publication | None]
Confirm = Callable[[Snapshot, datetime], bool]


class PublisherThread:
    """Publishes the newest snapshot that it was offered, again and again until it succeeds.

    Older ones that wait are passed over: each publication is complete.

    Args:
        publish: brings the store to a snapshot; the flag says that nothing is known of the store,
            because this is the first attempt or the last one failed.
        confirm: notes in the store when a snapshot was last known to be the newest; returns False
            if the store does not show it.
        wait: between attempts.
    """

    def __init__(
        self,
        publish: Publish,
        confirm: Confirm,
        *,
        wait: wait_base = _WAIT,
    ) -> None:
        self._publish = publish
        self._confirm = confirm
        self._wait = wait
        self._log = structlog.get_logger()
        self._changed = Condition()
        self._waiting: Snapshot | None = None
        self._checked: tuple[Snapshot, datetime] | None = None
        self._is_closing = Event()
        self._is_last_attempt = False
        self._trouble: str | None = None
        # Why the database does not take a model, by model; as of the last publication.
        self.refused: Mapping[str, str] = {}
        self._is_known = False
        self._moved_at = time.monotonic()
        self._thread = Thread(target=self._run, name="publisher", daemon=True)

    def start(self, newest: Snapshot | None) -> None:
        """Begin with the newest published snapshot of the log, if there is one."""
        self._waiting = newest
        self._thread.start()

    def offer(self, snapshot: Snapshot) -> None:
        """Publish this snapshot next, instead of any that still waits."""
        with self._changed:
            # The snapshot that was confirmed as the newest is so no more.
            self._waiting, self._checked = snapshot, None
            self._changed.notify_all()

    def confirm(self, newest: Snapshot, checked_at: datetime) -> None:
        """Note in the store that this snapshot is the newest, unless one waits to be published."""
        with self._changed:
            self._checked = (newest, checked_at)
            self._changed.notify_all()

    def progress(self) -> None:
        """Note that the publication under way makes progress."""
        self._moved_at = time.monotonic()

    def close(self, silence: timedelta, abandon: Event | None = None) -> bool:
        """Wait for the last publication and end; return whether the store has it.

        A store that is down gets one last attempt.

        Args:
            silence: give up when nothing was written for so long.
            abandon: give up when this is set.
        """
        self.progress()
        with self._changed:
            self._is_closing.set()
            self._changed.notify_all()
        while self._thread.is_alive():
            self._thread.join(_POLL_SECONDS)
            is_abandoned = abandon is not None and abandon.is_set()
            if is_abandoned or time.monotonic() - self._moved_at > silence.total_seconds():
                break
        waiting = self._waiting
        if waiting is not None:
            self._log.warning(
                "store_behind",
                snapshot_id=waiting.snapshot_id,
                next="the next build, refresh or stream publishes it",
            )
        return waiting is None

    def _run(self) -> None:
        while self._await_offer():
            if self._waiting is None:
                self._attempt_to_confirm()
                continue
            try:
                for attempt in Retrying(
                    retry=retry_if_exception_type(Exception),
                    stop=lambda _: self._is_last_attempt,
                    wait=self._wait,
                    sleep=sleep_using_event(self._is_closing),
                ):
                    with attempt:
                        self._attempt()
            except RetryError:
                return

    def _await_offer(self) -> bool:
        """Return True when there is something to do, False when there will be nothing more."""
        with self._changed:
            while not (self._waiting or self._checked or self._is_closing.is_set()):
                self._changed.wait()
            return self._waiting is not None or self._checked is not None

    def _attempt_to_confirm(self) -> None:
        """Write the last confirmation; if the store does not take it, publish instead.

        The store was lost, or is away: publication mends the one and tries the other again.
        """
        with self._changed:
            checked, self._checked = self._checked, None
        assert checked is not None
        snapshot, _ = checked
        try:
            is_shown = self._confirm(*checked)
        except Exception as error:
            self._say_trouble(error, snapshot)
            self._is_known = is_shown = False
        if not is_shown:
            with self._changed:
                self._waiting = self._waiting or snapshot

    def _attempt(self) -> None:
        self._is_last_attempt = self._is_closing.is_set()
        snapshot = self._waiting
        assert snapshot is not None
        is_known, self._is_known = self._is_known, False
        try:
            done = self._publish(snapshot, not is_known)
        except Exception as error:
            self._say_trouble(error, snapshot)
            raise
        self._is_known = True
        with self._changed:
            if self._waiting is snapshot:
                self._waiting = None
        if self._trouble is not None:
            self._trouble = None
            self._log.info("store_back", snapshot_id=snapshot.snapshot_id)
        if done is not None:
            self._say_refused(done)
            # A copy of a whole model is worth a line, every refresh is not.
            say = self._log.info if done.rebuilt else self._log.debug
            say(
                "snapshot_served",
                snapshot_id=done.snapshot_id,
                rows_changed=sum(done.rows_changed.values()),
                rebuilt=" ".join(done.rebuilt) or None,
                took_ms=done.took_ms,
            )

    def _say_refused(self, done: Publication) -> None:
        """Say once which models the store does not take, and which it takes again."""
        for model, error in done.refused.items():
            if self.refused.get(model) != error:
                self._log.warning(
                    "model_not_served",
                    snapshot_id=done.snapshot_id,
                    model=model,
                    error=error,
                    next="change the model, or take it out of its exposure; the others are served",
                )
        for model in self.refused.keys() - done.refused.keys():
            self._log.info("model_served_again", snapshot_id=done.snapshot_id, model=model)
        self.refused = dict(done.refused)

    def _say_trouble(self, error: Exception, snapshot: Snapshot) -> None:
        """Report a fault once, however often the work is tried again."""
        cause = error.code if isinstance(error, LivemartError) else type(error).__name__
        if cause == self._trouble:
            return
        self._trouble = cause
        event = "store_unreachable" if cause == "STORE_UNREACHABLE" else "publication_failed"
        self._log.warning(event, snapshot_id=snapshot.snapshot_id, error=str(error) or cause)
        self._log.debug(event, snapshot_id=snapshot.snapshot_id, exc_info=error)
