"""Bounds the memory that waits for slow clients: answers that they do not take, bodies they send.

Used by connections, by streams and where records are taken. A caller that holds the most loses what
it has held for longest, so no one loses anything by another's slowness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_MOST_BYTES = 256 << 20


@dataclass(slots=True)
class _Item:
    owner: str
    size: int
    drop: Callable[[], None]
    users: int = 0


class HeldBytes:
    """The bytes of one server that wait for clients. For one event loop.

    Args:
        most: bytes in all; a single item may have more.
    """

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self._most = most
        # Those that have been held for longest come first.
        self._items: dict[Hashable, _Item] = {}
        self._of_owner: Counter[str] = Counter()
        # How many bytes are held.
        self.total = 0

    def hold(self, key: Hashable, owner: str, size: int, drop: Callable[[], None]) -> None:
        """Count bytes until `release`; others, or these, are dropped where there are too many.

        Args:
            key: under which they are counted. Bytes that were counted under it are these.
            owner: who makes them wait.
            size: how many there are by now.
            drop: frees them; is called once at most, and then they are not counted any more.
        """
        item = self._items.setdefault(key, _Item(owner, 0, drop))
        self._count(item, size - item.size)
        item.size = size
        while self.total > self._most and len(self._items) > 1:
            most = max(self._of_owner, key=self._of_owner.__getitem__)
            oldest, dropped = next(pair for pair in self._items.items() if pair[1].owner == most)
            self.release(oldest)
            dropped.drop()

    def release(self, key: Hashable) -> None:
        """Count these bytes no longer."""
        if (item := self._items.pop(key, None)) is not None:
            self._count(item, -item.size)

    def _count(self, item: _Item, more: int) -> None:
        self.total += more
        self._of_owner[item.owner] += more
        if not self._of_owner[item.owner]:
            del self._of_owner[item.owner]

    @contextmanager
    def holding(
        self, key: Hashable, owner: str, size: int, drop: Callable[[], None]
    ) -> Iterator[None]:
        """Hold bytes while the block runs; those that several blocks hold are counted once."""
        self.hold(key, owner, size, drop)
        item = self._items.get(key)
        if item is not None:
            item.users += 1
        try:
            yield
        finally:
            if item is not None:
                item.users -= 1
                if not item.users and self._items.get(key) is item:
                    self.release(key)
