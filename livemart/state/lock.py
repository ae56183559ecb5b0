"""Lets one process write a warehouse: a file lock that the kernel frees when its holder dies.

Used by the runner and by a dbt of its own; looks only ask who holds it. The checkpoint lies in the
warehouse, so one lock covers both. What the holder says of itself stands beside the lock.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from livemart.errors import StateError
from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder

# Whoever only looks whether the lock is held takes it for a moment.
_PATIENCE_S = 0.5


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes a warehouse. `connect_port`: loopback port of its Spark Connect server, if any."""

    pid: int
    command: str
    started_at: str
    connect_port: int | None = None

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command}), since {self.started_at}"


class WarehouseLock:
    """A held lock."""

    def __init__(self, warehouse: Path, holder: Holder) -> None:
        self._warehouse = warehouse
        self.holder = holder
        self._write()

    def announce_connect(self, port: int) -> None:
        """Let others know that dbt can join over Spark Connect at this port."""
        self.holder = replace(self.holder, connect_port=port)
        self._write()

    def _write(self) -> None:
        replace_file(StateFolder(self._warehouse).holder, json.dumps(asdict(self.holder)))


@contextmanager
def hold_warehouse(warehouse: Path) -> Iterator[WarehouseLock]:
    """Hold the right to write `warehouse` until the block ends or the process dies.

    Raises:
        StateError: RUNNER_LIVES, if another process holds it.
    """
    lock = _file_lock(warehouse)
    try:
        lock.acquire(timeout=_PATIENCE_S, poll_interval=0.05)
    except Timeout:
        raise runner_lives(warehouse) from None
    try:
        now = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
        yield WarehouseLock(warehouse, Holder(os.getpid(), command, now))
    finally:
        StateFolder(warehouse).holder.unlink(missing_ok=True)
        lock.release()


def runner_lives(warehouse: Path) -> StateError:
    """Return the error that says who holds `warehouse`."""
    holder = _read_holder(warehouse)
    return StateError(
        "RUNNER_LIVES",
        f"{warehouse}: held by {holder or 'another process'}",
        hint="stop it, wait for its end, or choose another --warehouse",
    )


def is_held(warehouse: Path) -> bool:
    """Return True if some process holds `warehouse`."""
    if not StateFolder(warehouse).lock.exists():
        return False
    lock = _file_lock(warehouse)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def who_holds(warehouse: Path) -> Holder | None:
    """Return who holds `warehouse`, as it said itself; None if nobody does."""
    return _read_holder(warehouse) if is_held(warehouse) else None


def _file_lock(warehouse: Path) -> FileLock:
    StateFolder(warehouse).path.mkdir(parents=True, exist_ok=True)
    # Taken by whichever thread of dbt comes first, and given back at the end of the process.
    return FileLock(StateFolder(warehouse).lock, thread_local=False)


def _read_holder(warehouse: Path) -> Holder | None:
    try:
        return Holder(**json.loads(StateFolder(warehouse).holder.read_text()))
    except (OSError, ValueError, TypeError):
        # Not written yet, or just gone.
        return None
