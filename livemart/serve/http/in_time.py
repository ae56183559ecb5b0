"""Waits for the store no longer than a caller should.

Used by the hub and by the book of tokens. A thread that waits for a dead disk cannot be stopped; it
is left to its end, and no second one is sent after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from livemart.errors import PublishError

_Result = TypeVar("_Result")
# These are the smallest questions of all: a store that takes longer is no help to anybody.
ANSWERS_WITHIN_S = 5.0


class Inquiry(Generic[_Result]):
    """A question to the store, asked by one thread at a time for all who want the answer."""

    def __init__(self, ask: Callable[[], Awaitable[_Result]]) -> None:
        self._ask = ask
        self._asked: asyncio.Future[_Result] | None = None

    async def answer(self) -> _Result:
        """Return the answer to the question under way, or else to a new one.

        Raises:
            PublishError: STORE_UNREACHABLE; there is none in time. Whatever the question raises.
        """
        if self._asked is None or self._asked.done():
            self._asked = asyncio.ensure_future(self._ask())
            # An error after the last caller has left is met by the next caller.
            self._asked.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        asked = self._asked
        done, _ = await asyncio.wait({asked}, timeout=ANSWERS_WITHIN_S)
        if not done:
            raise PublishError(
                "STORE_UNREACHABLE",
                f"the store has not answered for {ANSWERS_WITHIN_S:g} s",
                hint="check the database or the disk; no restart is needed",
            )
        return asked.result()
