"""The files of one version of a Delta table: which of them can hold given rows, and reading them.

deltalake's own dataset trusts the maximum of a timestamp column to the microsecond, but Spark
writes it cut to milliseconds: a row of 23:59:59.999999 would be lost. Here such bounds are
widened first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
import pyarrow.fs as pfs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from livemart.engine.arrow_types import plain_schema
from livemart.engine.bags import as_numpy, row_codes
from livemart.engine.file_layout import ROWS_PER_FILE

_FORMAT = pds.ParquetFileFormat(
    read_options=pds.ParquetReadOptions(coerce_int96_timestamp_unit="us"),
    default_fragment_scan_options=pds.ParquetFragmentScanOptions(pre_buffer=True),
)
_MAX_COMPARISONS = 5_000_000
_MILLISECOND = 1_000

_KNOWN_PER_FILE = 4
# A file this many times the usual size, of which less than one row in so many is wanted, is wide.
_LARGE_FILES = 3
_WIDE_PART = 4

_Array = npt.NDArray[Any]
_Bounds = tuple[pa.Array, pa.Array, _Array]
# By path and the columns whose bounds the fragment carries.
Fragments = dict[tuple[str, tuple[str, ...]], pds.Fragment]


@dataclass(frozen=True, slots=True)
class Known:
    """What the versions of one table share: files never change.

    `wide`: paths of large files of which a reader wanted a small part.
    """

    fragments: Fragments = field(default_factory=dict)
    wide: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file: `path` as the log spells it, rows (None: unknown), typed partition values."""

    path: str
    size: int
    rows: int | None
    partition: Mapping[str, pa.Scalar]


