"""Refuses writes below a place of a bucket once this process has no right to write there any more.

Used by the lease of a warehouse, which knows when that is, and by whatever commits or deletes. A
process that was paused commits nothing when it goes on, before any thread has looked at the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from livemart.storage.location import Location, StoragePlace

# By the URL of the place.
_CHECKS: dict[str, Callable[[], None]] = {}


@contextmanager
def fenced(place: StoragePlace, check: Callable[[], None]) -> Iterator[None]:
    """Call `check`, which may raise an error, before each write below a place in the block."""
    url = Location.of(place).url
    _CHECKS[url] = check
    try:
        yield
    finally:
        del _CHECKS[url]


def require_right_to_write(place: StoragePlace) -> None:
    """Ask the checks of all fences around a place.

    Raises:
        StateError: LEASE_LOST.
    """
    url = f"{Location.of(place).url}/"
    for fence, check in tuple(_CHECKS.items()):
        if url.startswith(f"{fence}/"):
            check()
