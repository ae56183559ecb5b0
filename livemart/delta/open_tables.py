"""Keeps tables open, so that asking for a version costs two looks and no replay of the log.

Used by the warehouse alone. If a table was dropped, created again or written by others, the next
question notices. In a batch only the first one looks: in a bucket each look is a request.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from livemart.delta.cache import FileCache
from livemart.delta.log import LogEntry, LogFile, has_commits, log_file, read_entry
from livemart.delta.properties import CHECKPOINT_INTERVAL
from livemart.delta.tags import Tag
from livemart.delta.version import SharedFiles, TableVersion, version_gone
from livemart.errors import RefreshError
from livemart.project.declared.partition_columns import CODE, FAR_HINT, far
from livemart.storage.storage import Storage

_CACHED_INDEXES = 64
_CACHED_ENTRIES = 256
# A larger commit names more files than are worth keeping.
_MOST_ACTIONS = 20
# The message of deltalake 1.6.6 about a partition of the log.
_UNREAD = re.compile(r"Failed to parse value '(.*)' as '(date|timestamp|timestamp_ntz)'")

_Known = TypeVar("_Known", TableVersion, LogEntry)


@dataclass(slots=True)
class _Handle:
    storage: Storage
    lock: threading.RLock
    shared: SharedFiles
    table: DeltaTable | None = None
    index: TableVersion | None = None
    log_file: LogFile | None = None
    period: int = 0
    """The period in which the newest version was looked up."""
    log_files: dict[int, LogFile] = field(default_factory=dict)
    """By version, those that were looked up in this period."""
    transactions: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    """By application id, the version of the table at the last question, and the answer."""


def open_table(storage: Storage, version: int | None = None) -> DeltaTable:
    """Open the table of a storage by deltalake. Raises DeltaError."""
    return DeltaTable(storage.location.url, version, storage_options=storage.options() or None)


class OpenTables:
    """The newest version of each table, and pinned versions that were asked for lately."""

    def __init__(self, storage: Storage, cache_bytes: int) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._handles: dict[str, _Handle] = {}
        self._files = FileCache(cache_bytes)
        self._indexes: OrderedDict[LogFile, TableVersion] = OrderedDict()
        self._entries: OrderedDict[LogFile, LogEntry] = OrderedDict()
        # Grows whenever earlier looks no longer count.
        self._period = 1
        self._is_only_writer = False

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        """Look at each table once within the block, and after each commit of this object.

        See `look_again` and `written_beside`.
        """
        self.look_again()
        self._is_only_writer = True
        try:
            yield
        finally:
            self._is_only_writer = False

    def look_again(self, relation: str | None = None) -> None:
        """Look at a table again at the next question, or at all of them."""
        if relation is None:
            self._period += 1
            return
        handle = self._handle(relation)
        with handle.lock:
            handle.period = 0

    def written_beside(self) -> None:
        """Look at every question from now on: others write tables within the block, too."""
        self._is_only_writer = False

    def _is_known(self, handle: _Handle) -> bool:
        return self._is_only_writer and handle.period == self._period

    def storage(self, relation: str) -> Storage:
        """Return the storage of `schema.identifier`."""
        return self._handle(relation).storage

    @contextmanager
    def held(self, relation: str) -> Iterator[tuple[DeltaTable, TableVersion]]:
        """Give a table at its newest version, and that version's files, for a commit.

        It looks in any case: a commit to a table that was removed meanwhile would leave a log with
        a gap. No other code here commits to the table within the block, which calls `look_again` if
        it asks for the table behind its commit.

        Raises:
            RefreshError: TABLE_MISSING.
        """
        handle = self._handle(relation)
        with handle.lock:
            handle.period = 0
            try:
                yield self.opened(relation)
            finally:
                # An error may come after a commit, too.
                handle.period = 0

    def opened(self, relation: str) -> tuple[DeltaTable, TableVersion]:
        """Return a table at its newest version, and that version's files.

        Raises:
            RefreshError: TABLE_MISSING.
        """
        handle = self._handle(relation)
        with handle.lock:
            newest = self.newest(relation)
            assert handle.table is not None
            return handle.table, newest

    def _handle(self, relation: str) -> _Handle:
        with self._lock:
            if (handle := self._handles.get(relation)) is None:
                storage = self._storage.below(relation.replace(".", "/", 1))
                handle = _Handle(storage, threading.RLock(), SharedFiles(files=self._files))
                self._handles[relation] = handle
            return handle

    def newest(self, relation: str) -> TableVersion:
        """Return the newest version's files, from the open handle if that is still newest."""
        handle = self._handle(relation)
        with handle.lock:
            if handle.index is not None and self._is_known(handle):
                return handle.index
            # As of before the look: it may be outdated by the time it ends.
            period = self._period
            handle.period = 0
            following = None
            if handle.index is not None and handle.table is not None:
                version = handle.index.version
                newest, following = (log_file(handle.storage, it) for it in (version, version + 1))
                if newest != handle.log_file:
                    handle.table = None  # dropped, or created again
                elif following is not None:
                    try:
                        handle.table.update_incremental()
                    except DeltaError:
                        handle.table = None
            if handle.table is None or handle.index is None or following is not None:
                if handle.table is None:
                    handle.table = self.open(relation)
                    handle.transactions.clear()
                handle.index = TableVersion(handle.table, relation, handle.storage, handle.shared)
                handle.log_file = log_file(handle.storage, handle.index.version)
            handle.period = period
            file, version = handle.log_file, handle.index.version
            handle.log_files = {} if file is None else {version: file}
            return handle.index

    def is_tagged(self, relation: str, tag: Tag) -> bool:
        """Return whether a table carries a batch, or a later one, at the version last looked up.

        The first answer reads all commits since the checkpoint; later ones read the new commits,
        if these are fewer.
        """
        handle = self._handle(relation)
        with handle.lock:
            assert handle.table is not None and handle.index is not None
            version = handle.index.version
            entries: list[LogEntry | None] = [None]
            before, newest = handle.transactions.get(tag.app_id, (None, None))
            if before is not None and version - before <= CHECKPOINT_INTERVAL:
                entries = [self.entry(relation, it) for it in range(before + 1, version + 1)]
            for entry in entries:
                if entry is None:
                    newest = handle.table.transaction_version(tag.app_id)
                    break
                newest = entry.transactions.get(tag.app_id, newest)
            handle.transactions[tag.app_id] = (version, newest)
            return newest is not None and newest >= tag.version

    def exists(self, relation: str) -> bool:
        """Return whether the folder holds a Delta table."""
        handle = self._handle(relation)
        if self._is_only_writer and handle.index is not None:
            # A look that the batch needs in any case; a list would be one more request.
            with suppress(RefreshError):
                self.newest(relation)
                return True
        return has_commits(handle.storage)

    def log_file(self, relation: str, version: int) -> LogFile | None:
        """Return the identity of a commit's file; None if it was removed, or never written."""
        handle = self._handle(relation)
        # A look that begins meanwhile has other files.
        files = handle.log_files if self._is_known(handle) else {}
        file = files.get(version) or log_file(handle.storage, version)
        if file is not None:
            files[version] = file
        return file

    def entry(self, relation: str, version: int) -> LogEntry | None:
        """Return the entry of a commit; None if its file was removed, or never written."""
        file = self.log_file(relation, version)
        if file is None:
            return None
        entry = self._entries.get(file) or read_entry(self.storage(relation), version)
        if entry is not None and entry.action_count <= _MOST_ACTIONS:
            self._remember(self._entries, file, entry, _CACHED_ENTRIES)
        return entry

    def _remember(
        self, recent: OrderedDict[LogFile, _Known], file: LogFile, content: _Known, most: int
    ) -> None:
        with self._lock:
            recent[file] = content
            recent.move_to_end(file)
            while len(recent) > most:
                recent.popitem(last=False)

    def open(self, relation: str, version: int | None = None) -> DeltaTable:
        """Open a table. Raises RefreshError TABLE_MISSING, VERSION_GONE, PARTITION_VALUES_LOST."""
        storage = self.storage(relation)
        try:
            return open_table(storage, version)
        except TableNotFoundError as error:
            if version is not None and has_commits(storage):
                raise version_gone(relation, version) from error
            raise RefreshError(
                "TABLE_MISSING",
                f"{relation}: no Delta table at {storage.location.url}",
                hint="run build to create the table again",
            ) from error
        except DeltaError as error:
            if (unread := _UNREAD.search(str(error))) is not None:
                finding = far("{}, a {}".format(*unread.groups()))
                raise RefreshError(
                    CODE, f"{relation}: partition_by: {finding}", hint=FAR_HINT
                ) from error
            raise version_gone(relation, version) from error

    def at(self, relation: str, version: int | None) -> TableVersion:
        """Return the files of a version; newest if None. Raises RefreshError VERSION_GONE."""
        if version is None:
            return self.newest(relation)
        file = self.log_file(relation, version)
        index = None if file is None else self._indexes.get(file)
        if index is None and (newest := self.newest(relation)).version == version:
            index = newest
        elif index is None:
            handle = self._handle(relation)
            table = self.open(relation, version)
            index = TableVersion(table, relation, handle.storage, handle.shared)
        if file is not None:
            self._remember(self._indexes, file, index, _CACHED_INDEXES)
        return index
