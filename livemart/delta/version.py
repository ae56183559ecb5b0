"""Reads the files of one pinned version of a Delta table.

Used through the warehouse. A version never changes, so what is known of its files is kept and
shared with the versions that follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from livemart.arrow.bags import row_codes
from livemart.arrow.calendars import first_of, is_of_spark_2, texts_of
from livemart.arrow.times import holds_time, is_time
from livemart.arrow.variants import holds_variant, nothing_of
from livemart.delta.cache import FileCache
from livemart.delta.features import (
    may_have_been_unreadable,
    not_readable,
    sized_columns,
    unreadable_reason,
)
from livemart.delta.layout import ROWS_PER_FILE, USUAL_FILE_ROWS
from livemart.delta.matches import Matches, RecentMatches
from livemart.delta.parquet import completed, in_parallel, open_file
from livemart.delta.row_filter import RowFilter
from livemart.delta.skipping.bounds import indexed_columns
from livemart.delta.skipping.statistics import FileBounds
from livemart.delta.table_schema import OnlySparkError, require_own_days, require_whole, schema_of
from livemart.errors import RefreshError
from livemart.storage.storage import Storage

_FORMAT = pds.ParquetFileFormat(
    read_options=pds.ParquetReadOptions(coerce_int96_timestamp_unit="us"),
    default_fragment_scan_options=pds.ParquetFragmentScanOptions(pre_buffer=True),
)
# So much of what is known of files is kept for each file that a version has.
_KEPT_PER_FILE = 4
# Where a path of the log begins that is not below the table's folder.
_ELSEWHERE = re.compile(r"/|[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
# A file this many times the usual size, of which less than one row in so many is wanted, is wide.
_LARGE_FILES = 3
_WIDE_PART = 4

_Array = npt.NDArray[Any]
# By path and the columns whose bounds the fragment carries.
Fragments = dict[tuple[str, tuple[str, ...]], pds.Fragment]


@dataclass(frozen=True, slots=True)
class SharedFiles:
    """The knowledge that the versions of one table share: files never change.

    `wide`: paths of large files of which a reader wanted a small part; `own_days`: paths of files
    whose writer counts days as Arrow does; `files` may be of many tables.
    """

    fragments: Fragments = field(default_factory=dict)
    wide: set[str] = field(default_factory=set)
    own_days: set[str] = field(default_factory=set)
    matches: RecentMatches = field(default_factory=RecentMatches)
    files: FileCache = field(default_factory=FileCache)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file: `path` as the log spells it, rows (None: unknown), typed partition values."""

    path: str
    size: int
    rows: int | None
    partition: Mapping[str, pa.Scalar]


