"""Wakes the streams that wait for a new snapshot of the store.

Used by streams, `Readings` and `/readyz`. One poll serves every client of the process. A client
never has a backlog in memory: it is woken, reads its next event from what all share, and finds in
the store what it missed meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal

import structlog

from livemart.errors import PublishError, fault_text
from livemart.serve.auth.book import TokenBook
from livemart.serve.http.in_time import Inquiry
from livemart.serve.live.snapshot_json import to_text
from livemart.store.reader import StoreReader
from livemart.store.served import PublicationId, Published

POLL = timedelta(milliseconds=150)
# Streams wake at least so often, to find out that their session is over.
_WAKE_EVERY_S = 30.0

# A tenant, and which answer; it is computed before the stream learns of a snapshot.
Topic = tuple[str, int]
Prepare = Callable[[frozenset[Topic]], Awaitable[None]]
Subject = Literal["tokens", "snapshots"]


class Hub:
    """Knows the newest snapshot of the store.

    The tokens of `book` are read again along the way; `clock`: seconds that only ever rise.
    """

    def __init__(
        self,
        reader: StoreReader,
        book: TokenBook,
        *,
        clock: Callable[[], float] = time.monotonic,
        poll: timedelta = POLL,
    ) -> None:
        self.published: Published | None = None
        self.is_closing = False
        self.prepare: Prepare | None = None
        self._reader = reader
        self._book = book
        self._clock = clock
        self._poll_s = poll.total_seconds()
        self._faults = Faults()
        self._inquiry = Inquiry(lambda: asyncio.to_thread(self._reader.newest))
        self._in_preparation: PublicationId | None = None
        # The publication that a reading met, and the one that the last look showed.
        self._newest_read: Published | None = None
        self._newest_seen: Published | None = None
        # A confirmation of later than now, and when it was first asked for, by `clock`.
        self._ahead: tuple[datetime, float] | None = None
        self._tick = asyncio.Event()
        self._topics: Counter[Topic] = Counter()
        # How many streams are open.
        self.clients = 0
        self._by_owner: Counter[str] = Counter()
        self._woken_at: float | None = None
        self._preparing: asyncio.Task[None] | None = None
        book.on_change = self._wake

    @property
    def failure(self) -> PublishError | None:
        """Why the store cannot be looked at; None if it can."""
        return self._faults.newest

    @property
    def away(self) -> PublishError | None:
        """Why no rows can be read from the store now; None if they can."""
        return self._faults.of("snapshots")

    def clients_of(self, owner: str) -> int:
        """Return how many streams are open by a caller, or of an address."""
        return self._by_owner[owner]

    @contextmanager
    def count_client(self, topic: Topic | None, *owners: str) -> Iterator[None]:
        """Count a client while its stream is open; `topic` is computed ahead of its waking."""
        topics = [] if topic is None else [topic]
        self.clients += 1
        self._by_owner.update(owners)
        self._topics.update(topics)
        try:
            yield
        finally:
            self.clients -= 1
            _uncount(self._by_owner, owners)
            _uncount(self._topics, topics)

    async def run(self) -> None:
        """Look at the store until cancelled, even if a look fails."""
        while not self.is_closing:
            await asyncio.sleep(self._poll_s)
            await self.look()

    async def look(self) -> None:
        """Look at the store once; a fault is reported once, and so is its end."""
        now = self._clock()
        try:
            if self._book.is_due:
                await self._book.learn()
                self._faults.resolve("tokens")
        except Exception as error:
            # Without the hub no client would ever see another snapshot.
            self._faults.report("tokens", error)
        try:
            await self._look_at_snapshots()
            self._faults.resolve("snapshots")
        except Exception as error:
            self._faults.report("snapshots", error)
        if self._woken_at is None or now - self._woken_at >= _WAKE_EVERY_S:
            self._woken_at = now
            self._wake()

    async def _look_at_snapshots(self) -> None:
        before, read, checked_at = self.published, self._newest_read, self.checked_at
        newest = await self._inquiry.answer()
        if newest is None and before is not None:
            # A file that was moved away, or is filled again: what is in memory is still true.
            raise PublishError(
                "STORE_UNREACHABLE",
                f"snapshot {before.snapshot_id} was published, and is no longer in the store",
                hint="restore the store, or run build to fill it again",
            )
        self._newest_seen = newest
        # The store's answer holds, unless a reading met a newer one while it was asked.
        if self._newest_read is read and not (newest and read and newest.is_same_or_later(read)):
            self._newest_read = None
        if newest is not None and self.published is before:
            await self._prepare(newest)
        if self.checked_at != checked_at:
            self._wake()

    @property
    def checked_at(self) -> datetime | None:
        """When the publication was last known to be the newest; None before the first look.

        Without anything new it goes on, and with it all that is judged by its age.
        """
        return None if self.published is None else self.checked(self.published)

    def checked(self, published: Published) -> datetime:
        """Return when a publication was last known to be the newest, by the last look."""
        last = self._newest_seen
        return last.checked_at if last is not None and last == published else published.checked_at

    def age(self, published: Published, now: datetime) -> timedelta:
        """Return for how long a publication was not confirmed to be the newest.

        A confirmation of later than `now` was written by a clock that is ahead of ours, or was: its
        age is the time since it was first asked for. So a pipeline that ends is found out all the
        same, and no age is below zero.
        """
        checked_at = self.checked(published)
        if checked_at <= now:
            return now - checked_at
        if self._ahead is None or self._ahead[0] != checked_at:
            self._ahead = checked_at, self._clock()
        return timedelta(seconds=self._clock() - self._ahead[1])

    def staleness_s(self, published: Published, now: datetime) -> float:
        """Return `age` in seconds."""
        return round(self.age(published, now).total_seconds(), 3)

    def newest_known(self, now: datetime) -> dict[str, Any]:
        """Return which snapshot is still answered from, and how old it is; empty if none."""
        if (newest := self.newest) is None:
            return {}
        return {
            "snapshot_id": newest.snapshot_id,
            "as_of": to_text(newest.as_of),
            "staleness_s": self.staleness_s(newest, now),
        }

    @property
    def newest(self) -> Published | None:
        """The newest snapshot of any look or reading: no answer may be of one before it.

        Those who wait learn of `published` once it is prepared.
        """
        read = self._newest_read
        if read is not None and (self.published is None or read.is_later_than(self.published)):
            return read
        return self.published

    def note_newer(self, published: Published) -> None:
        """Note a snapshot that a reading came upon before the next look.

        The reader has its answer and does not wait for what others will want of the snapshot.
        """
        if self.newest is not None and not published.is_later_than(self.newest):
            return
        self._newest_read = published
        is_idle = self._preparing is None or self._preparing.done()
        if is_idle and not self.is_closing:
            self._preparing = asyncio.create_task(self._prepare(published))

    async def _prepare(self, published: Published) -> None:
        """Have the answers of open streams computed, then tell the streams."""
        before, identity = self.published, published.identity
        if self._in_preparation == identity or (before is not None and identity == before.identity):
            return
        self._in_preparation = identity
        try:
            if self.prepare is not None:
                await self.prepare(frozenset(self._topics))
        except PublishError as error:
            self._faults.report("snapshots", error)
        except Exception:
            # A client whose answer could not be computed gets an error; others must not wait.
            structlog.get_logger().exception("prepare_failed", snapshot_id=published.snapshot_id)
        finally:
            self._in_preparation = None
        if self.published is before:
            self.published = published
            self._wake()

    async def wait(
        self, seen: Published | None, checked_at: datetime | None = None
    ) -> Published | None:
        """Wait for another publication than `seen`; return early, with no other, now and then.

        With `checked_at`, wait for another instant of that, too.

        None means that nothing is published yet, or that the server is closing.
        """
        published = self.published
        is_news = published is not None and (seen is None or not seen.is_same_or_later(published))
        is_checked = checked_at is not None and checked_at != self.checked_at
        if not (is_news or is_checked or self.is_closing):
            await self._tick.wait()
        return None if self.is_closing else self.published

    def close(self) -> None:
        """Let every stream end."""
        self.is_closing = True
        if self._preparing is not None:
            self._preparing.cancel()
        self._wake()

    def _wake(self) -> None:
        tick, self._tick = self._tick, asyncio.Event()
        tick.set()


def _uncount(counter: Counter[Any], keys: Sequence[Any]) -> None:
    """Count these once less; a count of zero takes no room."""
    counter.subtract(keys)
    for key in keys:
        if not counter[key]:
            del counter[key]


class Faults:
    """The present fault of each subject of a look, if it has one; each kind is reported once.

    Tokens and snapshots fail and recover by themselves: tokens are read less often, and one that is
    read says nothing of the other.
    """

    def __init__(self) -> None:
        self._errors: dict[Subject, PublishError] = {}
        self._kinds: set[str] = set()

    @property
    def newest(self) -> PublishError | None:
        """The fault that answers are refused with; None if all is well."""
        return next(reversed(self._errors.values()), None)

    def of(self, subject: Subject) -> PublishError | None:
        """Return the present fault of one subject, None if it has none."""
        return self._errors.get(subject)

    def report(self, subject: Subject, error: Exception) -> None:
        """Keep a fault; log it, unless one of its kind was logged since all was well."""
        fault = error if isinstance(error, PublishError) else _unexpected(subject, error)
        kind = fault.code if fault is error else type(error).__name__
        self._errors.pop(subject, None)
        self._errors[subject] = fault
        if kind not in self._kinds:
            self._kinds.add(kind)
            log = structlog.get_logger()
            if fault is error:
                log.warning("store_unreachable", error=str(fault))
            else:
                log.error("look_failed", part=subject, error=str(fault), exc_info=error)

    def resolve(self, subject: Subject) -> None:
        """Forget the fault of a subject."""
        if self._errors.pop(subject, None) is not None and not self._errors:
            self._kinds.clear()
            structlog.get_logger().info("store_back")


def _unexpected(subject: Subject, error: Exception) -> PublishError:
    return PublishError(
        "STORE_UNREACHABLE",
        f"{subject}: found {fault_text(error)}",
        hint="see the traceback; if livemart is at fault, please report it",
    )
