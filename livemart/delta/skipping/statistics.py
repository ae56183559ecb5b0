"""Rules out files by the bounds of their columns, from the log's statistics.

Used by table versions and look-ups. deltalake's own dataset trusts the maximum of a timestamp
column to the microsecond, but Spark writes it cut to milliseconds: a row of 23:59:59.999999 would
be lost. Here such bounds are widened first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds

_MAX_COMPARISONS = 5_000_000
_MILLISECOND = 1_000
_MINUTE = 60_000_000
# Offsets of zones are whole minutes since 1972. Spark writes a bound in the zone of its session,
# and leaves the seconds of an older offset out.
_WHOLE_OFFSETS = 3 * 366 * 86_400_000_000
# Bounds that are no farther from 1970 can be moved.
_FAR = 2**62

_Array = npt.NDArray[Any]
_Bounds = tuple[pa.Array, pa.Array, _Array]


class FileBounds:
    """Bounds by file, in the order of the log's list. Immutable."""

    def __init__(self, adds: pa.Table, schema: pa.Schema, partition_columns: Sequence[str]) -> None:
        """Take a version's flattened `add` actions, its schema and partition columns."""
        self._adds = adds
        self._schema = schema
        self._partition_columns = partition_columns
        self._bounds_by_name: dict[str, _Bounds | None] = {}

    def __len__(self) -> int:
        return int(self._adds.num_rows)

    def highest(self, name: str) -> pa.Scalar | None:
        """Return the greatest upper bound of a column (NULL: no file has one); None: no order."""
        bounds = self._bounds(name)
        return None if bounds is None else pc.max(bounds[1])

    def text_bounds(self, name: str) -> tuple[pa.Array, pa.Array] | None:
        """Return lowest and highest text of a string column, by file (NULL: unknown)."""
        bounds = self._bounds(name)
        return None if bounds is None else bounds[:2]

    def may_begin_before(self, name: str, first: pa.Scalar | None) -> _Array:
        """Return, for each file, whether a column can hold a value below `first` (boolean array).

        `first`: None for a column that has no bounds, such as a struct.
        """
        bounds = None if first is None else self._bounds(name)
        if bounds is None:
            return np.ones(len(self), dtype=bool)
        return _true_or_null(pc.less(bounds[0], first))

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

    def _bounds(self, name: str) -> _Bounds | None:
        """Return lowest and highest value (NULL: unknown) and if NULLs are possible, by file."""
        if name not in self._bounds_by_name:
            self._bounds_by_name[name] = self._find_bounds(name)
        return self._bounds_by_name[name]

    def _find_bounds(self, name: str) -> _Bounds | None:
        kind = self._schema.field(name).type
        if name in self._partition_columns:
            if not (has_order(kind) or pa.types.is_decimal(kind)):
                return None
            values = self._column(f"partition.{name}").cast(kind)
            return values, values, np.asarray(values.is_null())
        listed = self._adds.column_names
        # The bounds of a column `a.b` and of field b of a struct a have one name: neither is asked.
        if listed.count(f"min.{name}") != 1 or not has_order(kind):
            return None
        low, high = self._column(f"min.{name}"), self._column(f"max.{name}")
        if low.type != kind or high.type != kind:
            low, high = low.cast(kind), high.cast(kind)
        if pa.types.is_timestamp(kind):
            ticks = pc.add(high.cast(pa.int64()), _MILLISECOND - 1)
            if kind.tz is not None:
                low = _moved(low.cast(pa.int64()), -_MINUTE).cast(kind)
                ticks = _moved(ticks, _MINUTE)
            high = ticks.cast(kind)
        if listed.count(f"null_count.{name}") != 1:
            return low, high, np.ones(len(self), dtype=bool)
        counts = pc.fill_null(self._column(f"null_count.{name}"), 1)
        return low, high, np.asarray(pc.greater(counts, 0))

    def _holds_any(
        self, exact: Sequence[tuple[Any, ...]], positions: _Array, length: int
    ) -> _Array:
        """Compare every file with every row on all integer-like columns at once."""
        held = np.ones((len(positions), length), dtype=bool)
        for column, low, high, can_be_null in exact:
            values = _as_integers(column)
            missing = np.asarray(column.is_null())
            lows, highs = _as_integers(low), _as_integers(high)
            unknown = np.asarray(pc.or_(low.is_null(), high.is_null()))[positions]
            inside = (lows[positions, None] <= values) & (values <= highs[positions, None])
            inside |= unknown[:, None]
            held &= np.where(missing[None, :], can_be_null[positions, None], inside)
        return np.asarray(held.any(axis=1))

    def guarantee(
        self, position: int, partition: Mapping[str, pa.Scalar], names: Sequence[str]
    ) -> pds.Expression:
        """Return a condition on the named columns that every row of a file fulfils."""
        guarantee = _partition_guarantee(partition)
        for name in names:
            if name in self._partition_columns or (bounds := self._bounds(name)) is None:
                continue
            low, high, can_be_null = bounds
            if low[position].is_valid and high[position].is_valid:
                column = pds.field(name)
                inside = (column >= low[position]) & (column <= high[position])
                guarantee &= inside | column.is_null() if can_be_null[position] else inside
        return guarantee

    def _column(self, name: str) -> pa.Array:
        return self._adds.column(name).combine_chunks()


def _moved(ticks: pa.Array, distance: int) -> pa.Array:
    """Return times, the old ones moved; unknown ones stay unknown."""
    is_old = pc.and_(pc.less(ticks, _WHOLE_OFFSETS), pc.greater(ticks, -_FAR))
    return pc.if_else(is_old, pc.add(ticks, distance), ticks)


def _partition_guarantee(partition: Mapping[str, pa.Scalar]) -> pds.Expression:
    guarantee = pds.scalar(True)
    for name, value in partition.items():
        column = pds.field(name)
        guarantee &= column == value if value.is_valid else column.is_null()
    return guarantee


def has_order(kind: pa.DataType) -> bool:
    """Return True for a type whose bounds in the log are exact, or known to be widened."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    )


def _true_or_null(array: pa.Array) -> _Array:
    return np.asarray(pc.fill_null(array, True))


def _is_integral(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    )


def _as_integers(column: pa.Array) -> _Array:
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    return np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
