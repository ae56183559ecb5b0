"""Computes the bounds of a data file's columns, as Delta's log spells them.

Used to write data files, or to say again what they hold. Readers skip a file by its bounds, and
deltalake's dataset takes one that is missing for NULL and skips the file, whatever it holds. So
the log has bounds of all columns of a file, or of none: any reader then reads it. A file has none
if one of its columns holds NaN, which is above all numbers in Spark and beside them in Arrow, or a
value that cannot be written.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from livemart.arrow.variants import holds_type
from livemart.delta.log import log_json

_USUAL_COLUMNS = 32
_TEXT_PREFIX = 32
_LAST_CHARACTER = "\U0010ffff"
_MILLISECOND = timedelta(milliseconds=1)
# A name in backticks, or up to the next comma.
_COLUMN_NAME = re.compile(r"`((?:[^`]|``)+)`|([^`,]+)")


def indexed_columns(names: Sequence[str], properties: Mapping[str, str]) -> list[str]:
    """Return the columns whose bounds readers may look for in the log.

    Args:
        names: of a table, without its partition columns.
        properties: of the table.
    """
    listed = properties.get("delta.dataSkippingStatsColumns")
    if listed is not None:
        chosen = {
            (quoted.replace("``", "`") or plain.strip()).lower()
            for quoted, plain in _COLUMN_NAME.findall(listed)
        }
        return [name for name in names if name.lower() in chosen]
    count = int(properties.get("delta.dataSkippingNumIndexedCols", _USUAL_COLUMNS))
    return list(names if count < 0 else names[:count])


def has_bounds(kind: pa.DataType) -> bool:
    """Return True for a type of which readers expect bounds: all but binary and nested ones."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
    )


def log_statistics(
    schema: pa.Schema,
    footer: pq.FileMetaData,
    column: Callable[[str], pa.ChunkedArray],
    indexed: Sequence[str],
    *,
    knows_nan: bool,
) -> str:
    """Return the statistics of a file as the log's JSON.

    Args:
        schema: of the file.
        footer: what Parquet says of the file; it has looked for most bounds already.
        column: gives the values of a column, where the footer does not do.
        indexed: columns of the file that have statistics.
        knows_nan: the footer has bounds of no column that holds NaN.
    """
    summaries = _known_statistics(footer)
    nulls: dict[str, int] = {}
    bounds: dict[str, tuple[str, str] | None] = {}
    for name in indexed:
        kind = schema.field(name).type
        if pa.types.is_struct(kind) and has_bounded_field(kind):
            # deltalake takes a struct that is missing for NULL, too, but not one without fields.
            bounds[name] = ("{}", "{}")
        if pa.types.is_nested(kind):
            continue
        summary = summaries.get(name) or _Summary(column(name).null_count)
        nulls[name] = summary.nulls
        if summary.nulls < footer.num_rows and has_bounds(kind):
            is_complete = summary.low is not None and summary.high is not None
            if not is_complete or (pa.types.is_floating(kind) and not knows_nan):
                summary = _summary(column(name))
            bounds[name] = _bounds(summary)
    entries = [f'"numRecords":{footer.num_rows}']
    texts = {name: pair for name, pair in bounds.items() if pair is not None}
    if texts and len(texts) == len(bounds):
        for place, side in enumerate(("minValues", "maxValues")):
            values = (f"{log_json(name)}:{pair[place]}" for name, pair in texts.items())
            entries.append(f'"{side}":{{{",".join(values)}}}')
    entries.append(f'"nullCount":{log_json(nulls)}')
    return f"{{{','.join(entries)}}}"


def leaves_with_nan(rows: pa.Table) -> tuple[set[str], list[str]]:
    """Return the paths of Parquet columns: those that hold NaN, and all others."""
    with_nan: set[str] = set()
    all_paths: list[str] = []
    for field in rows.schema:
        if not holds_floats(field.type):
            all_paths += _paths(field.name, field.type)
            continue
        for path, values in _leaves(field.name, rows.column(field.name)):
            all_paths.append(path)
            if has_nan(values):
                with_nan.add(path)
    return with_nan, [path for path in all_paths if path not in with_nan]


