"""Takes what waits in turns of callers: each has a line, and one of each line is taken in a round.

Used where requests begin, and where readings wait for a thread. A caller with a hundred waiting
requests has one taken for each of another's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Hashable
from contextvars import ContextVar
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_NONE = object()
# The line in which the work of this task waits: a caller's, or that of a shared reading.
LINE: ContextVar[Hashable] = ContextVar("line", default=None)


class RoundRobin(Generic[_Item]):
    """Items that wait. A caller of whom none waits takes no memory.

    >>> waiting = RoundRobin[str]()
    >>> for caller, item in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")]:
    ...     waiting.put(caller, item)
    >>> [waiting.take() for _ in range(len(waiting))]
    ['a1', 'b1', 'a2', 'a3']
    """

    def __init__(self) -> None:
        # The line whose turn is next comes first.
        self._lines: dict[Hashable, deque[_Item]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def put(self, line: Hashable, item: _Item) -> None:
        """Let an item wait behind those of its line."""
        self._lines.setdefault(line, deque()).append(item)

    def take(self, but: Container[Hashable] = ()) -> _Item | None:
        """Return the first item of the line whose turn it is; None if none waits.

        `but`: lines that are passed over.
        """
        name = next((line for line in self._lines if line not in but), _NONE)
        line = self._lines.pop(name, None)
        if line is None:
            return None
        item = line.popleft()
        if line:
            self._lines[name] = line
        return item
