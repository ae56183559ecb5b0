"""Waits for what another thread or process does: for a condition, never for a time."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

# Only a hang uses it up; below the limit of a test, so that it is the wait that is named.
PATIENCE_S = 240.0


def wait_until(is_true: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """Wait until something is true, and fail if it does not come."""
    ends_at = monotonic() + within_s
    while not is_true():
        assert monotonic() < ends_at, "it did not come true in time"
        sleep(0.02)
