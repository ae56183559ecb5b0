"""Lets callers take turns: each has so many pulls under way, and the rest of theirs wait in line.

Used by `Shares`. No caller has more than a few under way. So one who asks for much is served as
often as one who asks for little, and keeps only itself waiting.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

# So often who waits is looked after: it may have left.
_LOOK_EVERY_S = 0.5


class QueueFullError(Exception):
    """As many pulls of a caller wait as may."""


class WaiterLeftError(Exception):
    """No client waits for the answer any more."""


async def _stays() -> bool:
    return False


@dataclass(slots=True)
class _Line:
    """The pulls of one caller: how many are under way, and those that wait, the first first."""

    under_way: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Turns:
    """The pulls of all callers. For one event loop; a caller without a pull takes no memory.

    Args:
        most_waiting: how many pulls of one caller may wait.
    """

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._lines: dict[Hashable, _Line] = {}

    def __len__(self) -> int:
        """Return how many callers have a pull under way or waiting."""
        return len(self._lines)

    @property
    def waiting(self) -> int:
        """How many pulls wait, of all callers."""
        return sum(len(line.waiting) for line in self._lines.values())

    def waiting_of(self, owner: Hashable) -> int:
        """Return how many pulls of a caller wait."""
        return len(self._lines[owner].waiting) if owner in self._lines else 0

    def room(self, owner: Hashable, at_once: int) -> int:
        """Return how many more pulls of a caller would be taken in now."""
        line = self._lines.get(owner, _Line())
        return at_once + self._most_waiting - line.under_way - len(line.waiting)

    async def take(
        self,
        owner: Hashable,
        at_once: int,
        has_left: Callable[[], Awaitable[bool]] = _stays,
        *,
        is_patient: bool = False,
    ) -> None:
        """Return when it is the turn of a caller's pull; `give_back` ends it.

        Args:
            owner: the caller.
            at_once: how many of its pulls may be under way.
            has_left: returns True once no client waits for the answer.
            is_patient: it may wait, however many do.

        Raises:
            QueueFullError: nothing was taken.
            WaiterLeftError: nothing was taken.
        """
        line = self._lines.setdefault(owner, _Line())
        if line.under_way < at_once:
            line.under_way += 1
            return
        if len(line.waiting) >= self._most_waiting and not is_patient:
            raise QueueFullError
        turn = asyncio.get_running_loop().create_future()
        line.waiting.append(turn)
        try:
            while not turn.done():
                await asyncio.wait({turn}, timeout=_LOOK_EVERY_S)
                if await has_left():
                    raise WaiterLeftError
        except BaseException:
            if turn.done():
                # It was this one's turn just now.
                self.give_back(owner)
            else:
                line.waiting.remove(turn)
            raise

    def give_back(self, owner: Hashable, rest_s: float = 0.0) -> None:
        """End a turn: the caller's next pull has it, if one waits `rest_s` later."""
        line = self._lines[owner]
        if not line.waiting:
            line.under_way -= 1
            if not line.under_way:
                del self._lines[owner]
        elif rest_s:
            asyncio.get_running_loop().call_later(rest_s, self.give_back, owner)
        else:
            line.waiting.popleft().set_result(None)
