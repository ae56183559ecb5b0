"""Says which rows of a stored table a refresh reads, in one form for both lanes.

Used by every strategy that restricts its inputs. A filter may always let more rows through than
were asked for; what is exact is decided in SQL.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds

from livemart.arrow.times import EVER, bounding_times, is_time
from livemart.arrow.types import compared_as, compares_exactly
from livemart.arrow.variants import has_parts
from livemart.spark_sql import literal, quoted

# More values than this cost more to compare than the rows they would leave out.
_MOST_VALUES = 20_000
_MOST_LITERALS = 500


@dataclass(frozen=True, slots=True)
class IsIn:
    """The column holds one of these values (or NULL, if `has_null`)."""

    column: str
    values: pa.Array
    has_null: bool


@dataclass(frozen=True, slots=True)
class IsBetween:
    """The column is in a closed interval (or is NULL, if `has_null`); bounds as Arrow scalars."""

    column: str
    low: pa.Scalar
    high: pa.Scalar
    has_null: bool


Condition = IsIn | IsBetween


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Any of `alternatives`, each of which asks for all of its conditions. None at all: no row."""

    alternatives: tuple[tuple[Condition, ...], ...]

    @property
    def is_whole(self) -> bool:
        """True if every row passes."""
        return any(not conditions for conditions in self.alternatives)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the filter looks at."""
        return frozenset(it.column for conditions in self.alternatives for it in conditions)

    def or_else(self, other: RowFilter) -> RowFilter:
        return RowFilter(self.alternatives + other.alternatives)

    def bounded(self) -> RowFilter:
        """Return a filter whose long lists of values are ranges: short enough for SQL."""
        return RowFilter(
            tuple(
                tuple(_as_range(condition) for condition in conditions)
                for conditions in self.alternatives
            )
        )

    def expression(self) -> pds.Expression | None:
        """Return the filter for Arrow; None if every row passes."""
        if self.is_whole:
            return None
        whole: pds.Expression | None = None
        for conditions in self.alternatives:
            part: pds.Expression | None = None
            for condition in conditions:
                one = _expression(condition)
                part = one if part is None else part & one
            assert part is not None
            whole = part if whole is None else whole | part
        return pc.scalar(False) if whole is None else whole

    def sql(self) -> str:
        """Return the filter as a Spark condition."""
        if self.is_whole:
            return "true"
        parts = [
            "(" + " and ".join(_sql(condition) for condition in conditions) + ")"
            for conditions in self.alternatives
        ]
        return " or ".join(parts) if parts else "false"

    def matches(self, table: pa.Table) -> pa.Array:
        """Return, for each row of a table in memory, whether it passes (never NULL)."""
        passes = np.zeros(table.num_rows, dtype=bool)
        for conditions in self.alternatives:
            rows = table.select(dict.fromkeys(condition.column for condition in conditions))
            places = np.arange(table.num_rows)
            # Many values are few rows each: what they leave is all that the others look at.
            for condition in sorted(conditions, key=_values_in, reverse=True):
                is_met = _is_met(condition, rows.column(condition.column))
                places = places[np.asarray(is_met)]
                rows = rows.filter(is_met)
            passes[places] = True
        return pa.array(passes)


NO_ROW = RowFilter(())
EVERY_ROW = RowFilter(((),))


def values_condition(
    name: str, kind: pa.DataType, values: pa.ChunkedArray | pa.Array, *, is_utc: bool = True
) -> Condition | None:
    """Return the condition that a column holds one of these values; None if none is exact.

    Args:
        values: values looked for, of any type.
        is_utc: the time zone in which Spark compares times with and without one.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], kind)
    if not narrows(kind) or not compares_exactly(kind, array.type, is_utc=is_utc):
        return None
    try:
        # By way of a type that holds any of them, a number that fits is cast.
        array = array.cast(compared_as(kind, array.type)).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    has_null = array.null_count > 0
    unique = pc.drop_null(pc.unique(array))
    if len(unique) <= _MOST_VALUES:
        # In order: two readers that ask for the same rows use the same words.
        return IsIn(name, unique.take(pc.sort_indices(unique)), has_null)
    bounds = pc.min_max(unique)
    return IsBetween(name, bounds["min"], bounds["max"], has_null)


def equal_in(schema: pa.Schema, rows: pa.Table) -> RowFilter:
    """Return a filter that stored rows pass which are equal to one of `rows` in its columns."""
    conditions = []
    for field in schema:
        if field.name in rows.column_names and not has_parts(field.type):
            condition = values_condition(field.name, field.type, rows.column(field.name))
            if condition is not None:
                conditions.append(condition)
    return RowFilter((tuple(conditions),))


def narrows(kind: pa.DataType) -> bool:
    """Return False where NaN and -0.0 compare differently in Arrow and in SQL."""
    return not (has_parts(kind) or pa.types.is_floating(kind))


def time_condition(
    name: str, kind: pa.DataType, low: int, high: int, *, has_null: bool
) -> Condition | None:
    """Return the condition that a time is between two instants (microseconds since 1970, UTC)."""
    if not is_time(kind):
        return None
    micros = np.array([min(max(end, -EVER), EVER) for end in (low, high)])
    first, last = bounding_times(micros, kind)
    return IsBetween(name, first, last, has_null)


def _as_range(condition: Condition) -> Condition:
    if isinstance(condition, IsBetween) or len(condition.values) <= _MOST_LITERALS:
        return condition
    bounds = pc.min_max(condition.values)
    return IsBetween(condition.column, bounds["min"], bounds["max"], condition.has_null)


def _values_in(condition: Condition) -> int:
    return len(condition.values) if isinstance(condition, IsIn) else 0


def _is_met(condition: Condition, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return, for each value, whether it meets a condition (never NULL)."""
    if isinstance(condition, IsIn):
        is_met = pc.is_in(column, condition.values)
    else:
        is_within = pc.and_(
            pc.greater_equal(column, condition.low), pc.less_equal(column, condition.high)
        )
        is_met = pc.fill_null(is_within, False)
    return pc.or_(is_met, pc.is_null(column)) if condition.has_null else is_met


def _expression(condition: Condition) -> pds.Expression:
    field = pc.field(condition.column)
    if isinstance(condition, IsIn):
        if len(condition.values) == 1:
            is_met = field == condition.values[0]
        else:
            is_met = field.isin(condition.values)
        if len(condition.values) > 1:
            # Statistics of files are compared with ranges, not with sets of values.
            bounds = pc.min_max(condition.values)
            is_met = is_met & (field >= bounds["min"]) & (field <= bounds["max"])
        if len(condition.values) == 0:
            is_met = pc.scalar(False)
    else:
        is_met = (field >= condition.low) & (field <= condition.high)
    return is_met | field.is_null() if condition.has_null else is_met


def _sql(condition: Condition) -> str:
    name = quoted(condition.column)
    if isinstance(condition, IsIn):
        values = [text for value in condition.values if (text := _literal(value)) is not None]
        test = f"{name} in ({', '.join(values)})" if values else "false"
        if len(values) < len(condition.values):
            test = "true"
    else:
        bounds = ((">=", _literal(condition.low)), ("<=", _literal(condition.high)))
        tests = [f"{name} {operator} {bound}" for operator, bound in bounds if bound is not None]
        test = " and ".join(tests) or "true"
    return f"({test} or {name} is null)" if condition.has_null else test


def _literal(value: pa.Scalar) -> str | None:
    """Return a value as SQL; None for a time outside of the years that Python knows."""
    with suppress(OverflowError, ValueError):
        return literal(value.as_py())
    return None
