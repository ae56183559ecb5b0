"""Reads and commits the warehouse's tables: rows at a version, net changes, one commit a batch.

The only door to Delta files outside Spark. Small change sets are read and committed here in a few
milliseconds (`small_lane`); `spark/large_lane.py` does the same by Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.schema import Schema as DeltaSchema

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, WEIGHT
from livemart.arrow.times import is_time
from livemart.arrow.types import SIZED, align, key_kind, plain_schema
from livemart.conflicts import TableChangedError
from livemart.delta.cache import usual_bytes
from livemart.delta.changes import NetChanges, changes_unavailable
from livemart.delta.log import Action, LogEntry
from livemart.delta.open_tables import OpenTables
from livemart.delta.partitions import without_blank_partitions
from livemart.delta.properties import TABLE_PROPERTIES, is_checkpointed
from livemart.delta.row_filter import RowFilter
from livemart.delta.small_lane import (
    StoredRowsError,
    commit_diff,
    commit_rows,
    unsupported_reason,
    write_rows,
)
from livemart.delta.tags import Tag
from livemart.delta.upkeep.compaction import commit_compaction
from livemart.delta.upkeep.corrections import commit_corrections
from livemart.delta.upkeep.retention import commit_retention
from livemart.delta.version import TableVersion
from livemart.delta.wider_types import commit_types
from livemart.errors import RefreshError
from livemart.spark_sql import quoted
from livemart.storage.fence import require_right_to_write
from livemart.storage.location import Location, StoragePlace
from livemart.storage.opening import open_storage
from livemart.storage.storage import Storage, Taken

# File statistics tell times in milliseconds, an upper bound at most so much above the row, in µs.
_COARSE = 2_000
_CORRECTION_S = 10.0
_COMPACTION_S = 10.0


@dataclass(frozen=True, slots=True)
class Commit:
    """The result of a commit. `skipped`: the table carried this tag already, nothing was written.

    `rows_changed`: the number of distinct rows of which there are more or fewer copies now. A row
    that was updated counts twice, as it was and as it is. If a table was replaced as a whole, all
    its rows count.
    """

    version: int
    rows_changed: int = 0
    skipped: bool = False


class Warehouse:
    """Tables below one folder, `root/<schema>/<identifier>`. Safe to use from several threads.

    Args:
        place: the folder.
        cache_bytes: memory for rows of files, and a quarter of it for net changes; by the machine
            if None.
    """

    def __init__(self, place: StoragePlace | Storage, cache_bytes: int | None = None) -> None:
        self._storage = place if isinstance(place, Storage) else open_storage(place)
        cache_bytes = usual_bytes() if cache_bytes is None else cache_bytes
        self._tables = OpenTables(self._storage, cache_bytes)
        self._changes = NetChanges(self._tables, cache_bytes // 4)
        self._of_spark: set[str] = set()

    @property
    def root(self) -> Path:
        """The folder of a warehouse on a disk."""
        return self._storage.location.on_disk

    @property
    def place(self) -> Path | Location:
        """The folder that holds all tables."""
        return self._storage.location.place

    def path(self, relation: str) -> Path:
        """Return the folder of `schema.identifier` on a disk."""
        return self.location(relation).on_disk

    def location(self, relation: str) -> Location:
        """Return the folder of `schema.identifier`."""
        return self.storage(relation).location

    def storage(self, relation: str) -> Storage:
        """Return the storage of `schema.identifier`."""
        return self._tables.storage(relation)

    def sql_at(self, relation: str, version: int) -> str:
        """Return the text after FROM by which Spark reads the table itself, at a version."""
        return f"delta.{quoted(self.location(relation).spark_url)} version as of {version}"

    def only_writer(self) -> AbstractContextManager[None]:
        """Look at each table once within the block: no one but this object writes to tables.

        Commits of this object are seen at once. Commits of others are seen after `look_again`, or
        once `written_beside` was called.
        """
        return self._tables.only_writer()

    def look_again(self) -> None:
        """Look at each table at the next question, also within `only_writer`."""
        self._tables.look_again()

    def written_beside(self) -> None:
        """Look at tables at every question until the block of `only_writer` ends.

        To be called before Spark or dbt write to a table.
        """
        self._tables.written_beside()

    def exists(self, relation: str) -> bool:
        """Return whether the folder holds a Delta table."""
        return self._tables.exists(relation)

    def relations(self, identifier: str | None = None) -> list[str]:
        """Return `schema.identifier` of each table, or of those with one identifier, sorted.

        A folder whose name starts with `_` or `.` holds none.
        """
        schemas = [it for it in self._storage.folders() if not it.startswith(("_", "."))]
        if identifier:
            names = [f"{schema}.{identifier}" for schema in schemas]
        else:
            names = [name for schema in schemas for name in self.folders_of(schema)]
        return [relation for relation in names if self.exists(relation)]

    def folders_of(self, schema: str) -> list[str]:
        """Return `schema.identifier` of each folder of a schema, with a table or not, sorted."""
        return [f"{schema}.{name}" for name in self._storage.folders(schema)]

    def version(self, relation: str) -> int:
        """Return the newest version. Raises RefreshError TABLE_MISSING."""
        return self._tables.newest(relation).version

    def table_id(self, relation: str) -> str:
        """Return the id that a table keeps for life; a table that is created again has another."""
        return self._tables.newest(relation).table_id

    def arrow_schema(self, relation: str, version: int | None = None) -> pa.Schema:
        """Return the plain Arrow schema (timestamps in microseconds; with a zone: UTC)."""
        return self._tables.at(relation, version).schema

    def column_kinds(self, relation: str, version: int | None = None) -> dict[str, str] | None:
        """Return the `key_kind` of each column, or None if there is no such table yet.

        That of a column that was declared with a CHAR or VARCHAR begins with `SIZED`.
        """
        if not self.exists(relation):
            return None
        table = self._tables.at(relation, version)
        sized = dict.fromkeys(table.sized_columns, SIZED)
        return {it.name: sized.get(it.name, "") + key_kind(it.type) for it in table.schema}

    def logged_schema(self, relation: str) -> str | None:
        """Return the columns as the log spells them, with comments; None if it cannot be read."""
        try:
            return str(self._tables.open(relation).schema().to_json())
        except RefreshError:
            return None

    def partition_columns(self, relation: str) -> tuple[str, ...]:
        """Return the names of the partition columns."""
        return self._tables.newest(relation).partition_columns

    def row_count(self, relation: str, version: int | None = None) -> int:
        """Return the number of rows, from file statistics where every file has them."""
        return self._tables.at(relation, version).row_count

    def read(
        self,
        relation: str,
        version: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: pds.Expression | RowFilter | None = None,
    ) -> pa.Table:
        """Return rows of one version, one chunk a column.

        Args:
            relation: `schema.identifier`.
            version: newest if None.
            columns: names in the order wanted; all if None.
            filter: rows to keep; prunes files by partition values and statistics.

        Raises:
            RefreshError: TABLE_MISSING, VERSION_GONE, TABLE_NOT_READABLE.
        """
        return self._tables.at(relation, version).read(columns, filter)

    def rows_apart(self, relation: str, version: int, other: int | None) -> pa.Table:
        """Return the rows of the files that a version has and another does not, one chunk a column.

        Rows of files that both have are in both; equal rows may be in both all the same.

        Args:
            relation: `schema.identifier`.
            version: whose rows these are.
            other: version of the same table; all rows if None.

        Raises:
            RefreshError: those of `read`.
        """
        index = self._tables.at(relation, version)
        files = [] if other is None else self._tables.at(relation, other).files()
        common = {file.path for file in files}
        return index.read_files([it for it in index.files() if it.path not in common])

    def files(self, relation: str, version: int | None = None) -> TableVersion:
        """Return the files of one version, with their statistics."""
        return self._tables.at(relation, version)

    def newest(self, relation: str, column: str, version: int | None = None) -> Any:
        """Return the greatest value of a column of times or dates, None if it holds none.

        Only the files are read that can hold it.
        """
        bound = self.files(relation, version).bounds.highest(column)
        near = None
        if bound is not None and bound.is_valid and is_time(bound.type):
            if pa.types.is_timestamp(bound.type):
                ticks = bound.cast(pa.int64()).as_py() - _COARSE
                bound = pa.scalar(ticks).cast(bound.type)
            near = pds.field(column) >= bound
        values = self.read(relation, version, columns=[column], filter=near)
        highest = pc.max(values[column]).as_py()
        if highest is None and near is not None:
            # Bounds that others wrote may be as wide as they like.
            highest = pc.max(self.read(relation, version, columns=[column])[column]).as_py()
        return highest

    def changes(self, relation: str, from_version: int, to_version: int) -> pa.Table:
        """Return the net change between two versions.

        Returns:
            Columns of the table plus `WEIGHT` (bigint, never 0); key: all columns; one row for
            each row that is there more or less often.

        Raises:
            RefreshError: CDF_UNAVAILABLE, if files or log entries of the range are gone, the schema
                changed in between, or only Spark can read the rows.
        """
        schema = self.arrow_schema(relation, to_version)
        if reason := self._unreadable_between(relation, from_version, to_version):
            raise changes_unavailable(relation, to_version, reason)
        return self._changes.between(relation, schema, from_version, to_version)

    def _unreadable_between(self, relation: str, v0: int, v1: int) -> str | None:
        """Return why only Spark can read the changes v0 < version <= v1, None if it is not so."""
        index = self._tables.at(relation, v1)
        if index.unreadable is not None or not index.may_have_been_unreadable or v0 >= v1:
            return index.unreadable
        if (reason := self._tables.at(relation, v0).unreadable) is not None:
            return reason
        is_same = self._keeps_its_form(relation, v0, v1)
        return None if is_same else "the form of its files may have changed"

    def _keeps_its_form(self, relation: str, v0: int, v1: int) -> bool:
        """Return whether no commit v0 < version <= v1 may have changed columns or properties."""
        entries = (self._tables.entry(relation, it) for it in range(v0 + 1, v1 + 1))
        return all(entry is not None and entry.table_id is None for entry in entries)

    def commit(
        self,
        relation: str,
        diff: pa.Table,
        tag: Tag,
        *,
        key: Sequence[str] = (),
        written: Sequence[Action] = (),
    ) -> Commit:
        """Apply a change set in one Delta commit, at most once per tag.

        Args:
            relation: an existing table.
            diff: its columns plus `OLD_COUNT` and `NEW_COUNT` (bigint): one row for each distinct
                row whose multiplicity changes.
            tag: skipped if the table carries this version of the application id, or a higher one.
            key: columns unique in the table before and after; rows to delete are found by it, NULL
                equal to NULL. Empty: found by all columns, all copies removed, the new ones added.
            written: what `write` has written, whose rows the commit adds as well.

        Raises:
            RefreshError: TABLE_MISSING, SCHEMA_MISMATCH, TABLE_NOT_WRITABLE, STORED_ROWS_DIFFER if
                the rows to remove do not exist, or TABLE_CHANGED (retriable) if somebody else
                committed meanwhile.
        """
        with self._tables.held(relation) as (table, index):
            if self._tables.is_tagged(relation, tag):
                return Commit(index.version, skipped=True)
            rows = _changed_rows(diff, index, relation)
            if rows.num_rows == 0 and not written:
                return Commit(index.version)
            _require_writable(table, relation)
            try:
                said = tag.counting(rows.num_rows)
                version = commit_diff(index, rows, key=key, tag=said, written=written)
            except Taken as error:
                raise _table_changed(relation, index.version) from error
            except StoredRowsError as error:
                raise RefreshError(
                    "STORED_ROWS_DIFFER",
                    f"{relation}: version {index.version}: {error}",
                    hint="check that the model's key is unique, then run build",
                ) from error
            self._committed(relation, version)
        if written:
            # The reader of the change reads it: it may be more than memory should hold.
            return Commit(version, rows.num_rows)
        weights = pc.subtract(rows.column(NEW_COUNT), rows.column(OLD_COUNT))
        change = rows.select(index.schema.names).append_column(
            pa.field(WEIGHT, pa.int64(), nullable=False), weights
        )
        self._changes.keep(relation, version, change)
        return Commit(version, rows.num_rows)

    def write(self, relation: str, rows: pa.Table, *, key: Sequence[str] = ()) -> list[Action]:
        """Write rows to files of a table that no commit names yet, for `commit` to take in."""
        table, index = self._tables.opened(relation)
        _require_writable(table, relation)
        rows = without_blank_partitions(
            align(rows, index.schema, relation), index.partition_columns
        )
        return write_rows(index, rows, key=key)

    def discard(self, relation: str, written: Sequence[Action]) -> None:
        """Remove files of `write`; never after a commit with them, which may name them."""
        self.storage(relation).delete(unquote(action["add"]["path"]) for action in written)

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
            partition_by: partition columns of a table that does not exist yet.
        """
        if not self.exists(relation):
            self.create(relation, plain_schema(table.schema), partition_by=partition_by)
        with self._tables.held(relation) as (stored, index):
            if self._tables.is_tagged(relation, tag):
                return Commit(index.version, skipped=True)
            _require_writable(stored, relation)
            rows = align(table, index.schema, relation)
            rows = without_blank_partitions(rows, index.partition_columns)
            try:
                version = commit_rows(index, rows, tag=tag)
            except Taken as error:
                raise _table_changed(relation, index.version) from error
            self._committed(relation, version)
        return Commit(version, rows.num_rows)

    def create(self, relation: str, schema: pa.Schema, *, partition_by: Sequence[str] = ()) -> None:
        """Create an empty table with the project's table properties; nothing if it exists."""
        storage = self.storage(relation)
        require_right_to_write(storage.location)
        DeltaTable.create(
            storage.location.url,
            DeltaSchema.from_arrow(plain_schema(schema)),
            mode="ignore",
            partition_by=list(partition_by) or None,
            configuration=dict(TABLE_PROPERTIES),
            storage_options=storage.options(),
        )
        self._tables.look_again(relation)

    def add_columns(self, relation: str, fields: Sequence[pa.Field], tag: Tag) -> None:
        """Add nullable columns at the end of a table; existing rows hold NULL in them."""
        added = pa.schema([field.with_nullable(True) for field in fields])
        require_right_to_write(self.location(relation))
        self._tables.open(relation).alter.add_columns(
            list(DeltaSchema.from_arrow(added).fields),
            commit_properties=CommitProperties(
                app_transactions=[Transaction(tag.app_id, tag.version)]
            ),
        )
        self._tables.look_again(relation)
        # Files without the column say nothing of its NULLs.
        self.correct(relation)

    def widen(self, relation: str, schema: pa.Schema, tag: Tag) -> None:
        """Give columns of a table wider types; its rows stay, and count as unchanged.

        Args:
            relation: an existing table.
            schema: its columns, in its order, in types that hold all of their values.

        Raises:
            RefreshError: TABLE_NOT_WRITABLE, or TABLE_CHANGED (retriable).
        """
        with self._tables.held(relation) as (table, index):
            _require_writable(table, relation)
            try:
                version = commit_types(table, index, plain_schema(schema), tag)
            except Taken as error:
                raise _table_changed(relation, index.version) from error
            self._committed(relation, version)

    def correct(
        self, relation: str, *, seconds: float = _CORRECTION_S, looks_into_files: bool = False
    ) -> tuple[int, bool]:
        """Give files statistics by which no reader loses rows, where others wrote them.

        No row changes, nor does a table that only Spark can write.

        Args:
            relation: an existing table.
            seconds: for how long; files that are left then are left for the next time.
            looks_into_files: Parquet's own bounds may mislead, too, as in files of earlier versions
                of livemart.

        Returns:
            The number of files corrected, and whether none is left.
        """
        with self._tables.held(relation) as (table, index):
            if unsupported_reason(table):
                return 0, True
            until = time.monotonic() + seconds
            try:
                count, is_whole = commit_corrections(
                    table, index, until=until, looks_into_files=looks_into_files
                )
            except Taken:
                return 0, False
            if count:
                self._committed(relation, index.version + 1)
        self._of_spark.discard(relation)
        return count, is_whole

    def compact(
        self, relation: str, quiet_since: datetime, *, seconds: float = _COMPACTION_S
    ) -> int:
        """Merge small files of partitions to which nothing was written lately; no row changes.

        A table that only Spark can write stays as it is.

        Args:
            relation: an existing table.
            quiet_since: UTC; partitions with a later file are left to commits, which merge as well.
            seconds: for how long; partitions that are left then are left for the next time.

        Returns:
            The number of files merged.
        """
        until = time.monotonic() + seconds
        commit = partial(commit_compaction, quiet_since=quiet_since, until=until)
        return self._tidy(relation, lambda _, index: commit(index))

    def keep_for(self, relation: str, retention: timedelta) -> bool:
        """Keep old files and log entries of a table for so long, unless it says another retention.

        Returns:
            Whether that was committed. A table that only Spark can write stays as it is.
        """
        commit = partial(commit_retention, retention=retention)
        return bool(self._tidy(relation, commit))

    def _tidy(self, relation: str, commit: Callable[[DeltaTable, TableVersion], int]) -> int:
        """Commit a change of no row, at the newest version; return how much it has changed.

        Nothing where only Spark can write the table, or another writer was faster: next time.
        """
        with self._tables.held(relation) as (table, index):
            if unsupported_reason(table):
                return 0
            try:
                count = commit(table, index)
            except Taken:
                return 0
            if count:
                self._committed(relation, index.version + 1)
            return count

    def written_by_spark(self, relation: str) -> None:
        """Note that Spark has written files of a table, which `correct` may have to name again."""
        self._of_spark.add(relation)

    @property
    def of_spark(self) -> frozenset[str]:
        """The tables of `written_by_spark` that have not been looked at since."""
        return frozenset(self._of_spark)

    def newest_alike(self, relation: str, version: int) -> int:
        """Return the newest version of a table if it holds the rows of this one, else this one."""
        newest = self.version(relation)
        return version if self.data_changed_between(relation, version, newest) else newest

    def metadata_of(self, relation: str, version: int) -> Mapping[str, str]:
        """Return the metadata of a commit's tag; empty if it had none or its entry is gone."""
        entry = self._tables.entry(relation, version)
        return {} if entry is None else entry.metadata

    def tagged_entry(self, relation: str, tag: Tag) -> LogEntry | None:
        """Return the commit that carries a tag; None if none does, or its entry is gone."""
        for version in range(self.version(relation), -1, -1):
            entry = self._tables.entry(relation, version)
            if entry is None or entry.transactions.get(tag.app_id) == tag.version:
                return entry
        return None

    def data_changed_between(self, relation: str, v0: int, v1: int) -> list[LogEntry | None]:
        """Return the commits v0 < version <= v1 that change rows, schema or table id.

        A commit whose log entry is gone is None: whether it changed data is unknown. `OPTIMIZE` and
        `VACUUM` are not in the list.
        """
        entries = (self._tables.entry(relation, it) for it in range(v0 + 1, v1 + 1))
        return [
            entry
            for entry in entries
            if entry is None or entry.changes_data or entry.table_id is not None
        ]

    def has_other_columns(self, relation: str, v0: int, v1: int) -> bool:
        """Return whether the columns have other names or types in a later version.

        Raises:
            RefreshError: VERSION_GONE.
        """
        if self._keeps_its_form(relation, v0, v1):
            return False
        before, now = (self.arrow_schema(relation, version) for version in (v0, v1))
        return bool(before != now)

    def is_tagged(self, relation: str, tag: Tag) -> bool:
        """Return whether the table carries this batch, or a later one of its application id."""
        self._tables.newest(relation)
        return self._tables.is_tagged(relation, tag)

    def _committed(self, relation: str, version: int) -> None:
        """Look at a table again after a commit, and write the checkpoint that is due."""
        self._tables.look_again(relation)
        if is_checkpointed(relation, version):
            require_right_to_write(self.location(relation))
            table, _ = self._tables.opened(relation)
            table.create_checkpoint()


def _require_writable(table: DeltaTable, relation: str) -> None:
    if reason := unsupported_reason(table):
        raise RefreshError(
            "TABLE_NOT_WRITABLE",
            f"{relation}: {reason}",
            hint="rebuild the model without it, or let Spark write it",
        )


def _changed_rows(diff: pa.Table, index: TableVersion, relation: str) -> pa.Table:
    """Return the diff in the table's types, without rows whose multiplicity stays."""
    counts = {name: diff.column(name).cast(pa.int64()) for name in (OLD_COUNT, NEW_COUNT)}
    rows = align(diff.drop_columns([OLD_COUNT, NEW_COUNT]), index.schema, relation)
    rows = without_blank_partitions(rows, index.partition_columns)
    for name, values in counts.items():
        rows = rows.append_column(name, values)
    moved = pc.not_equal(counts[OLD_COUNT], counts[NEW_COUNT])
    return rows.filter(moved).combine_chunks()


def _table_changed(relation: str, version: int) -> TableChangedError:
    return TableChangedError(
        "TABLE_CHANGED",
        f"{relation}: another writer committed version {version + 1} during the batch",
        hint="nothing to do: the batch is replayed",
    )
