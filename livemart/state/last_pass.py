"""Remembers the newest pass: its end, and its inputs if it left nothing to do.

Used by `refresh`, for which a pass that would find the same has nothing to do either, and by
`status`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from livemart.epoch import clock_moment
from livemart.state.atomic_files import look_at_state_file, remove_state_file, write_state_file
from livemart.state.checkpoint import last_commit_at
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage


@dataclass(frozen=True, slots=True)
class LogAtEnd:
    """A record log in which nothing waited."""

    relations: Sequence[str]
    """The landed tables that read it."""
    kind: str
    options: Mapping[str, Any]
    """Open it; they hold no secret."""
    ends: Mapping[str, int]
    """Its end, by partition."""


@dataclass(frozen=True, slots=True)
class LastPass:
    """The inputs of a pass that left every model at the newest snapshot."""

    epoch: str
    snapshot_id: int
    digest: str
    """Covers settings, environment, versions, all files of the project and all that wait."""
    tables: Mapping[str, tuple[str, int] | None]
    """Id and version by relation; None where there is no table."""
    until: datetime | None
    """When the clock moves on, UTC; None if nothing reads it."""
    is_served: bool
    """Whether the serving store holds models of the project."""
    logs: tuple[LogAtEnd, ...] = ()
    """Record logs that its sources read."""


def keep_pass(warehouse: StoragePlace, last: LastPass) -> None:
    """Keep the inputs of a pass."""
    write_state_file(StateFolder(warehouse).last_pass, last)


def kept_pass(warehouse: StoragePlace) -> LastPass | None:
    """Return the inputs of the newest pass; None if it has, or may have, left something to do."""
    return look_at_state_file(StateFolder(warehouse).last_pass, LastPass)


def forget_pass(warehouse: StoragePlace) -> None:
    """Forget it, before anything is written."""
    remove_state_file(StateFolder(warehouse).last_pass)


def last_pass_at(warehouse: StoragePlace) -> datetime | None:
    """Return when a pass last ran to its end, with news or without; None if none has."""
    state = StateFolder(warehouse)
    times = [last_commit_at(state.checkpoint)]
    if (entry := open_storage(state.path).head(state.last_pass.name)) is not None:
        times.append(clock_moment(entry.modified_s))
    return max((time for time in times if time is not None), default=None)
