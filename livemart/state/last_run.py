"""Keeps the state of the newest run of a warehouse: under way, ended, failed, killed.

Used by the commands that write, and to report on them: by `status` and the server. A
failure stays until a later run, or a micro-batch of it, has succeeded; sums go on from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.lock import who_holds
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

# `incomplete`: it has run to its end, but the snapshot is held or lacks models.
Ending = Literal["ok", "incomplete", "failed", "stopped", "killed"]

# The code of a run whose process is gone without a word.
KILLED = "KILLED"


@dataclass(frozen=True, slots=True)
class RunFailure:
    """Why a run, or a micro-batch of it, has failed."""

    at: datetime
    code: str
    models: tuple[str, ...]
    """Unique ids of the models that failed, if a model was the cause."""
    message: str
    """The place and the value found."""


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """How many of the models of a build are made."""

    done: int
    models: int


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Sums over all runs of a warehouse."""

    batches: int = 0
    """Micro-batches that ended with a snapshot."""
    batch_seconds: float = 0.0
    """The seconds of these batches."""
    failed_batches: int = 0
    """Failed attempts of micro-batches."""
    landed: Mapping[str, int] = field(default_factory=dict)
    """Rows by landed table."""
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    """Rows by landed table."""


@dataclass(frozen=True, slots=True)
class TestStanding:
    """The standing of a data test that does not pass."""

    __test__ = False

    status: str
    rows: int | None
    """The rows that fail; None if they were not counted."""
    place: str = ""
    """File and line, if it holds the snapshot back."""


@dataclass(frozen=True, slots=True)
class NewestBatch:
    """The newest micro-batch that ended with a snapshot."""

    snapshot_id: int
    is_held: bool
    took_s: float
    tests: Mapping[str, TestStanding] = field(default_factory=dict)
    """The tests that do not pass, by unique id."""
    drift: Mapping[str, int] = field(default_factory=dict)
    """The number of fields that differ from their declaration, by landed table."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of memory that the process of a run holds, and its JVM; 0 if there was none."""

    python_bytes: int
    jvm_bytes: int


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run; times are UTC."""

    command: str
    pid: int
    began_at: datetime
    noted_at: datetime
    """When this was written."""
    ended_at: datetime | None = None
    ending: Ending | None = None
    """None while the run goes on."""
    failure: RunFailure | None = None
    """The failure of this run, or of an earlier one after which none has succeeded."""
    progress: BuildProgress | None = None
    """The progress of a build under way."""
    totals: RunTotals = field(default_factory=RunTotals)
    newest: NewestBatch | None = None
    memory: MemoryUse | None = None
    """Held after the newest micro-batch that made a snapshot; None if unknown."""


_FORM = TypeAdapter(LastRun)


def keep_last_run(warehouse: StoragePlace, run: LastRun) -> None:
    """Store the course of a run, in place of the one before."""
    write_state_file(StateFolder(warehouse).last_run, run)


def read_last_run(warehouse: StoragePlace) -> LastRun | None:
    """Return how the newest run goes; None if none was kept, or its file is unreadable.

    One that has not ended and whose process does not hold the warehouse was killed.
    """
    with suppress(OSError):
        run = read_state_file(StateFolder(warehouse).last_run, LastRun)
        if run is None or run.ending is not None:
            return run
        holder = who_holds(warehouse)
        if holder is not None and holder.pid == run.pid:
            return run
        # It may have ended between the two looks.
        if (again := read_state_file(StateFolder(warehouse).last_run, LastRun)) != run:
            return again
        message = "the process ended without a word: it was killed, or its machine went down"
        failure = RunFailure(run.noted_at, KILLED, (), message)
        return replace(run, ending="killed", failure=failure, progress=None)
    return None


def run_to_json(run: LastRun) -> Any:
    """Return a run as JSON values."""
    return to_jsonable_python(run)


def run_from_json(value: Any) -> LastRun | None:
    """Return the run that `run_to_json` was given; None for values of another version."""
    try:
        return _FORM.validate_python(value)
    except ValidationError:
        return None
