"""Lets one process write a warehouse: a file lock that the kernel frees when its holder dies.

Used by the runner and by a separate dbt; looks only ask who holds it. The checkpoint is in the
warehouse, so one lock covers both. In a bucket a lease keeps other machines away. The holder
describes itself in a file beside the lock, which it keeps locked, too. A look asks that file, and
so never gets in a runner's way. The JVM of a holder has the lock, but not that file: it may write
on when its Python was killed.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace

from livemart.errors import StateError
from livemart.state.holders import Holder
from livemart.state.lease import hold_lease, holder_elsewhere
from livemart.state.places import LocalFolder
from livemart.storage.location import StoragePlace
from livemart.storage.storage import Taken

# How long a lock is held while no process says that it holds it: its holder is about to say it. Or
# it was killed, and its JVM is about to end.
_PATIENCE_S = 60.0
_POLL_S = 0.05


class WarehouseLock:
    """A held lock.

    `descriptor`: its open file. A child that is given it holds the lock, too, as long as it lives,
    or until this holder gives the warehouse free.
    """

    def __init__(self, warehouse: StoragePlace, holder: Holder, descriptor: int) -> None:
        self.descriptor = descriptor
        self._file = LocalFolder(warehouse).holder
        self._open_files = ExitStack()
        self.holder = holder
        self._write()

    def announce_connect(self, port: int) -> None:
        """Let others know that dbt can join over Spark Connect at this port."""
        self.holder = replace(self.holder, connect_port=port)
        self._write()

    def close(self) -> None:
        """Give the warehouse free."""
        self._file.unlink(missing_ok=True)
        self._open_files.close()
        # To close the file would leave the lock to the children that have it open.
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def _write(self) -> None:
        draft = self._file.with_name(f".{self._file.name}.new")
        # Open until the end: somebody may look at the file that this one replaces.
        file = self._open_files.enter_context(draft.open("w", encoding="utf-8"))
        # Before it has its name: no process sees it unlocked while its writer lives, nor holds it.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.write(json.dumps(asdict(self.holder)))
        file.flush()
        draft.rename(self._file)


@contextmanager
def hold_warehouse(warehouse: StoragePlace) -> Iterator[WarehouseLock]:
    """Hold the right to write `warehouse` until the block ends or the process and its JVM die.

    Raises:
        StateError: RUNNER_LIVES, if another process holds it.
    """
    place = LocalFolder(warehouse)
    place.path.mkdir(parents=True, exist_ok=True)
    with place.lock.open("a") as file:
        _take(file.fileno(), warehouse)
        lock = WarehouseLock(warehouse, Holder.of_this_process(), file.fileno())
        try:
            with _leased(warehouse):
                yield lock
        finally:
            lock.close()


@contextmanager
def _leased(warehouse: StoragePlace) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lease(warehouse))
        except Taken:
            raise StateError(
                "RUNNER_LIVES",
                f"{warehouse}: held by {holder_elsewhere(warehouse) or 'another machine'}",
                hint="stop it, or wait for its end: a lease that is not renewed ends within two "
                "minutes. If its machine is gone, `livemart unlock` breaks the lease",
            ) from None
        yield


def runner_lives(warehouse: StoragePlace) -> StateError:
    """Return the error that names the holder of `warehouse`."""
    unknown = "another process: the JVM of a killed runner, or a runner of another version"
    return StateError(
        "RUNNER_LIVES",
        f"{warehouse}: held by {who_holds(warehouse) or unknown}",
        hint="stop it, wait for its end, or choose another --warehouse",
    )


def is_held(warehouse: StoragePlace) -> bool:
    """Return True if some process says that it holds `warehouse`, and lives."""
    return _read_held(warehouse) is not None


def who_holds(warehouse: StoragePlace) -> Holder | None:
    """Return the holder of `warehouse`, by its own description; None if it is free.

    A warehouse in a bucket may be held on another machine.
    """
    text = _read_held(warehouse)
    if text is None:
        return holder_elsewhere(warehouse)
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError):
        # It is from another version.
        return None


def _take(descriptor: int, warehouse: StoragePlace) -> None:
    ends_at = time.monotonic() + _PATIENCE_S
    while not _is_free(descriptor, fcntl.LOCK_EX):
        if is_held(warehouse) or time.monotonic() > ends_at:
            raise runner_lives(warehouse)
        time.sleep(_POLL_S)


def _read_held(warehouse: StoragePlace) -> str | None:
    """Return the holder's description of itself; None if the warehouse is free."""
    try:
        with LocalFolder(warehouse).holder.open(encoding="utf-8") as file:
            # Looks do not exclude each other, and the writer has its lock before any of them.
            return None if _is_free(file.fileno(), fcntl.LOCK_SH) else file.read()
    except OSError:
        return None


def _is_free(descriptor: int, kind: int) -> bool:
    """Lock an open file, unless another has done so; the lock ends with the file's closing."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