class FileIndex:
    """The files of one pinned version. Immutable."""

    def __init__(self, table: DeltaTable, root: Path, known: Known | None = None) -> None:
        """Read the file list of an open table.

        Args:
            table: opened at some version.
            root: its folder.
            known: of earlier versions.
        """
        self.root = root
        known = known or Known()
        self._known: Fragments = known.fragments
        self._wide: set[str] = known.wide
        self._filesystem = pfs.SubTreeFileSystem(str(root), pfs.LocalFileSystem())
        self._bounds_by_name: dict[str, _Bounds | None] = {}
        self.version: int = table.version()
        self.schema = plain_schema(pa.schema(table.schema().to_arrow()))
        metadata = table.metadata()
        self.table_id = str(metadata.id)
        self.partition_columns = tuple(metadata.partition_columns)
        self._adds = pa.table(table.get_add_actions(flatten=True)).combine_chunks()
        counts = self.rows_by_file
        # By path, the rows of each file that is much larger than files are made here.
        self._large = {
            unquote(self._adds.column("path")[position].as_py()): int(counts[position])
            for position in np.flatnonzero(counts > _LARGE_FILES * ROWS_PER_FILE).tolist()
        }

    def __len__(self) -> int:
        return int(self._adds.num_rows)

    @property
    def row_count(self) -> int | None:
        """Rows of the table by its statistics; None if a file has none."""
        counts = self._adds.column("num_records")
        if counts.null_count:
            return None
        return int(pc.sum(counts).as_py() or 0)

    @property
    def rows_by_file(self) -> _Array:
        """Rows of each file; -1 where its statistics do not say."""
        return as_numpy(pc.fill_null(self._column("num_records"), -1))

    @property
    def partition_codes(self) -> _Array:
        """A number for each file, the same for files of the same partition."""
        values = [self._column(f"partition.{name}") for name in self.partition_columns]
        return row_codes(values, len(self))

    def highest(self, name: str) -> object:
        """Return the greatest upper bound of a column; None if no file has a bound."""
        bounds = self._bounds(name)
        return None if bounds is None else pc.max(bounds[1]).as_py()

    def text_bounds(self, name: str) -> tuple[pa.Array, pa.Array] | None:
        """Return lowest and highest text of a string column, by file (NULL: unknown)."""
        bounds = self._bounds(name)
        return None if bounds is None else bounds[:2]

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

    def may_hold(self, rows: pa.Table) -> _Array:
        """Return, for each file, whether it can hold a row equal to one of `rows` (boolean array).

        Args:
            rows: columns of the table, or some of them; at least one row.
        """
        files = np.ones(len(self), dtype=bool)
        exact: list[tuple[_Array, ...]] = []
        for name in rows.column_names:
            bounds = self._bounds(name)
            if bounds is None:
                continue
            low, high, can_be_null = bounds
            column = rows.column(name).combine_chunks()
            extremes = pc.min_max(column)
            overlaps = np.zeros(len(self), dtype=bool)
            if extremes["min"].is_valid:
                overlaps = _true_or_null(
                    pc.and_kleene(
                        pc.less_equal(low, extremes["max"]), pc.greater_equal(high, extremes["min"])
                    )
                )
            if column.null_count:
                overlaps |= can_be_null
            files &= overlaps
            if _is_integral(column.type):
                exact.append((column, low, high, can_be_null))
        positions = np.flatnonzero(files)
        if exact and 0 < len(positions) * rows.num_rows <= _MAX_COMPARISONS:
            files[positions] = self._holds_any(exact, positions, rows.num_rows)
        return files

    def read(
        self, columns: Sequence[str] | None = None, filter: pds.Expression | None = None
    ) -> pa.Table:
        """Return rows of the version, in one chunk a column.

        Args:
            columns: names in the order wanted; all of the schema if None.
            filter: rows to keep; also prunes files by partition and statistics.
        """
        dataset = pds.FileSystemDataset(
            self._fragments(filter), self.schema, _FORMAT, self._filesystem
        )
        names = list(columns) if columns is not None else self.schema.names
        found = dataset.to_table(columns=names, filter=filter).combine_chunks()
        if filter is not None and self._large:
            read = {
                fragment.path for fragment in dataset.get_fragments(filter)
            } & self._large.keys()
            if found.num_rows * _WIDE_PART < sum(self._large[path] for path in read):
                self._wide.update(read)
        return found

    def wide_files(self, most: int) -> list[DataFile]:
        """Return some of the large files of which readers wanted a small part."""
        paths = set(list(self._wide)[:most])
        if not paths:
            return []
        self._wide -= paths
        named = [unquote(path) in paths for path in self._adds.column("path").to_pylist()]
        return self.files(np.array(named, dtype=bool))

    def read_file(self, file: DataFile, columns: Sequence[str]) -> pa.Table:
        """Return the rows of one file, in its order, one chunk a column."""
        source = pq.ParquetFile(
            self.root / unquote(file.path), coerce_int96_timestamp_unit="us", pre_buffer=True
        )
        present = set(source.schema_arrow.names) - set(file.partition)
        data = source.read([name for name in columns if name in present], use_threads=False)
        schema = pa.schema([self.schema.field(name) for name in columns])
        rows = source.metadata.num_rows
        arrays = [
            _as_type(data.column(field.name), field.type)
            if field.name in present
            else pa.repeat(file.partition.get(field.name, pa.scalar(None, field.type)), rows)
            for field in schema
        ]
        return pa.table(arrays, schema=schema).combine_chunks()

    def _column(self, name: str) -> pa.Array:
        return self._adds.column(name).combine_chunks()

    def _bounds(self, name: str) -> _Bounds | None:
        """Return lowest and highest value (NULL: unknown) and if NULLs are possible, by file."""
        if name not in self._bounds_by_name:
            self._bounds_by_name[name] = self._find_bounds(name)
        return self._bounds_by_name[name]

    def _find_bounds(self, name: str) -> _Bounds | None:
        kind = self.schema.field(name).type
        if name in self.partition_columns:
            if not (_has_order(kind) or pa.types.is_decimal(kind)):
                return None
            values = self._column(f"partition.{name}").cast(kind)
            return values, values, as_numpy(values.is_null())
        if f"min.{name}" not in self._adds.column_names or not _has_order(kind):
            return None
        low, high = self._column(f"min.{name}"), self._column(f"max.{name}")
        if low.type != kind or high.type != kind:
            low, high = low.cast(kind), high.cast(kind)
        if pa.types.is_timestamp(kind):
            ticks = pc.add(high.cast(pa.int64()), _MILLISECOND - 1)
            high = ticks.cast(kind)
        if f"null_count.{name}" not in self._adds.column_names:
            return low, high, np.ones(len(self), dtype=bool)
        counts = pc.fill_null(self._column(f"null_count.{name}"), 1)
        return low, high, as_numpy(pc.greater(counts, 0))

    def _holds_any(
        self, exact: Sequence[tuple[Any, ...]], positions: _Array, length: int
    ) -> _Array:
        """Compare every file with every row on all integer-like columns at once."""
        held = np.ones((len(positions), length), dtype=bool)
        for column, low, high, can_be_null in exact:
            values = _as_integers(column)
            missing = as_numpy(column.is_null())
            lows, highs = _as_integers(low), _as_integers(high)
            unknown = as_numpy(pc.or_(low.is_null(), high.is_null()))[positions]
            inside = (lows[positions, None] <= values) & (values <= highs[positions, None])
            inside |= unknown[:, None]
            held &= np.where(missing[None, :], can_be_null[positions, None], inside)
        return np.asarray(held.any(axis=1))

    def _fragments(self, filter: pds.Expression | None) -> list[pds.Fragment]:
        text = "" if filter is None else str(filter)
        names = tuple(name for name in self.schema.names if name in text)
        paths = self._adds.column("path").to_pylist()
        # Readers of other versions share what is known and may drop from it meanwhile.
        fragments = [self._known.get((path, names)) for path in paths]
        missing = np.array([fragment is None for fragment in fragments], dtype=bool)
        for position, file in zip(np.flatnonzero(missing), self.files(missing), strict=True):
            guarantee = self._guarantee(int(position), file, names)
            fragment = _FORMAT.make_fragment(unquote(file.path), self._filesystem, guarantee)
            fragments[position] = self._known[file.path, names] = fragment
        if len(self._known) > _KNOWN_PER_FILE * len(paths) + _KNOWN_PER_FILE:
            present = set(paths)
            for known in [known for known in list(self._known) if known[0] not in present]:
                self._known.pop(known, None)
        return fragments

    def _guarantee(self, position: int, file: DataFile, names: Sequence[str]) -> pds.Expression:
        """Return what holds for every row of a file, as far as the named columns go."""
        guarantee = _partition_guarantee(file.partition)
        for name in names:
            if name in self.partition_columns or (bounds := self._bounds(name)) is None:
                continue
            low, high, can_be_null = bounds
            if low[position].is_valid and high[position].is_valid:
                column = pds.field(name)
                inside = (column >= low[position]) & (column <= high[position])
                guarantee &= inside | column.is_null() if can_be_null[position] else inside
        return guarantee


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == kind else column.cast(kind)


def _partition_guarantee(partition: Mapping[str, pa.Scalar]) -> pds.Expression:
    guarantee = pds.scalar(True)
    for name, value in partition.items():
        column = pds.field(name)
        guarantee &= column == value if value.is_valid else column.is_null()
    return guarantee


def _has_order(kind: pa.DataType) -> bool:
    """Types whose bounds in the log are exact, or known to be widened."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )


def _true_or_null(array: pa.Array) -> _Array:
    return as_numpy(pc.fill_null(array, True))


def _is_integral(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    )


def _as_integers(column: pa.Array) -> _Array:
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    return as_numpy(pc.fill_null(column.cast(pa.int64()), 0))
