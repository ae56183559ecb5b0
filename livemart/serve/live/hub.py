"""Watches the store for new snapshots and wakes whoever waits for one.

One poll serves every client of the process. A client never has a backlog in memory: it is woken,
reads its next event from what all share, and what it missed meanwhile is in the store.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from livemart.errors import PublishError
from livemart.serve.auth.book import TokenBook
from livemart.serve.live.faults import Faults
from livemart.store.reader import StoreReader
from livemart.store.served import PublicationId, Published

POLL = timedelta(milliseconds=150)
_TOKENS_EVERY_S = 1.0
# However many unknown tokens come.
_TOKENS_AT_MOST_S = 0.2
# Streams wake at least so often, to find out that their session is over.
_WAKE_EVERY_S = 30.0

Topic = tuple[str, int]
_Key = TypeVar("_Key")
Prepare = Callable[[frozenset[Topic]], Awaitable[None]]


class Hub:
    """Knows the newest snapshot of the store.

    Args:
        reader: the store.
        book: is refreshed along the way.
        clock: seconds that only ever rise: a wall clock that is set back would put off the next
            reading of the tokens for as long.
        poll: time between two looks at the store.
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
        self._taking: PublicationId | None = None
        self._met: Published | None = None
        self._seen: Published | None = None
        self._tick = asyncio.Event()
        self._topics: Counter[Topic] = Counter()
        self._clients = 0
        self._by_token: Counter[str] = Counter()
        self._tokens_at: float | None = None
        self._woken_at: float | None = None
        self._learning: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None

    @property
    def failure(self) -> PublishError | None:
        """Why the store cannot be looked at; None if it can."""
        return self._faults.newest

    @property
    def clients(self) -> int:
        """How many streams are open."""
        return self._clients

    def clients_of(self, token_id: str) -> int:
        """Return how many streams are open by a token."""
        return self._by_token[token_id]

    @contextmanager
    def attend(self, topic: Topic | None = None, token_id: str | None = None) -> Iterator[None]:
        """Count a client while its stream is open; `topic` is computed ahead of its waking."""
        self._clients += 1
        try:
            with _counted(self._by_token, token_id), _counted(self._topics, topic):
                yield
        finally:
            self._clients -= 1

    async def run(self) -> None:
        """Look at the store until cancelled, whatever a look meets."""
        while not self.is_closing:
            await asyncio.sleep(self._poll_s)
            await self.look()

    async def look(self) -> None:
        """Look at the store once; what goes wrong is told once, and its end."""
        now = self._clock()
        try:
            if self._tokens_at is None or now - self._tokens_at >= _TOKENS_EVERY_S:
                await self._learn()
                self._faults.mended("tokens")
        except Exception as error:
            # Without the hub nobody would ever see another snapshot, and nobody would know.
            self._faults.met("tokens", error)
        try:
            await self._look_at_snapshots()
            self._faults.mended("snapshots")
        except Exception as error:
            self._faults.met("snapshots", error)
        if self._woken_at is None or now - self._woken_at >= _WAKE_EVERY_S:
            self._woken_at = now
            self._wake()

    async def _look_at_snapshots(self) -> None:
        known, met, checked_at = self.published, self._met, self.checked_at
        self._seen = newest = await asyncio.to_thread(self._reader.newest)
        # Whatever the store says holds, unless somebody saw more while it was asked.
        if self._met is met and not (newest and met and newest.is_same_or_later(met)):
            self._met = None
        if newest is not None and self.published is known:
            await self._take(newest)
        if self.checked_at != checked_at:
            self._wake()

    async def learn_tokens(self) -> None:
        """Read the tokens again, soon, and at once for all who ask: one may be a moment old."""
        if self._learning is None or self._learning.done():
            self._learning = asyncio.create_task(self._learn_soon())
        await asyncio.shield(self._learning)

    async def _learn_soon(self) -> None:
        if self._tokens_at is not None:
            rest = _TOKENS_AT_MOST_S - (self._clock() - self._tokens_at)
            await asyncio.sleep(max(0.0, rest))
        await self._learn()

    async def _learn(self) -> None:
        version, self._tokens_at = self._book.version, self._clock()
        await asyncio.to_thread(self._book.refresh)
        if self._book.version != version:
            self._wake()

    @property
    def checked_at(self) -> datetime | None:
        """When what is published was last known to be the newest; None before the first look.

        Without anything new it goes on, and with it whatever is judged by its age.
        """
        return None if self.published is None else self.checked(self.published)

    def checked(self, published: Published) -> datetime:
        """Return when a publication was last known to be the newest, as far as anybody looked."""
        seen = self._seen
        return seen.checked_at if seen is not None and seen == published else published.checked_at

    @property
    def newest(self) -> Published | None:
        """The newest snapshot that anybody came upon: no answer may be of one before it.

        `published` is told to those who wait, once it is prepared.
        """
        if self._met is not None and (
            self.published is None or self._met.is_later_than(self.published)
        ):
            return self._met
        return self.published

    def observe(self, published: Published) -> None:
        """Hear of a snapshot that a reader of the store came upon before the next look.

        That reader has its answer and does not wait for what others will want of the snapshot.
        """
        if self.newest is not None and not published.is_later_than(self.newest):
            return
        self._met = published
        is_idle = self._hearing is None or self._hearing.done()
        if is_idle and not self.is_closing:
            self._hearing = asyncio.create_task(self._take(published))

    async def _take(self, published: Published) -> None:
        known, state = self.published, published.identity
        if self._taking == state or (known is not None and state == known.identity):
            return
        self._taking = state
        try:
            if self.prepare is not None:
                await self.prepare(frozenset(self._topics))
        except PublishError as error:
            self._faults.met("snapshots", error)
        except Exception:
            # Whoever asks for what could not be computed is told; the others must not wait for it.
            structlog.get_logger().exception("prepare_failed", snapshot_id=published.snapshot_id)
        finally:
            self._taking = None
        if self.published is known:
            self.published = published
            self._wake()

    async def wait(
        self, seen: Published | None, checked_at: datetime | None = None
    ) -> Published | None:
        """Wait for another publication than `seen`; return early, with no other, now and then.

        With `checked_at`, wait for another instant of that, too.

        None means that nothing is published yet, or that the server is closing.
        """
        known = self.published
        is_news = known is not None and (seen is None or not seen.is_same_or_later(known))
        is_checked = checked_at is not None and checked_at != self.checked_at
        if not (is_news or is_checked or self.is_closing):
            await self._tick.wait()
        return None if self.is_closing else self.published

    def close(self) -> None:
        """Let every stream come to its end."""
        self.is_closing = True
        if self._hearing is not None:
            self._hearing.cancel()
        self._wake()

    def _wake(self) -> None:
        tick, self._tick = self._tick, asyncio.Event()
        tick.set()


@contextmanager
def _counted(counter: Counter[_Key], key: _Key | None) -> Iterator[None]:
    """Count `key` once more inside; a count of zero takes no room. None is not counted."""
    if key is None:
        yield
        return
    counter[key] += 1
    try:
        yield
    finally:
        counter[key] -= 1
        if counter[key] <= 0:
            del counter[key]
