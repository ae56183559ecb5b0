"""The warehouse's Delta tables: read at a version, net changes, one commit a batch.

The only door to Delta files outside Spark. Small change sets are read and committed here in a few
milliseconds (`small_lane`); `large_lane` does the same by Spark.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import Schema as DeltaSchema

from livemart.engine.arrow_types import align, plain_schema, spark_schema
from livemart.engine.bags import WEIGHT, net_rows
from livemart.engine.data_files import read_change_file, without_blank_partitions
from livemart.engine.delta_log import (
    Action,
    LogEntry,
    VersionTakenError,
    log_path,
    read_entries,
    read_entry,
)
from livemart.engine.file_index import FileIndex, Fragments
from livemart.engine.session import TABLE_PROPERTIES
from livemart.engine.small_lane import (
    NEW_COUNT,
    OLD_COUNT,
    Tag,
    commit_diff,
    commit_rows,
    unsupported_reason,
)
from livemart.errors import RefreshError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NEW_COUNT", "OLD_COUNT", "WEIGHT", "Commit", "Tag", "Warehouse", "to_view"]

_CACHED_CHANGE_BYTES = 256 * 1024 * 1024
_CACHED_INDEXES = 64


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit did. `skipped`: the table carried this tag already, nothing was written."""

    version: int
    skipped: bool
    rows_changed: int
    took_ms: int


class TableChangedError(RefreshError):
    """Somebody else wrote to a table in the middle of a batch; `is_retriable`: replay the batch."""

    is_retriable = True


# A commit file's path, inode and time: a table made anew in the same folder has others.
_LogFile = tuple[str, int, int]


@dataclass(slots=True)
class _Handle:
    """A table kept open at its newest version: a look costs two stat(2), not a log replay."""

    lock: threading.RLock
    table: DeltaTable | None = None
    index: FileIndex | None = None
    fragments: Fragments = field(default_factory=dict)
    log_file: _LogFile | None = None


