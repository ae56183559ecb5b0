"""Removes files that no reader of a warehouse needs any more, and merges small ones, each day.

Used by the pipeline after a micro-batch, and by the command `maintain`. A file that is removed is
older than the retention of its table. The newest snapshot does not need it, nor does the one that
readers see, nor any that they keep. Commits of small batches replace files all day long, so that
without it a warehouse would grow for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from livemart.delta.properties import RETENTION
from livemart.delta.upkeep.old_files import old_files, remove_file, remove_old_entries
from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError, StateError, first_lines
from livemart.land.letters.dead_letters import TABLE
from livemart.land.letters.redriven import forget_done
from livemart.plan.stored_queries import STAGES, is_stage_table
from livemart.run.corrected_files import look_into_tables
from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.checkpoint import read_epoch, replaced_checkpoints
from livemart.state.kept_snapshots import forget_ended, kept_snapshots
from livemart.state.places import StateFolder
from livemart.state.snapshots import Snapshot, SnapshotLog
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage
from livemart.storage.storage import Storage

_EVERY = timedelta(days=1)
_LEAST_INTERVAL = timedelta(hours=1)
# Small files of a partition to which nothing was written for so long are merged, for some seconds.
_QUIET = timedelta(days=1)
_MERGING_S = 10.0


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """How many files of a table were or would be removed, and how large they are together.

    `error`: why the rest could not be removed.
    """

    table: str
    count: int = 0
    size_bytes: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the warehouse, or of a stage. `table_id`: None if `error` keeps it from a look."""

    relation: str
    storage: Storage
    table_id: str | None = None
    error: str | None = None


def _list_tables(tables: Warehouse) -> list[_Table]:
    listed = []
    for relation in (*tables.relations(), *filter(tables.exists, tables.folders_of(STAGES))):
        table = _Table(relation, tables.storage(relation))
        try:
            listed.append(replace(table, table_id=tables.table_id(relation)))
        except LivemartError as error:
            listed.append(replace(table, error=first_lines(error)))
    return listed


def remove_old_files(
    warehouse: StoragePlace,
    now: datetime,
    retention: timedelta = RETENTION,
    *,
    is_trial: bool = False,
    forgets_snapshots: bool = False,
    listed: Sequence[_Table] | None = None,
) -> Iterator[RemovedFiles]:
    """Remove the old files of each table, and of the state; yield the result of each.

    Args:
        warehouse: root of all tables.
        now: the wall clock, UTC, by which readers keep snapshots.
        retention: for what is no table's; each table has its own.
        is_trial: nothing is removed.
        forgets_snapshots: rows of the snapshot log go as well: no other process writes it.
        listed: all tables, if they are listed already.
    """
    log = SnapshotLog(warehouse)
    ends = kept_snapshots(warehouse, now)
    by_readers = map(log.row, ends)
    rows = [row for row in (log.newest(), log.newest_published(), *by_readers) if row is not None]
    states = {(state.table_id, state.version) for row in rows for state in row.stored.values()}
    for table in _list_tables(Warehouse(warehouse)) if listed is None else listed:
        relation = table.relation
        versions = {row.sources[relation] for row in rows if relation in row.sources}
        named = {version for id_, version in states if id_ == table.table_id}
        if table.error is not None:
            yield RemovedFiles(relation, error=table.error)
        elif is_stage_table(relation) and rows and not named:
            yield _drop(relation, table.storage, now - retention, is_trial=is_trial)
        else:
            yield _remove(relation, table.storage, versions | named, is_trial=is_trial)
    if rows:
        storage = open_storage(StateFolder(warehouse).snapshots)
        removed = _remove("snapshots", storage, (), is_trial=is_trial)
        if forgets_snapshots and not is_trial and removed.error is None:
            try:
                # Those whose tables can no longer be read.
                log.forget(now - retention, ends)
            except Exception as error:
                # Whatever it is: it costs no micro-batch.
                removed = replace(removed, error=first_lines(error))
        yield removed
    yield from _remove_epochs(StateFolder(warehouse), now - retention, is_trial=is_trial)


def _remove_epochs(
    state: StateFolder[StoragePlace], before: datetime, *, is_trial: bool
) -> Iterator[RemovedFiles]:
    """Remove the files of earlier epochs: checkpoints that others replaced, their manifests."""
    folders = replaced_checkpoints(state.checkpoint)
    # A torn one is refused where it is opened to be written.
    with suppress(StateError):
        if (epoch := read_epoch(state.checkpoint)) is not None:
            names = open_storage(state.files).folders()
            folders += [state.files / name for name in names if name != epoch.id]
    for folder in folders:
        removed = _drop(folder.name, open_storage(folder), before, is_trial=is_trial)
        if removed.count or removed.error:
            yield removed


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