class TableVersion:
    """The files of one pinned version. Immutable.

    `unreadable`: why only Spark can read its rows, None if they can be read here;
    `may_have_been_unreadable`: so it may be for versions before; `is_plain`: every session of Spark
    can read them, too (see spark/quick_session).
    """

    def __init__(
        self, table: DeltaTable, relation: str, storage: Storage, shared: SharedFiles
    ) -> None:
        """Read the file list of an open table."""
        self.relation = relation
        self.storage = storage
        self._shared_fragments: Fragments = shared.fragments
        self._wide: set[str] = shared.wide
        self._own_days: set[str] = shared.own_days
        self._matches = shared.matches
        self._files = shared.files
        self._filesystem = storage.filesystem()
        self.version: int = table.version()
        self.unreadable = unreadable_reason(table)
        self.may_have_been_unreadable = may_have_been_unreadable(table)
        self.schema = schema_of(table)
        self.sized_columns = sized_columns(table)
        metadata = table.metadata()
        self.table_id = str(metadata.id)
        self.partition_columns = tuple(metadata.partition_columns)
        stored = [name for name in self.schema.names if name not in self.partition_columns]
        self._variants = [field for field in self.schema if holds_variant(field.type)]
        self._times = frozenset(name for name in stored if holds_time(self.schema.field(name).type))
        # Columns that have statistics in the log.
        self.indexed = indexed_columns(stored, metadata.configuration)
        self._adds = pa.table(table.get_add_actions(flatten=True)).combine_chunks()
        self.bounds = FileBounds(self._adds, self.schema, self.partition_columns)
        # Rows of each file; -1 where its statistics do not say.
        self.rows_by_file: _Array = np.asarray(pc.fill_null(self._column("num_records"), -1))
        paths = [unquote(path) for path in self._adds.column("path").to_pylist()]
        if self.unreadable is None and any(map(_ELSEWHERE.match, paths)):
            self.unreadable = "files of another table, as in a shallow clone"
        features = table.protocol().reader_features or ()
        self.is_plain = self.unreadable is None and "deletionVectors" not in features
        self._positions = {path: position for position, path in enumerate(paths)}
        # By path, the rows of each file that is much larger than files are made here.
        large = np.flatnonzero(self.rows_by_file > _LARGE_FILES * ROWS_PER_FILE)
        self._large = {
            paths[position]: int(self.rows_by_file[position]) for position in large.tolist()
        }

    def __len__(self) -> int:
        return int(self._adds.num_rows)

    @property
    def row_count(self) -> int:
        """The number of rows, from file statistics where every file has them.

        Where only Spark can read them they may be fewer.

        Raises:
            RefreshError: VERSION_GONE, if files are to be read for it and are gone;
                TABLE_NOT_READABLE, if they cannot be read here.
        """
        if (self.rows_by_file < 0).any():
            return int(self.read(self.schema.names[:1]).num_rows)
        return int(self.rows_by_file.sum())

    def null_share(self, name: str) -> float | None:
        """Return the part of all rows that are NULL in a column, by statistics; None: unknown."""
        counted = f"null_count.{name}"
        # A column `a.b` and field b of a struct a have the same name.
        if self._adds.column_names.count(counted) != 1:
            return None
        nulls = self._column(counted)
        if nulls.null_count or not self.row_count:
            return None
        return float(pc.sum(nulls).as_py() / self.row_count)

    @property
    def written_ms(self) -> _Array:
        """When each file was written, in milliseconds since 1970."""
        return np.asarray(self._column("modification_time"))

    @property
    def partition_codes(self) -> _Array:
        """A number for each file, the same for files of the same partition."""
        values = [self._column(f"partition.{name}") for name in self.partition_columns]
        return row_codes(values, len(self), identical=True)

    def files(self, mask: _Array | None = None) -> list[DataFile]:
        """Return the files, or those that a boolean mask selects."""
        positions = range(len(self)) if mask is None else np.flatnonzero(mask).tolist()
        paths, sizes = self._adds.column("path"), self._adds.column("size_bytes")
        rows = self._adds.column("num_records")
        partitions = {name: self._column(f"partition.{name}") for name in self.partition_columns}
        return [
            DataFile(
                path=paths[position].as_py(),
                size=sizes[position].as_py(),
                rows=rows[position].as_py(),
                partition={
                    name: column[position].cast(self.schema.field(name).type)
                    for name, column in partitions.items()
                },
            )
            for position in positions
        ]

    def read(
        self,
        columns: Sequence[str] | None = None,
        filter: pds.Expression | RowFilter | None = None,
    ) -> pa.Table:
        """Return rows of the version, in one chunk a column.

        Args:
            columns: names in the order wanted; all of the schema if None.
            filter: rows to keep; also prunes files by partition and statistics.

        Raises:
            RefreshError: VERSION_GONE, TABLE_NOT_READABLE.
        """
        try:
            return self._read(columns, filter)
        except FileNotFoundError as error:
            raise version_gone(self.relation, self.version) from error

    def _read(
        self, columns: Sequence[str] | None, filter: pds.Expression | RowFilter | None
    ) -> pa.Table:
        names = list(columns) if columns is not None else self.schema.names
        expression = filter.expression() if isinstance(filter, RowFilter) else filter
        dataset = self._dataset(self._fragments(expression))
        asked = () if expression is None else _columns_asked(expression, self.schema.names)
        self._require_own_values(dataset.get_fragments(expression), [*names, *asked])
        if filter is None or expression is None:
            return dataset.to_table(columns=names).combine_chunks()
        passing = list(dataset.get_fragments(expression))
        cached = {fragment.path for fragment in passing if self._is_kept(fragment.path)}
        near = self._files_at(cached)
        far = [fragment for fragment in passing if fragment.path not in cached]
        result = self._dataset(far).to_table(columns=names, filter=expression)
        read = {fragment.path for fragment in far} & self._large.keys()
        if result.num_rows * _WIDE_PART < sum(self._large[path] for path in read):
            self._wide.update(read)
        if near:
            matches = self._matches.of(expression)
            result = pa.concat_tables([result, self._passing(near, names, filter, matches)])
        return result.combine_chunks()

    def _passing(
        self,
        files: Sequence[DataFile],
        names: Sequence[str],
        filter: pds.Expression | RowFilter,
        matches: Matches,
    ) -> pa.Table:
        """Return the rows of files, read whole and kept, that pass a filter."""
        tables = in_parallel(lambda file: self.read_file(file, self.schema.names), files)
        # The next reader of the same rows waits, instead of looking for them as well.
        with matches.lock:
            new = [place for place, file in enumerate(files) if file.path not in matches.places]
            passing = _places_of_rows([tables[place] for place in new], filter)
            for place, rows in zip(new, passing, strict=True):
                matches.places[files[place].path] = rows
            places = [matches.places[file.path] for file in files]
            if len(matches.places) > _KEPT_PER_FILE * (len(files) + 1):
                # The same filter, batch after batch: most of these files were replaced long ago.
                matches.places.clear()
                matches.places.update(zip((file.path for file in files), places, strict=True))
        return pa.concat_tables(
            [
                table.select(names).take(pa.array(rows))
                for table, rows in zip(tables, places, strict=True)
            ]
        )

    def batches(
        self, columns: Sequence[str], filter: pds.Expression | None, most: int
    ) -> Iterator[pa.Table]:
        """Yield rows of the version, at most so many at a time; nothing is kept for later.

        Raises:
            RefreshError: VERSION_GONE, TABLE_NOT_READABLE.
        """
        try:
            yield from self._batches(columns, filter, most)
        except FileNotFoundError as error:
            raise version_gone(self.relation, self.version) from error

    def _batches(
        self, columns: Sequence[str], filter: pds.Expression | None, most: int
    ) -> Iterator[pa.Table]:
        asked = () if filter is None else _columns_asked(filter, self.schema.names)
        names = [name for name in self.schema.names if name in columns or name in asked]
        passing = list(self._dataset(self._fragments(filter)).get_fragments(filter))
        self._require_own_values(passing, names)
        for file in self._files_at([fragment.path for fragment in passing]):
            # Buffered ahead, a file of long values would be held whole.
            with self._open(file, pre_buffer=False) as source:
                present = [name for name in source.schema_arrow.names if name in names]
                for batch in source.iter_batches(most, columns=present, use_threads=False):
                    rows = self._completed(pa.Table.from_batches([batch]), file, names, len(batch))
                    rows = (rows if filter is None else rows.filter(filter)).select(columns)
                    if rows.num_rows:
                        yield rows.combine_chunks()

    def _open(self, file: DataFile, *, pre_buffer: bool) -> pq.ParquetFile:
        return open_file(self.storage, file.path, file.size, pre_buffer=pre_buffer)

    def _key(self, path: str) -> str:
        return f"{self.storage.location.url}/{path}"

    def _completed(
        self, data: pa.Table, file: DataFile, columns: Sequence[str], count: int
    ) -> pa.Table:
        """Return so many rows of a file in the table's types, with the columns that it lacks."""
        is_whole = list(columns) == self.schema.names
        schema = self.schema if is_whole else pa.schema([self.schema.field(it) for it in columns])
        if data.schema.equals(schema):
            # As most files are, in memory above all: a reader takes a few rows of each of many.
            return data.combine_chunks()
        try:
            return completed(data, schema, file.partition, count).combine_chunks()
        except OnlySparkError as error:
            raise _only_spark(self.relation, error) from error

    def _require_own_values(self, fragments: Iterable[pds.Fragment], names: Sequence[str]) -> None:
        """Check that Arrow reads these columns as Spark means them; opens a file only if it must.

        Raises:
            RefreshError: CDF_UNAVAILABLE.
        """
        variants = [field for field in self._variants if field.name in names]
        may_be_old = not self._times.isdisjoint(names) and self._may_be_old.any()
        files = list(fragments) if variants or may_be_old else []
        try:
            for file in files if variants else ():
                require_whole(file.physical_schema, pa.schema(variants))
        except OnlySparkError as error:
            raise _only_spark(self.relation, error) from error
        old = [file for file in files if may_be_old and self._is_maybe_old(file.path)]
        footers = in_parallel(lambda file: file.metadata, old)
        for file, footer in zip(old, footers, strict=True):
            self._require_own_days(file.path, footer, names)

    def _require_own_days(self, path: str, footer: pq.FileMetaData, names: Sequence[str]) -> None:
        try:
            require_own_days(footer, names)
        except OnlySparkError as error:
            raise _only_spark(self.relation, error) from error
        if not is_of_spark_2(texts_of(footer.metadata)):
            # A time in a struct has no bounds in the log: its file would be looked into each time.
            self._own_days.add(path)

    def _is_maybe_old(self, path: str) -> bool:
        return path not in self._own_days and bool(self._may_be_old[self._positions[path]])

    @cached_property
    def _may_be_old(self) -> _Array:
        """Whether each file, by its bounds in the log, may hold days of another calendar."""
        may_be = np.zeros(len(self), dtype=bool)
        for name in self._times:
            kind = self.schema.field(name).type
            may_be |= self.bounds.may_begin_before(name, first_of(kind) if is_time(kind) else None)
        return may_be

    def _dataset(self, fragments: Sequence[pds.Fragment]) -> pds.FileSystemDataset:
        return pds.FileSystemDataset(list(fragments), self.schema, _FORMAT, self._filesystem)

    def _is_kept(self, path: str) -> bool:
        """Return whether a file is of usual size and asked for more than once."""
        is_usual = 0 <= self.rows_by_file[self._positions[path]] <= USUAL_FILE_ROWS
        return is_usual and self._files.is_worth_keeping(self._key(path))

    def _files_at(self, paths: Iterable[str]) -> list[DataFile]:
        """Return the files at these paths, those that this version has."""
        mask = np.zeros(len(self), dtype=bool)
        mask[[self._positions[path] for path in paths if path in self._positions]] = True
        return self.files(mask)

    def wide_files(self, most: int) -> list[DataFile]:
        """Return some of the large files of which readers wanted a small part."""
        paths = set(list(self._wide)[:most])
        self._wide -= paths
        return self._files_at(paths)

    def read_file(self, file: DataFile, columns: Sequence[str]) -> pa.Table:
        """Return the rows of one file, in its order, one chunk a column.

        Raises:
            RefreshError: TABLE_NOT_READABLE.
        """
        self._require_readable()
        path = self._key(unquote(file.path))
        data = self._files.rows(path)
        if data is None:
            source = self._open(file, pre_buffer=True)
            if self._is_maybe_old(unquote(file.path)):
                self._require_own_days(unquote(file.path), source.metadata, columns)
            present = [name for name in source.schema_arrow.names if name not in file.partition]
            is_whole = set(present) <= set(columns)
            read_names = [name for name in columns if name in present]
            data = source.read(read_names, use_threads=False)
            if is_whole and data.num_rows <= USUAL_FILE_ROWS:
                self._files.keep(path, data)
            count = source.metadata.num_rows
        else:
            count = data.num_rows
        return self._completed(data, file, columns, count)

    def read_files(self, files: Sequence[DataFile]) -> pa.Table:
        """Return the rows of files of the version, one chunk a column.

        Raises:
            RefreshError: VERSION_GONE, TABLE_NOT_READABLE.
        """
        try:
            tables = in_parallel(lambda file: self.read_file(file, self.schema.names), files)
        except FileNotFoundError as error:
            raise version_gone(self.relation, self.version) from error
        return pa.concat_tables([nothing_of(self.schema), *tables]).combine_chunks()

    def footer(self, file: DataFile) -> pq.FileMetaData:
        """Return the Parquet footer of a file."""
        with self._open(file, pre_buffer=False) as source:
            return source.metadata

    def replaced(self, files: Iterable[DataFile]) -> None:
        """Note files that a commit to this table has just taken out of it."""
        self._files.replaced([self._key(unquote(file.path)) for file in files])

    def written(self, path: str, rows: pa.Table) -> None:
        """Note the rows of a file that a commit to this table has just written."""
        self._own_days.add(unquote(path))
        if rows.num_rows <= USUAL_FILE_ROWS:
            self._files.keep(self._key(unquote(path)), rows)

    def _column(self, name: str) -> pa.Array:
        return self._adds.column(name).combine_chunks()

    def _require_readable(self) -> None:
        if self.unreadable is not None:
            raise not_readable(self.relation, self.unreadable)

    def _fragments(self, filter: pds.Expression | None) -> list[pds.Fragment]:
        self._require_readable()
        names = () if filter is None else tuple(_columns_asked(filter, self.schema.names))
        paths = self._adds.column("path").to_pylist()
        # Readers of other versions share what is known and may drop from it meanwhile.
        fragments = [self._shared_fragments.get((path, names)) for path in paths]
        missing = np.array([fragment is None for fragment in fragments], dtype=bool)
        for position, file in zip(np.flatnonzero(missing), self.files(missing), strict=True):
            guarantee = self.bounds.guarantee(int(position), file.partition, names)
            fragment = _FORMAT.make_fragment(unquote(file.path), self._filesystem, guarantee)
            fragments[position] = self._shared_fragments[file.path, names] = fragment
        if len(self._shared_fragments) > _KEPT_PER_FILE * (len(paths) + 1):
            present = set(paths)
            for key in [key for key in list(self._shared_fragments) if key[0] not in present]:
                self._shared_fragments.pop(key, None)
        if len(self._own_days) > _KEPT_PER_FILE * (len(paths) + 1):
            self._own_days.intersection_update(self._positions)
        return fragments