class Warehouse:
    """Tables below one folder, `root/<schema>/<identifier>`. Safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._lock = threading.Lock()
        self._handles: dict[str, _Handle] = {}
        self._indexes: OrderedDict[_LogFile, FileIndex] = OrderedDict()
        self._changes: OrderedDict[_LogFile, pa.Table] = OrderedDict()
        self._changes_bytes = 0

    def path(self, relation: str) -> Path:
        """Return the folder of `schema.identifier`."""
        schema, identifier = relation.split(".", 1)
        return self.root / schema / identifier

    def exists(self, relation: str) -> bool:
        """Return whether the folder holds a Delta table."""
        log = self.path(relation) / "_delta_log"
        return log.is_dir() and bool(DeltaTable.is_deltatable(str(self.path(relation))))

    def version(self, relation: str) -> int:
        """Return the newest version. Raises RefreshError TABLE_MISSING."""
        return self._newest(relation).version

    def table_id(self, relation: str) -> str:
        """Return the id that a table keeps for life; a table made anew has another."""
        return self._newest(relation).table_id

    def arrow_schema(self, relation: str, version: int | None = None) -> pa.Schema:
        """Return the plain Arrow schema (timestamps in microseconds; with a zone: UTC)."""
        return self._index(relation, version).schema

    def partition_columns(self, relation: str) -> tuple[str, ...]:
        """Return the names of the partition columns."""
        return self._newest(relation).partition_columns

    def row_count(self, relation: str, version: int | None = None) -> int:
        """Return the number of rows, from file statistics where every file has them."""
        index = self._index(relation, version)
        if index.row_count is not None:
            return index.row_count
        return int(index.read(columns=index.schema.names[:1]).num_rows)

    def read(
        self,
        relation: str,
        version: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: pds.Expression | None = None,
    ) -> pa.Table:
        """Return rows of one version, one chunk a column.

        Args:
            relation: `schema.identifier`.
            version: newest if None.
            columns: names in the order wanted; all if None.
            filter: rows to keep; prunes files by partition values and statistics.

        Raises:
            RefreshError: TABLE_MISSING, VERSION_GONE.
        """
        index = self._index(relation, version)
        try:
            return index.read(columns, filter)
        except FileNotFoundError as error:
            raise _version_gone(relation, index.version) from error

    def files(self, relation: str, version: int | None = None) -> FileIndex:
        """Return the files of one version and what their statistics say."""
        return self._index(relation, version)

    def highest(self, relation: str, column: str, version: int | None = None) -> object:
        """Return an upper bound of a column from file statistics; None if no file has one."""
        return self._index(relation, version).highest(column)

    def changes(self, relation: str, from_version: int, to_version: int) -> pa.Table:
        """Return the net change between two versions.

        Returns:
            Columns of the table plus `_weight` (bigint, never 0); key: all columns; one row for
            each row that is there more or less often.

        Raises:
            RefreshError: CDF_UNAVAILABLE, if files or log entries of the range are gone, or the
                schema changed in between.
        """
        if from_version > to_version:
            raise _changes_gone(relation, from_version, f"the table is at version {to_version}")
        schema = self.arrow_schema(relation, to_version)
        pieces: list[pa.Table] = []
        for version in range(from_version + 1, to_version + 1):
            log_file = _log_file(self.path(relation), version)
            with self._lock:
                known = None if log_file is None else self._changes.get(log_file)
            pieces.append(
                known if known is not None else self._logged_changes(relation, version, schema)
            )
        if len(pieces) == 1:
            return pieces[0]
        if not pieces:
            empty = schema.empty_table()
            return net_rows(empty, pa.array([], pa.int64()))
        stacked = pa.concat_tables(pieces).combine_chunks()
        return net_rows(stacked.select(schema.names), stacked.column(WEIGHT))

    def commit(
        self,
        relation: str,
        diff: pa.Table,
        tag: Tag,
        *,
        key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
    ) -> Commit:
        """Apply a change set in one Delta commit, at most once per tag.

        Args:
            relation: an existing table.
            diff: its columns plus `_old_count` and `_new_count` (bigint): one row for each distinct
                row whose multiplicity changes.
            tag: skipped if the table carries this version of the application id, or a higher one.
            key: columns unique in the table before and after; rows to delete are found by it, NULL
                equal to NULL. Empty: found by all columns, all copies removed, the new ones added.
            partition_by: ignored for a table that exists.

        Raises:
            RefreshError: TABLE_MISSING, SCHEMA_MISMATCH, TABLE_NOT_WRITABLE, or TABLE_CHANGED
                (retriable) if somebody else committed meanwhile.
        """
        started = time.perf_counter()
        with self._handle(relation).lock:
            index = self._newest(relation)
            if self.is_tagged(relation, tag):
                return Commit(index.version, True, 0, _ms_since(started))
            rows = _changed_rows(diff, index, relation)
            if rows.num_rows == 0:
                return Commit(index.version, False, 0, _ms_since(started))
            self._require_writable(relation)
            try:
                version = commit_diff(index, rows, key=key, tag=tag)
            except VersionTakenError as error:
                raise _table_changed(relation, index.version) from error
            self._checkpoint(relation, version)
        weights = pc.subtract(rows.column(NEW_COUNT), rows.column(OLD_COUNT))
        change = rows.select(index.schema.names).append_column(
            pa.field(WEIGHT, pa.int64(), nullable=False), weights
        )
        self._remember(relation, version, change)
        return Commit(version, False, rows.num_rows, _ms_since(started))

    def overwrite(
        self,
        relation: str,
        table: pa.Table,
        tag: Tag,
        *,
        partition_by: Sequence[str] = (),
    ) -> Commit:
        """Make the table hold exactly these rows, in one commit; create it if it is missing.

        A table whose schema or partitioning differs is not changed here: SCHEMA_MISMATCH.

        Args:
            relation: `schema.identifier`.
            table: all rows.
            tag: as for `commit`.
            partition_by: partition columns of a table that does not exist yet.
        """
        started = time.perf_counter()
        with self._handle(relation).lock:
            if not self.exists(relation):
                self.create(relation, plain_schema(table.schema), partition_by=partition_by)
            index = self._newest(relation)
            if self.is_tagged(relation, tag):
                return Commit(index.version, True, 0, _ms_since(started))
            self._require_writable(relation)
            rows = align(table, index.schema, relation)
            rows = without_blank_partitions(rows, index.partition_columns)
            try:
                version = commit_rows(index, rows, tag=tag)
            except VersionTakenError as error:
                raise _table_changed(relation, index.version) from error
            self._checkpoint(relation, version)
        return Commit(version, False, rows.num_rows, _ms_since(started))

    def create(self, relation: str, schema: pa.Schema, *, partition_by: Sequence[str] = ()) -> None:
        """Create an empty table with the project's table properties; nothing if it exists."""
        path = self.path(relation)
        path.parent.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            str(path),
            DeltaSchema.from_arrow(plain_schema(schema)),
            mode="ignore",
            partition_by=list(partition_by) or None,
            configuration=dict(TABLE_PROPERTIES),
        )

    def add_columns(self, relation: str, fields: Sequence[pa.Field], tag: Tag) -> None:
        """Add nullable columns at the end of a table; existing rows hold NULL in them."""
        added = pa.schema([field.with_nullable(True) for field in fields])
        self._open(relation).alter.add_columns(
            list(DeltaSchema.from_arrow(added).fields),
            commit_properties=CommitProperties(
                app_transactions=[Transaction(tag.app_id, tag.version)]
            ),
        )

    def metadata_of(self, relation: str, version: int) -> Mapping[str, str]:
        """Return the metadata of a commit's tag; empty if it had none or its entry is gone."""
        entry = read_entry(self.path(relation), version)
        return {} if entry is None else entry.metadata

    def data_changed_between(self, relation: str, v0: int, v1: int) -> list[LogEntry | None]:
        """Return the commits v0 < version <= v1 that change rows, schema or table id.

        A commit whose log entry is gone is None: whether it changed data is unknown. `OPTIMIZE` and
        `VACUUM` are not in the list.
        """
        return [
            entry
            for entry in read_entries(self.path(relation), v0, v1)
            if entry is None or entry.changes_data or entry.table_id is not None
        ]

    def is_tagged(self, relation: str, tag: Tag) -> bool:
        """Return whether the table carries this batch, or a later one of its application id."""
        handle = self._handle(relation)
        with handle.lock:
            self._newest(relation)
            assert handle.table is not None
            newest = handle.table.transaction_version(tag.app_id)
        return newest is not None and newest >= tag.version

    def _handle(self, relation: str) -> _Handle:
        with self._lock:
            return self._handles.setdefault(relation, _Handle(threading.RLock()))

    def _newest(self, relation: str) -> FileIndex:
        """Return the newest version's files, from the open handle if that is still newest."""
        root = self.path(relation)
        handle = self._handle(relation)
        with handle.lock:
            if handle.index is not None and handle.table is not None:
                version = handle.index.version
                if _log_file(root, version) != handle.log_file:
                    handle.table = None  # dropped, or made anew
                elif _log_file(root, version + 1) is None:
                    return handle.index
                else:
                    handle.table.update_incremental()
            if handle.table is None:
                handle.table = self._open(relation)
            handle.index = FileIndex(handle.table, root, handle.fragments)
            handle.log_file = _log_file(root, handle.index.version)
            return handle.index

    def _open(self, relation: str, version: int | None = None) -> DeltaTable:
        try:
            return DeltaTable(str(self.path(relation)), version=version)
        except TableNotFoundError as error:
            raise RefreshError(
                "TABLE_MISSING",
                f"{relation}: no Delta table at {self.path(relation)}",
                hint="run build to make the table again",
            ) from error
        except DeltaError as error:
            raise _version_gone(relation, version) from error

    def _index(self, relation: str, version: int | None) -> FileIndex:
        if version is None:
            return self._newest(relation)
        log_file = _log_file(self.path(relation), version)
        with self._lock:
            if log_file is not None and log_file in self._indexes:
                self._indexes.move_to_end(log_file)
                return self._indexes[log_file]
        newest = self._newest(relation)
        if newest.version == version:
            index = newest
        else:
            fragments = self._handle(relation).fragments
            index = FileIndex(self._open(relation, version), self.path(relation), fragments)
        with self._lock:
            if log_file is not None:
                self._indexes[log_file] = index
            while len(self._indexes) > _CACHED_INDEXES:
                self._indexes.popitem(last=False)
        return index

    def _require_writable(self, relation: str) -> None:
        table = self._handle(relation).table
        assert table is not None
        if reason := unsupported_reason(table):
            raise RefreshError(
                "TABLE_NOT_WRITABLE",
                f"{relation}: {reason}",
                hint="rebuild the model without it, or let Spark write it",
            )

    def _remember(self, relation: str, version: int, change: pa.Table) -> None:
        log_file = _log_file(self.path(relation), version)
        if log_file is None:
            return
        with self._lock:
            self._changes[log_file] = change
            self._changes_bytes += change.nbytes
            while self._changes_bytes > _CACHED_CHANGE_BYTES:
                self._changes_bytes -= self._changes.popitem(last=False)[1].nbytes

    def _logged_changes(self, relation: str, version: int, schema: pa.Schema) -> pa.Table:
        """Read the net change of one commit from its change files, or from the files it swapped."""
        root = self.path(relation)
        entry = read_entry(root, version)
        if entry is None:
            raise _changes_gone(relation, version, "its log entry is gone")
        wide = schema.append(pa.field("_change_type", pa.string()))
        pieces: list[pa.Table] = []
        signs: list[pa.Array] = []
        try:
            for action in entry.cdc:
                rows = read_change_file(root, action, wide)
                kinds = rows.column("_change_type")
                added = pc.is_in(kinds, pa.array(["insert", "update_postimage"]))
                signs.append(pc.if_else(added, 1, -1).combine_chunks())
                pieces.append(rows.drop_columns(["_change_type"]))
            swapped: Sequence[tuple[int, Action]] = (
                []
                if entry.cdc
                else [*((1, a) for a in entry.adds), *((-1, r) for r in entry.removes)]
            )
            for sign, action in swapped:
                if not action.get("dataChange", True):
                    continue
                rows = read_change_file(root, action, schema)
                signs.append(pa.repeat(pa.scalar(sign, pa.int64()), rows.num_rows))
                pieces.append(rows)
        except FileNotFoundError as error:
            raise _changes_gone(relation, version, f"{error.filename} is gone") from error
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise _changes_gone(relation, version, f"its schema differs ({error})") from error
        if not pieces:
            return net_rows(schema.empty_table(), pa.array([], pa.int64()))
        weights = pa.chunked_array([sign.cast(pa.int64()) for sign in signs])
        return net_rows(pa.concat_tables(pieces).combine_chunks(), weights)

    def _checkpoint(self, relation: str, version: int) -> None:
        if version % int(TABLE_PROPERTIES["delta.checkpointInterval"]) == 0:
            DeltaTable(str(self.path(relation)), version=version).create_checkpoint()


