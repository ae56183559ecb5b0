"""Keeps tables open, so that asking for a version costs two looks and no replay of the log.

Used by the warehouse alone. If a table was dropped, created again or written by others, the next
question notices.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from livemart.delta.cache import FileCache
from livemart.delta.log import LogFile, has_commits, log_file
from livemart.delta.version import SharedFiles, TableVersion, version_gone
from livemart.errors import RefreshError
from livemart.project.declared.partition_columns import CODE, FAR_HINT, far
from livemart.storage.storage import Storage

_CACHED_INDEXES = 64
# The message of deltalake 1.6.6 about a partition of the log.
_UNREAD = re.compile(r"Failed to parse value '(.*)' as '(date|timestamp|timestamp_ntz)'")


@dataclass(slots=True)
class _Handle:
    storage: Storage
    lock: threading.RLock
    shared: SharedFiles
    table: DeltaTable | None = None
    index: TableVersion | None = None
    log_file: LogFile | None = None


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

    def storage(self, relation: str) -> Storage:
        """Return the storage of `schema.identifier`."""
        return self._handle(relation).storage

    @contextmanager
    def held(self, relation: str) -> Iterator[tuple[DeltaTable, TableVersion]]:
        """Give a table at its newest version, and that version's files.

        No other code here commits to the table within the block.

        Raises:
            RefreshError: TABLE_MISSING.
        """
        handle = self._handle(relation)
        with handle.lock:
            newest = self.newest(relation)
            assert handle.table is not None
            yield handle.table, newest

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
            if handle.index is not None and handle.table is not None:
                version = handle.index.version
                newest, following = (log_file(handle.storage, it) for it in (version, version + 1))
                if newest != handle.log_file:
                    handle.table = None  # dropped, or created again
                elif following is None:
                    return handle.index
                else:
                    try:
                        handle.table.update_incremental()
                    except DeltaError:
                        handle.table = None
            if handle.table is None:
                handle.table = self.open(relation)
            handle.index = TableVersion(handle.table, relation, handle.storage, handle.shared)
            handle.log_file = log_file(handle.storage, handle.index.version)
            return handle.index

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
        file = log_file(self.storage(relation), version)
        with self._lock:
            if file is not None and file in self._indexes:
                self._indexes.move_to_end(file)
                return self._indexes[file]
        newest = self.newest(relation)
        if newest.version == version:
            index = newest
        else:
            handle = self._handle(relation)
            table = self.open(relation, version)
            index = TableVersion(table, relation, handle.storage, handle.shared)
        with self._lock:
            if file is not None:
                self._indexes[file] = index
            while len(self._indexes) > _CACHED_INDEXES:
                self._indexes.popitem(last=False)
        return index