def _drop(name: str, storage: Storage, before: datetime, *, is_trial: bool) -> RemovedFiles:
    """Remove a folder that nothing reads any more, once nothing was written to it since a time."""
    try:
        entries = storage.entries()
        newest_s = max((entry.modified_s for entry in entries), default=0.0)
        if newest_s > before.timestamp():
            return RemovedFiles(name)
        if not is_trial:
            storage.delete(entry.name for entry in entries)
    except Exception as error:
        # Whatever it is: it costs no micro-batch.
        return RemovedFiles(name, error=first_lines(error))
    return RemovedFiles(name, len(entries), sum(entry.size for entry in entries))


def keep_up(
    warehouse: StoragePlace,
    now: datetime,
    step: Callable[[str], None],
    retention: timedelta = RETENTION,
) -> None:
    """Remove old files and merge small ones, once a day; a failure is tried again the next time.

    A retention of less than a day has it done as often, but no more than once an hour.

    Args:
        warehouse: root of all tables; a micro-batch has just been published.
        now: the wall clock, UTC.
        step: is called when it begins.
        retention: how long old files, versions and snapshots stay.
    """
    try:
        last = _last_upkeep(warehouse)
        # A clock that was set back is no reason to wait for it.
        if last is not None and timedelta(0) <= now - last < _interval(retention):
            return
        # Noted before: what fails is tried again tomorrow, not after each micro-batch.
        note_upkeep(warehouse, now)
        # A new warehouse has no old file.
        if last is not None:
            step("removing old files")
            # Each file is read once.
            tables = Warehouse(warehouse, cache_bytes=0)
            listed = _list_tables(tables)
            _tidy(tables, listed, SnapshotLog(warehouse).newest(), now, retention)
            _forget_letters(tables, now - retention)
            removed = remove_old_files(
                warehouse, now, retention, forgets_snapshots=True, listed=listed
            )
            _report([*removed])
            forget_ended(warehouse, now)
            note_upkeep(warehouse, now, look_into_tables(tables, now, _noted(warehouse)))
    except Exception as error:
        # The micro-batch is published: no fault of this may run it again.
        _report([RemovedFiles(str(warehouse), error=first_lines(error))])


def _interval(retention: timedelta) -> timedelta:
    """Return the time between two upkeeps: a day, or a shorter retention, but an hour at least."""
    return min(_EVERY, max(retention, _LEAST_INTERVAL))


def _tidy(
    tables: Warehouse,
    listed: Sequence[_Table],
    newest: Snapshot | None,
    now: datetime,
    retention: timedelta,
) -> None:
    """Give the tables that livemart fills their retention, and merge small files of past days."""
    if newest is None:
        return
    filled = {state.table_id for state in newest.stored.values()}
    until, merged = time.monotonic() + _MERGING_S, 0
    for table in listed:
        relation = table.relation
        # The removal of its files reports a table that cannot be opened.
        if table.error or (relation not in newest.landed and table.table_id not in filled):
            continue
        try:
            tables.keep_for(relation, retention)
            left_s = until - time.monotonic()
            merged += tables.compact(relation, now - _QUIET, seconds=left_s) if left_s > 0 else 0
        except Exception as error:
            _warn_of(relation, error)
    if merged:
        structlog.get_logger().info("small_files_merged", files=merged)


def _forget_letters(tables: Warehouse, before: datetime) -> None:
    """Remove dead letters that were handed over again, or dismissed, before a time."""
    for relation in tables.relations(TABLE):
        try:
            if count := forget_done(tables, relation, before):
                structlog.get_logger().info("done_letters_removed", table=relation, letters=count)
        except Exception as error:
            _warn_of(relation, error)


def _warn_of(relation: str, error: Exception) -> None:
    """Log a fault, whatever it is: none costs a micro-batch."""
    structlog.get_logger().warning(
        "table_not_kept_up",
        table=relation,
        error=first_lines(error),
        hint="nothing else waits for it; tried again tomorrow",
    )


def _report(removed: Sequence[RemovedFiles]) -> None:
    log = structlog.get_logger()
    for files in removed:
        if files.error is not None:
            log.warning(
                "old_files_not_removed",
                table=files.table,
                error=files.error,
                hint="nothing else waits for it; `livemart maintain` tries again",
            )
    if count := sum(files.count for files in removed):
        log.info("old_files_removed", files=count, bytes=sum(files.size_bytes for files in removed))


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
