"""Reads the store in threads, once a snapshot for all who ask the same.

Used by the rooms that answer questions. They decide who may see what before they ask: nothing here
knows a caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar, cast

from livemart.serve.http.problems import ProblemError
from livemart.serve.live.fair_threads import FairThreads
from livemart.serve.live.hub import Hub
from livemart.serve.live.shelf import Answer, Shelf
from livemart.serve.live.side_processes import SideProcessError, SideProcesses
from livemart.serve.shares.round_robin import LINE
from livemart.store.reader import StoreReader
from livemart.store.served import Published, ServedModel
from livemart.store.snapshot_view import SnapshotView

_Result = TypeVar("_Result")
# More threads would only wait for each other.
_THREADS = 4
# So often who waits for a reading finds out that the store went away.
_LOOK_UP_EVERY_S = 0.5


class Readings:
    """Reads the store in its own threads; callers who ask for the same share the result.

    Args:
        reader: the store.
        hub: knows the newest snapshot.
        side: reads what is large; None: it is read in the threads, too.
    """

    def __init__(self, reader: StoreReader, hub: Hub, side: SideProcesses | None = None) -> None:
        self._reader = reader
        self._hub = hub
        self._side = side
        self._threads = FairThreads(_THREADS, "store")
        self._shelf = Shelf()
        self._in_flight: dict[Hashable, asyncio.Task[Any]] = {}

    def close(self) -> None:
        """Give the threads back, and end the side processes."""
        self._threads.close()
        if self._side is not None:
            self._side.close()

    async def newest(self) -> Published:
        """Return the newest snapshot that any answer was of: who has it sees none before it.

        Raises:
            ProblemError: NOTHING_PUBLISHED, STORE_UNREACHABLE.
        """
        if self._hub.newest is None:
            if self._hub.failure is not None:
                raise self._hub.failure
            # Before the first look of the hub.
            newest = await self.run(self._reader.newest)
            if newest is None:
                raise ProblemError("NOTHING_PUBLISHED", "the first snapshot is not published yet")
            self._hub.note_newer(newest)
            return newest
        return self._hub.newest

    async def read(self, key: Hashable, read: Callable[[SnapshotView], _Result]) -> Answer[_Result]:
        """Return the result of `read` on the newest snapshot, computed once a snapshot and key.

        A result of None is not kept: there is no end of unknown things to ask for.
        """
        newest = await self.newest()
        cached = self.find(key, newest)
        if cached is not None:
            return cached

        async def load() -> Answer[_Result]:
            answer = await self.read_fresh(read)
            if answer.value is not None:
                self.keep(key, answer)
            return answer

        return await self.share((key, newest.identity), load)

    async def models(self) -> Answer[Mapping[str, ServedModel]]:
        """Return the served models of the newest snapshot, by name."""
        return await self.read(("models",), lambda view: dict(view.models()))

    async def read_fresh(self, read: Callable[[SnapshotView], _Result]) -> Answer[_Result]:
        """Return the result of `read` on the newest snapshot, for this one caller."""
        answer = await self.run(self.read_now, read)
        # The store may be a snapshot further than the hub's last look.
        self._hub.note_newer(answer.published)
        return answer

    async def read_aside(self, read: Callable[..., _Result], *arguments: Any) -> Answer[_Result]:
        """Return `read(view, *arguments)` of the newest snapshot, which keeps no one else waiting.

        Args:
            read: of a module. It, what it is given and what it returns are pickled.
            arguments: behind the view.

        Raises:
            ProblemError: READER_ENDED.
        """
        if self._side is None:
            return await self.read_fresh(lambda view: read(view, *arguments))
        try:
            answer = await self._run(self._side.threads, self._side.read, read, *arguments)
        except SideProcessError as error:
            if self._hub.is_closing:
                raise ProblemError("SERVER_ENDING", "the server is ending; try again") from error
            raise ProblemError(
                "READER_ENDED",
                "the processes that read this answer ended before it was whole: try again, or ask "
                "for fewer rows",
            ) from error
        self._hub.note_newer(answer.published)
        return answer

    async def share(
        self, key: Hashable, load: Callable[[], Coroutine[Any, Any, _Result]]
    ) -> _Result:
        """Return the result of `load`, which runs once for all who want `key` at the same time.

        It waits in a separate line: not behind others of the one who asked first.
        """
        task = self._in_flight.get(key)
        if task is None:
            context = copy_context()
            context.run(LINE.set, key)
            task = self._in_flight[key] = asyncio.create_task(load(), context=context)
            task.add_done_callback(lambda _: self._in_flight.pop(key, None))
        # One who leaves must not take the others' result along.
        return cast(_Result, await asyncio.shield(task))

    async def run(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run a function that asks the store, in a thread.

        Raises:
            PublishError: STORE_UNREACHABLE; at once while the hub knows that the store is away.
        """
        return await self._run(self._threads, function, *arguments)

    async def _run(
        self, threads: FairThreads, function: Callable[..., _Result], *arguments: Any
    ) -> _Result:
        reading: asyncio.Future[_Result] | None = None
        try:
            while True:
                if (away := self._hub.away) is not None:
                    raise away
                if reading is None:
                    reading = asyncio.wrap_future(threads.submit(partial(function, *arguments)))
                await asyncio.wait({reading}, timeout=_LOOK_UP_EVERY_S)
                if reading.done():
                    return reading.result()
        finally:
            # One that no thread has begun is not begun any more.
            if reading is not None:
                reading.cancel()

    def read_now(self, read: Callable[[SnapshotView], _Result]) -> Answer[_Result]:
        """Return the answer of `read` on the newest snapshot, and which that is; for a thread."""
        with self._reader.snapshot() as view:
            return Answer(view.published, read(view))

    def find(self, key: Hashable, newest: Published) -> Answer[Any] | None:
        """Return the kept answer if it is of the newest snapshot, or of one still newer."""
        answer = self.peek(key, newest)
        if answer is not None:
            self._hub.note_newer(answer.published)
        return answer

    def peek(self, key: Hashable, newest: Published) -> Answer[Any] | None:
        """Return the same without telling the hub: no one is answered with it."""
        return self._shelf.find(key, newest)

    def keep(self, key: Hashable, answer: Answer[Any]) -> None:
        """Keep a result as long as no answer was of a later snapshot."""
        self._shelf.keep(key, answer, self._hub.newest)
