"""Lets one machine write a warehouse in a bucket: its runner renews an object there.

Used by the lock, which keeps the processes of one machine apart. A lease that is not renewed ends,
and some time later another machine may take it, as two clocks may be apart. Its holder stops before
that: what it has begun to write must not meet the next one.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

from pydantic import TypeAdapter

from livemart.errors import LivemartError, StateError
from livemart.state.atomic_files import read_file, read_state_file, remove_state_file, replace_file
from livemart.state.holders import Holder
from livemart.state.places import LocalFolder, StateFolder
from livemart.storage.fence import fenced
from livemart.storage.location import Location, StoragePlace
from livemart.storage.opening import open_storage
from livemart.storage.probe import probe_store
from livemart.storage.storage import Changed, ObjectEntry, Taken

_TERM = timedelta(seconds=60)
_RENEWAL_S = 15.0
# The holder stops so long before the end.
_RESERVE = timedelta(seconds=15)
# Clocks of two machines may be so far apart, each by half of it from the store's.
_APART = timedelta(seconds=30)
_LOOK_S = 1.0
# Linux stops its monotonic clock while a machine is suspended; other systems do not.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a warehouse: `id` is random, `until` its end in UTC if not renewed."""

    id: str
    holder: Holder
    until: datetime

    def is_over(self, now: datetime) -> bool:
        """Return whether no holder goes by it any more, whatever its clock says."""
        return now > self.until + _APART


_FORM = TypeAdapter(Lease)


def read_lease(warehouse: StoragePlace) -> Lease | None:
    """Return the lease of a warehouse, which may be over; None on a disk, or if there is none."""
    if not Location.of(warehouse).scheme:
        return None
    return read_state_file(StateFolder(warehouse).lease, Lease)


def holder_elsewhere(warehouse: StoragePlace) -> Holder | None:
    """Return the runner on another machine that writes a warehouse; None if there is none."""
    lease = read_lease(warehouse)
    if lease is None or lease.is_over(datetime.now(UTC)) or lease.id == _own_id(warehouse):
        return None
    return lease.holder


def break_lease(warehouse: StoragePlace) -> str | None:
    """Remove the lease of a warehouse; return how its holder is named, None if there was none."""
    place = StateFolder(warehouse).lease
    if not Location.of(warehouse).scheme or open_storage(place.parent).head(place.name) is None:
        return None
    lease = read_lease(warehouse)
    remove_state_file(place)
    return "a runner of another version" if lease is None else str(lease.holder)


def require_leases(warehouse: StoragePlace) -> None:
    """Check that a lease would keep other machines away from a warehouse in a bucket.

    Raises:
        ConfigError: STORE_UNCONDITIONAL, CLOCK_APART.
    """
    probe_store(open_storage(StateFolder(warehouse).path), _APART.total_seconds() / 2)


@contextmanager
def hold_lease(
    warehouse: StoragePlace, give_up: Callable[[StateError], None] | None = None
) -> Iterator[None]:
    """Hold the lease of a warehouse in a bucket until the block ends; nothing on a disk.

    The caller holds the lock of this machine.

    Args:
        warehouse: root of all tables.
        give_up: is called from another thread once the lease is lost; ends the process if None.

    Raises:
        Taken: a holder elsewhere has it.
        ConfigError: STORE_UNCONDITIONAL, CLOCK_APART.
    """
    if not Location.of(warehouse).scheme:
        yield
        return
    keeper = _Keeper(warehouse, give_up or _end_process)
    keeper.take()
    ended = Event()
    threads = [
        Thread(target=work, args=(ended,), name="lease", daemon=True)
        for work in (keeper.renew_until, keeper.watch_until)
    ]
    with fenced(warehouse, keeper.require_time):
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            keeper.end()


class _Keeper:
    """Takes, renews and ends one lease."""

    def __init__(self, warehouse: StoragePlace, give_up: Callable[[StateError], None]) -> None:
        self._warehouse = warehouse
        self._place = StateFolder(warehouse).lease
        self._storage = open_storage(self._place.parent)
        self._own = LocalFolder(warehouse).lease_id
        self._id = uuid.uuid4().hex
        self._holder = Holder.of_this_process(names_host=True)
        self._give_up = give_up
        self._ends_at = 0.0

    def take(self) -> None:
        require_leases(self._warehouse)
        before = _own_id(self._warehouse)
        replace_file(self._own, self._id)
        asked_at = _now_s()
        try:
            self._storage.create(self._place.name, self._content())
        except Taken:
            entry = self._storage.head(self._place.name)
            lease = read_lease(self._warehouse)
            is_free = lease is not None and (lease.id == before or lease.is_over(datetime.now(UTC)))
            if entry is None:
                # Its holder has ended meanwhile.
                self._storage.create(self._place.name, self._content())
            elif not is_free:
                raise
            else:
                self._replace(entry)
        self._ends_at = asked_at + (_TERM - _RESERVE).total_seconds()

    def _replace(self, entry: ObjectEntry) -> None:
        try:
            self._storage.replace_if(self._place.name, self._content(), entry.etag)
        except Changed as error:
            raise Taken(str(self._place)) from error

    def renew_until(self, ended: Event) -> None:
        while not ended.wait(_RENEWAL_S):
            asked_at = _now_s()
            try:
                entry, lease = self._storage.head(self._place.name), read_lease(self._warehouse)
                if entry is None or lease is None or lease.id != self._id:
                    raise Changed(str(self._place))
                self._storage.replace_if(self._place.name, self._content(), entry.etag)
                self._ends_at = asked_at + (_TERM - _RESERVE).total_seconds()
            except Changed:
                if not ended.is_set():
                    self._give_up(self._lost("another runner has it, or somebody removed it"))
                return
            except (LivemartError, OSError):
                # The other thread gives up in time.
                continue

    def watch_until(self, ended: Event) -> None:
        while not ended.wait(_LOOK_S):
            try:
                self.require_time()
            except StateError as error:
                self._give_up(error)
                return

    def require_time(self) -> None:
        """Check that the lease has time left.

        Raises:
            StateError: LEASE_LOST.
        """
        if _now_s() > self._ends_at:
            raise self._lost("it was paused, or the bucket did not let it renew the lease")

    def end(self) -> None:
        """Remove the lease if it is still ours; one that cannot be removed ends by itself."""
        with suppress(LivemartError, OSError):
            lease = read_lease(self._warehouse)
            if lease is not None and lease.id == self._id:
                remove_state_file(self._place)

    def _content(self) -> bytes:
        lease = Lease(self._id, self._holder, datetime.now(UTC) + _TERM)
        return _FORM.dump_json(lease)

    def _lost(self, why: str) -> StateError:
        return StateError(
            "LEASE_LOST",
            f"{self._warehouse}: this runner has lost its lease: {why}",
            hint="nothing is lost: the next run goes on from the newest snapshot; "
            "`livemart status` says who writes the warehouse now",
        )


def _now_s() -> float:
    """Return seconds that only rise, and also while the machine sleeps."""
    return time.clock_gettime(_BOOT_CLOCK)


def _own_id(warehouse: StoragePlace) -> str | None:
    """Return the id of the last lease of this machine."""
    try:
        return read_file(LocalFolder(warehouse).lease_id).decode()
    except OSError:
        return None


def _end_process(error: StateError) -> None:
    """End at once, and the JVM with its Python: another machine may write from now on."""
    sys.stderr.write(f"{error}\n")
    sys.stderr.flush()
    os._exit(error.exit_code)
