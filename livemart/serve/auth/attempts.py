"""Counts wrong tokens by address, so that no one can try many.

Used where a token is refused. Only the addresses that tried last are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

_KEPT_ADDRESSES = 10_000


class Attempts:
    """Counts wrong tokens by address: so many a minute, then 429 instead of 401.

    Args:
        a_minute: how many an address may send.
        clock: seconds that only ever rise.
    """

    def __init__(self, a_minute: int = 60, *, clock: Callable[[], float] = monotonic) -> None:
        self._a_minute = a_minute
        self._clock = clock
        self._allowances: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def is_one_too_many(self, address: str) -> bool:
        """Count one wrong token; return True if there were too many."""
        now = self._clock()
        left, at = self._allowances.pop(address, (float(self._a_minute), now))
        left = min(self._a_minute, left + (now - at) * self._a_minute / 60) - 1
        self._allowances[address] = (max(left, 0.0), now)
        if len(self._allowances) > _KEPT_ADDRESSES:
            self._allowances.popitem(last=False)
        return left < 0