def _columns_asked(filter: pds.Expression, names: Sequence[str]) -> list[str]:
    """Return the columns that a filter may ask for, in their order; more of them do no harm."""
    try:
        text = str(filter)
    except UnicodeDecodeError:
        # pyarrow 26 cuts a text of more than a hundred bytes, a character in two, too.
        return list(names)
    return [name for name in names if name in text]


def _places_of_rows(tables: Sequence[pa.Table], filter: pds.Expression | RowFilter) -> list[_Array]:
    """Return, for each table, the places of its rows that pass a filter."""
    if not tables:
        return []
    if isinstance(filter, RowFilter):
        names = [name for name in tables[0].column_names if name in filter.columns]
    else:
        names = _columns_asked(filter, tables[0].column_names)
    rows = pa.concat_tables([table.select(names or table.column_names[:1]) for table in tables])
    if isinstance(filter, RowFilter):
        mask = filter.matches(rows)
    else:
        passing = pds.dataset(rows).to_table(columns={"passes": filter}).column("passes")
        mask = pc.fill_null(passing, False)
    places = np.flatnonzero(np.asarray(mask))
    starts = np.cumsum([0, *(table.num_rows for table in tables)])
    bounds = np.searchsorted(places, starts)
    return [
        places[bounds[number] : bounds[number + 1]] - starts[number]
        for number in range(len(tables))
    ]


def _only_spark(relation: str, error: OnlySparkError) -> RefreshError:
    return RefreshError(
        "CDF_UNAVAILABLE",
        f"{relation}: {error}, which only Spark can read",
        hint="nothing to do: Spark recomputes its readers; to avoid this, write the table again "
        "without delta.enableVariantShredding, and by a Spark of the newer calendar",
    )


def version_gone(relation: str, version: int | None) -> RefreshError:
    """Return the error of a version that can no longer be read."""
    return RefreshError(
        "VERSION_GONE",
        f"{relation}: version {version} can no longer be read",
        hint="run build: the version is older than the table's retention, or files were removed",
    )
