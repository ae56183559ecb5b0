"""Counts wrong tokens by address, so that no one can try many.

Used where a token is refused: a right one is let in, even if others from its address are wrong.
Behind a proxy that `trusted_proxies` names, the address is that of the proxy's client.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from livemart.serve.http.origin import origin_of
from livemart.serve.http.quota import Quota


class Attempts:
    """Counts wrong tokens by address: so many a minute, then 429 instead of 401.

    Args:
        a_minute: how many an address may send.
        clock: seconds that only ever rise.
    """

    def __init__(self, a_minute: int = 60, *, clock: Callable[[], float] = monotonic) -> None:
        self._wrong = Quota(a_minute, clock=clock)

    def is_one_too_many(self, address: str) -> bool:
        """Count one wrong token; return True if there were too many, which takes nothing."""
        origin = origin_of(address)
        if self._wrong.left(origin) < 1:
            return True
        self._wrong.take(origin)
        return False
