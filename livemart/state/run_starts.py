"""Keeps the start of a micro-batch, so that a repeated one gives its run the same start.

Used where SQL says something of the run that compiles it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace


@dataclass(frozen=True, slots=True)
class _RunStart:
    epoch: str
    batch_id: int
    started_at: datetime


def run_start(warehouse: StoragePlace, epoch: str, batch_id: int, now: datetime) -> datetime:
    """Return when a micro-batch began first: `now`, if it has not begun before.

    Args:
        now: UTC.
    """
    path = StateFolder(warehouse).run
    newest = read_state_file(path, _RunStart)
    if newest is not None and (newest.epoch, newest.batch_id) == (epoch, batch_id):
        return newest.started_at
    write_state_file(path, _RunStart(epoch, batch_id, now))
    return now
