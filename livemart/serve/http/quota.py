"""Counts the use of each caller, and gives it back evenly over a minute: a bucket for each.

Used for wrong tokens of an address and for rows of a caller.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

_KEPT = 10_000


class Quota:
    """A share of each name in a minute. More may be taken at once: it is a debt, to be waited for.

    Only those who took last are kept, and none that has its whole quota again.

    Args:
        a_minute: how much each may take; at least one.
        clock: seconds that only ever rise.

    >>> rows = Quota(60, clock=lambda: 0.0)
    >>> rows.take("a", 70)
    >>> rows.left("a"), rows.wait_s("a"), rows.left("b")
    (-10.0, 11.0, 60.0)
    """

    def __init__(self, a_minute: int, *, clock: Callable[[], float] = monotonic) -> None:
        self.a_minute = a_minute
        self._clock = clock
        # How much was left, and when.
        self._lefts: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, name: str) -> float:
        """Return how much may still be taken; less than zero is a debt."""
        now = self._clock()
        left, at = self._lefts.get(name, (float(self.a_minute), now))
        return min(float(self.a_minute), left + (now - at) * self.a_minute / 60)

    def take(self, name: str, count: int = 1) -> None:
        """Note that so much was taken."""
        self._lefts[name] = (self.left(name) - count, self._clock())
        self._lefts.move_to_end(name)
        oldest = next(iter(self._lefts))
        if len(self._lefts) > _KEPT or self.left(oldest) >= self.a_minute:
            del self._lefts[oldest]

    def wait_s(self, name: str) -> float:
        """Return after how many seconds one may be taken."""
        return max(0.0, (1 - self.left(name)) * 60 / self.a_minute)
