"""Readings of a side process: it imports them by name, so they import little."""

from __future__ import annotations

import os

from livemart.errors import PublishError
from livemart.store.snapshot_view import SnapshotView


def process_id(view: SnapshotView, *given: object) -> tuple[int, int, tuple[object, ...]]:
    """Return which process reads which snapshot, and what it was given."""
    return os.getpid(), view.published.snapshot_id, given


def fail(view: SnapshotView) -> None:
    """Raise an error of the store."""
    raise PublishError("STORE_UNREACHABLE", "away", hint="wait")


def crash(view: SnapshotView) -> None:
    """End the process that reads."""
    os._exit(9)
