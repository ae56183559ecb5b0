"""Removes files and log entries of tables that no reader needs any more, once a day.

Used by the pipeline after a micro-batch, and by the command `maintain`. A file that is removed is
older than the retention of its table (seven days). The newest snapshot does not need it, nor does
the one that readers see, nor any that they keep. Commits of small batches replace files all day
long, so that without it a warehouse would grow for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from livemart.delta.old_files import old_files, remove_file, remove_old_entries
from livemart.delta.properties import RETENTION
from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError, first_lines
from livemart.plan.stored_queries import STAGES
from livemart.run.corrected_files import look_into_tables
from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.kept_snapshots import forget_ended, kept_snapshots
from livemart.state.places import StateFolder
from livemart.state.snapshots import SnapshotLog
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage
from livemart.storage.storage import Storage

_EVERY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """How many files of a table were or would be removed, and how large they are together.

    `error`: why the rest could not be removed.
    """

    table: str
    count: int = 0
    size_bytes: int = 0
    error: str | None = None


def remove_old_files(
    warehouse: StoragePlace, now: datetime, *, is_trial: bool = False
) -> Iterator[RemovedFiles]:
    """Remove the old files of each table, and of the snapshot log; yield the result of each.

    Args:
        warehouse: root of all tables.
        now: the wall clock, UTC, by which readers keep snapshots.
        is_trial: nothing is removed.
    """
    tables, log = Warehouse(warehouse), SnapshotLog(warehouse)
    by_readers = map(log.row, kept_snapshots(warehouse, now))
    rows = [row for row in (log.newest(), log.newest_published(), *by_readers) if row is not None]
    states = {(it.table_id, it.version) for row in rows for it in row.stored.values()}
    for relation in (*tables.relations(), *filter(tables.exists, tables.folders_of(STAGES))):
        versions = {row.sources[relation] for row in rows if relation in row.sources}
        try:
            table_id = tables.table_id(relation)
        except LivemartError as error:
            yield RemovedFiles(relation, error=first_lines(error))
            continue
        named = {version for id_, version in states if id_ == table_id}
        storage = tables.storage(relation)
        if relation.startswith(f"{STAGES}.") and rows and not named:
            yield _drop(relation, storage, now, is_trial=is_trial)
        else:
            yield _remove(relation, storage, versions | named, is_trial=is_trial)
    if rows:
        storage = open_storage(StateFolder(warehouse).snapshots)
        yield _remove("snapshots", storage, (), is_trial=is_trial)


def _forget_snapshots(warehouse: StoragePlace, now: datetime) -> RemovedFiles:
    """Forget the snapshots whose tables can no longer be read; return why, if that fails."""
    try:
        SnapshotLog(warehouse).forget(now - RETENTION, kept_snapshots(warehouse, now).keys())
    except Exception as error:
        # Whatever it is: it costs no micro-batch.
        return RemovedFiles("snapshots", error=first_lines(error))
    return RemovedFiles("snapshots")


def _remove(
    table: str, storage: Storage, versions: Collection[int], *, is_trial: bool
) -> RemovedFiles:
    count = size_bytes = 0
    try:
        for file in old_files(storage, versions):
            if not is_trial:
                remove_file(storage, file.name)
            size_bytes += file.size
            count += 1
        if not is_trial:
            remove_old_entries(storage, versions)
    except Exception as error:
        # Whatever it is: it costs no micro-batch.
        return RemovedFiles(table, count, size_bytes, first_lines(error))
    return RemovedFiles(table, count, size_bytes)


def _drop(stage: str, storage: Storage, now: datetime, *, is_trial: bool) -> RemovedFiles:
    """Remove the table of a stage that no model has any more, once nothing was written for days."""
    try:
        entries = storage.entries()
        newest_s = max((entry.modified_s for entry in entries), default=now.timestamp())
        if newest_s > (now - RETENTION).timestamp():
            return RemovedFiles(stage)
        if not is_trial:
            storage.delete(entry.name for entry in entries)
    except Exception as error:
        # Whatever it is: it costs no micro-batch.
        return RemovedFiles(stage, error=first_lines(error))
    return RemovedFiles(stage, len(entries), sum(entry.size for entry in entries))


def keep_up(warehouse: StoragePlace, now: datetime, step: Callable[[str], None]) -> None:
    """Remove old files once a day; a failure is logged, and tried again tomorrow.

    Args:
        warehouse: root of all tables; a micro-batch has just been published.
        now: the wall clock, UTC.
        step: is called when it begins.
    """
    try:
        last = _last_upkeep(warehouse)
        # A clock that was set back is no reason to wait for it.
        if last is not None and timedelta(0) <= now - last < _EVERY:
            return
        # Noted before: what fails is tried again tomorrow, not after each micro-batch.
        note_upkeep(warehouse, now)
        # A new warehouse has no old file.
        if last is not None:
            step("removing old files")
            _report([*remove_old_files(warehouse, now), _forget_snapshots(warehouse, now)])
            forget_ended(warehouse, now)
            note_upkeep(
                warehouse, now, look_into_tables(Warehouse(warehouse), now, _noted(warehouse))
            )
    except Exception as error:
        # The micro-batch is published: no fault of this may run it again.
        _report([RemovedFiles(str(warehouse), error=first_lines(error))])


def _report(removed: Sequence[RemovedFiles]) -> None:
    log = structlog.get_logger()
    for it in removed:
        if it.error is not None:
            log.warning(
                "old_files_not_removed",
                table=it.table,
                error=it.error,
                hint="nothing else waits for it; `livemart maintain` tries again",
            )
    if count := sum(it.count for it in removed):
        log.info("old_files_removed", files=count, bytes=sum(it.size_bytes for it in removed))


def note_upkeep(
    warehouse: StoragePlace, now: datetime, looked_into: Mapping[str, datetime] | None = None
) -> None:
    """Keep when old files were removed last, and when tables were looked into, by their id."""
    looked_into = _noted(warehouse) if looked_into is None else looked_into
    write_state_file(StateFolder(warehouse).upkeep, {**looked_into, "at": now})


def _last_upkeep(warehouse: StoragePlace) -> datetime | None:
    return _noted(warehouse).get("at")


def _noted(warehouse: StoragePlace) -> dict[str, datetime]:
    return read_state_file(StateFolder(warehouse).upkeep, dict[str, datetime]) or {}