def has_nan(values: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether one of these values is NaN."""
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def has_zero(values: pa.ChunkedArray) -> bool:
    """Return whether one of these values is 0.0 or -0.0."""
    zero = pa.scalar(0.0, values.type) if pa.types.is_floating(values.type) else None
    return zero is not None and bool(pc.any(pc.equal(values, zero)).as_py())


@dataclass(frozen=True, slots=True)
class _Summary:
    """The statistics of a column in a footer; `low` and `high` None: no bound."""

    nulls: int
    low: Any = None
    high: Any = None


def _known_statistics(footer: pq.FileMetaData) -> dict[str, _Summary]:
    """Return the statistics of columns in the footer of one row group, by name."""
    if footer.num_row_groups != 1:
        return {}
    group = footer.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    # A column `a.b` and field b of a struct a have one path.
    paths = Counter(column.path_in_schema for column in columns)
    summaries: dict[str, _Summary] = {}
    for column in columns:
        statistics, path = column.statistics, column.path_in_schema
        if paths[path] > 1 or statistics is None or not statistics.has_null_count:
            continue
        summaries[path] = _Summary(statistics.null_count)
        if statistics.has_min_max:
            with suppress(OverflowError, ValueError):  # beyond the years that Python knows
                summaries[path] = _Summary(statistics.null_count, statistics.min, statistics.max)
    return summaries


def _summary(values: pa.ChunkedArray) -> _Summary:
    if has_nan(values):
        return _Summary(values.null_count)
    extremes = pc.min_max(values)
    try:
        return _Summary(values.null_count, extremes["min"].as_py(), extremes["max"].as_py())
    except (OverflowError, ValueError):  # beyond the years that Python knows
        return _Summary(values.null_count)


def _bounds(summary: _Summary) -> tuple[str, str] | None:
    """Return the bounds of a column as JSON; None if they are unknown.

    Timestamps are widened to whole milliseconds, long texts to prefixes around them.
    """
    if summary.low is None or summary.high is None:
        return None
    return _bound(summary.low, is_upper=False), _bound(summary.high, is_upper=True)


def _bound(value: Any, *, is_upper: bool) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value == 0:
            # Readers that tell both zeros apart find either of them.
            return "0.0" if is_upper else "-0.0"
        case float() if math.isinf(value):
            return '"Infinity"' if value > 0 else '"-Infinity"'
        case datetime():
            return log_json(_milliseconds(value, is_upper=is_upper))
        case date():
            return log_json(value.isoformat())
        case Decimal():
            return format(value, "f")
        case str():
            return log_json(_prefix(value, is_upper=is_upper))
        case _:
            return repr(value)


def _milliseconds(value: datetime, *, is_upper: bool) -> str:
    rounded, precision = value.replace(microsecond=value.microsecond // 1000 * 1000), "milliseconds"
    last = datetime.max.replace(tzinfo=value.tzinfo)
    if is_upper and value > last - _MILLISECOND:
        # The next one is in a year of five digits.
        rounded, precision = last, "microseconds"
    elif is_upper and rounded < value:
        rounded += _MILLISECOND
    text = rounded.replace(tzinfo=None).isoformat(timespec=precision)
    return f"{text}Z" if value.tzinfo else text


def _prefix(text: str, *, is_upper: bool) -> str:
    if len(text) <= _TEXT_PREFIX:
        return text
    end = _TEXT_PREFIX
    if not is_upper:
        return text[:end]
    while text[end : end + 1] == _LAST_CHARACTER:
        end += 1
    return text[:end] + _LAST_CHARACTER if end < len(text) else text


def has_bounded_field(kind: pa.DataType) -> bool:
    """Return True for a struct of which readers expect bounds, if only of a field within."""
    if pa.types.is_struct(kind):
        return any(has_bounded_field(field.type) for field in kind)
    return has_bounds(kind)


def holds_floats(kind: pa.DataType) -> bool:
    """Return True for a type of floats, and for one in which they are nested."""
    return holds_type(kind, pa.types.is_floating)


def _paths(path: str, kind: pa.DataType) -> list[str]:
    nothing = pa.chunked_array([], kind)
    return [path for path, _ in _leaves(path, nothing)] if pa.types.is_nested(kind) else [path]


def _leaves(
    path: str, values: pa.Array | pa.ChunkedArray
) -> Iterator[tuple[str, pa.Array | pa.ChunkedArray]]:
    """Yield the columns that Parquet makes of one, by path, with all that they hold."""
    kind = values.type
    if not pa.types.is_nested(kind):
        yield path, values
        return
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_struct(kind):
        for field, child in zip(kind, values.flatten(), strict=True):
            yield from _leaves(f"{path}.{field.name}", child)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", values.keys)
        yield from _leaves(f"{path}.key_value.value", values.items)
    else:
        yield from _leaves(f"{path}.list.element", values.flatten())