def _changed_rows(diff: pa.Table, index: FileIndex, relation: str) -> pa.Table:
    """Return the diff in the table's types, without rows whose multiplicity stays."""
    counts = {name: diff.column(name).cast(pa.int64()) for name in (OLD_COUNT, NEW_COUNT)}
    rows = align(diff.drop_columns([OLD_COUNT, NEW_COUNT]), index.schema, relation)
    rows = without_blank_partitions(rows, index.partition_columns)
    for name, values in counts.items():
        rows = rows.append_column(name, values)
    moved = pc.not_equal(counts[OLD_COUNT], counts[NEW_COUNT])
    return rows.filter(moved).combine_chunks()


def _log_file(root: Path, version: int) -> _LogFile | None:
    path = str(log_path(root, version))
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return path, found.st_ino, found.st_mtime_ns


def to_view(spark: SparkSession, name: str, table: pa.Table) -> None:
    """Hand an Arrow table to Spark as a temporary view, rows and types unchanged.

    PySpark 4.2.0 drops in silence everything after the first empty record batch, so the table is
    made one chunk a column first; no other code may call `createDataFrame` with Arrow.
    """
    schema = plain_schema(table.schema)
    aligned = table.cast(schema) if table.schema != schema else table
    struct = spark_schema(schema)
    if aligned.num_rows == 0:
        frame = spark.createDataFrame([], struct)
    else:
        frame = spark.createDataFrame(aligned.combine_chunks(), struct)
    frame.createOrReplaceTempView(name)


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


def _version_gone(relation: str, version: int | None) -> RefreshError:
    return RefreshError(
        "VERSION_GONE",
        f"{relation}: version {version} can no longer be read",
        hint="run build: the version is older than the table's retention, or files were removed",
    )


def _changes_gone(relation: str, version: int, found: str) -> RefreshError:
    return RefreshError(
        "CDF_UNAVAILABLE",
        f"{relation}: the changes of version {version} cannot be read: {found}",
        hint="the models that read the table are rebuilt; run build if they are not",
    )


def _table_changed(relation: str, version: int) -> TableChangedError:
    return TableChangedError(
        "TABLE_CHANGED",
        f"{relation}: another writer committed version {version + 1} in the middle of the batch",
        hint="nothing: the batch is replayed",
    )
