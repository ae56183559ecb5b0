"""Keeps snapshots readable for readers that need one for a while, each until a moment.

Used by the command `keep`, which writes it, by `status`, and by upkeep, which leaves the files of
these snapshots. Each has a separate file, so that two commands at once lose nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from livemart.state.atomic_files import (
    numbers_of,
    read_state_file,
    remove_state_file,
    write_state_file,
)
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace


def keep_snapshot(warehouse: StoragePlace, snapshot_id: int, until: datetime) -> None:
    """Keep a snapshot until a moment, UTC, which replaces an earlier moment."""
    write_state_file(_path(warehouse, snapshot_id), {"until": until})


def let_go(warehouse: StoragePlace, snapshot_id: int) -> bool:
    """Keep a snapshot no longer; return False if it was not kept."""
    was_kept = _until(warehouse, snapshot_id) is not None
    remove_state_file(_path(warehouse, snapshot_id))
    return was_kept


def kept_snapshots(warehouse: StoragePlace, now: datetime) -> Mapping[int, datetime]:
    """Return until when each snapshot is kept, by its id, without those whose time has passed."""
    ends = {}
    for snapshot_id in sorted(numbers_of(StateFolder(warehouse).kept_snapshots)):
        until = _until(warehouse, snapshot_id)
        if until is not None and until > now:
            ends[snapshot_id] = until
    return ends


def forget_ended(warehouse: StoragePlace, now: datetime) -> None:
    """Remove the notes of snapshots whose time has passed."""
    for snapshot_id in numbers_of(StateFolder(warehouse).kept_snapshots):
        until = _until(warehouse, snapshot_id)
        if until is not None and until <= now:
            remove_state_file(_path(warehouse, snapshot_id))


def _until(warehouse: StoragePlace, snapshot_id: int) -> datetime | None:
    noted = read_state_file(_path(warehouse, snapshot_id), dict[str, datetime]) or {}
    until = noted.get("until")
    return None if until is None else until.astimezone(UTC)


def _path(warehouse: StoragePlace, snapshot_id: int) -> StoragePlace:
    return StateFolder(warehouse).kept_snapshots / f"{snapshot_id}.json"
