"""Reads and writes data files of a Delta table, with the statistics that the log needs.

Used by the small lane and by net changes. Several files at once are read and written by one pool of
threads.
"""

from __future__ import annotations

import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from livemart.delta.log import Action, log_json
from livemart.delta.partitions import PartitionValues, partition_value
from livemart.delta.statistics import has_order

_Part = tuple[PartitionValues, pa.Table]

_STATISTICS_COLUMNS = 32
_STRING_PREFIX = 32
_SAMPLED_ROWS = 4_096
_SAFE_FOLDER = re.compile(r"[A-Za-z0-9_.+-]+")
# One pool for the process: Parquet is read and written on one core a file.
_POOL = ThreadPoolExecutor(max_workers=4, thread_name_prefix="data-files")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def write_files(root: Path, parts: Sequence[_Part]) -> list[Action]:
    """Write one Parquet file for each part of one table; return their `add` actions, in order."""
    repeating = _repeating_columns(parts)
    return in_parallel(lambda part: _write_data(root, *part, repeating), parts)


def write_change_files(root: Path, parts: Sequence[_Part]) -> list[Action]:
    """Write one change-feed file for each part (with `_change_type`), return `cdc` actions."""
    repeating = _repeating_columns(parts)
    return in_parallel(lambda part: _write_change(root, *part, repeating), parts)


def read_change_file(root: Path, action: Action, schema: pa.Schema) -> pa.Table:
    """Return the rows of a data or change file that the log names, partition columns filled in.

    Args:
        action: body of an `add`, `remove` or `cdc` action.
        schema: plain schema; columns that the file lacks are NULL.
    """
    partition: PartitionValues = action.get("partitionValues") or {}
    file = pq.ParquetFile(root / unquote(action["path"]), coerce_int96_timestamp_unit="us")
    present = set(file.schema_arrow.names) - set(partition)
    data = file.read(columns=[name for name in schema.names if name in present])
    values = {
        field.name: partition_value(text, field.type)
        for field in schema
        if (text := partition.get(field.name)) is not None
    }
    return completed(data, schema, values, file.metadata.num_rows)


def completed(
    data: pa.Table, schema: pa.Schema, partition: Mapping[str, pa.Scalar], count: int
) -> pa.Table:
    """Return so many rows of a file in a table's types, with what the file does not hold."""
    arrays = [
        data.column(field.name).cast(field.type)
        if field.name in data.column_names
        else pa.repeat(partition.get(field.name, pa.scalar(None, field.type)), count)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def in_parallel(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Return `work` of each item, in order, several at a time."""
    if len(items) <= 1:
        return [work(item) for item in items]
    return list(_POOL.map(work, items))


def _write_data(
    root: Path, partition: PartitionValues, rows: pa.Table, repeating: Sequence[str]
) -> Action:
    path = _new_path(partition, "part")
    size, written = _write_parquet(root / path, rows, repeating)
    return {
        "add": {
            "path": quote(path, safe="/=+"),
            "partitionValues": dict(partition),
            "size": size,
            "modificationTime": int(time.time() * 1000),
            "dataChange": True,
            "stats": log_json(_statistics(rows, written)),
        }
    }


def _write_change(
    root: Path, partition: PartitionValues, rows: pa.Table, repeating: Sequence[str]
) -> Action:
    path = f"_change_data/{_new_path(partition, 'cdc')}"
    size, _ = _write_parquet(root / path, rows, repeating)
    return {
        "cdc": {
            "path": quote(path, safe="/=+"),
            "partitionValues": dict(partition),
            "size": size,
            "dataChange": False,
        }
    }


def _new_path(partition: PartitionValues, prefix: str) -> str:
    """Return a fresh path; its folders name the partition for people, readers ask the log."""
    folders = ""
    texts = {name: text or "__HIVE_DEFAULT_PARTITION__" for name, text in partition.items()}
    if all(_SAFE_FOLDER.fullmatch(part) for pair in texts.items() for part in pair):
        folders = "".join(f"{name}={text}/" for name, text in texts.items())
    return f"{folders}{prefix}-00000-{uuid.uuid4()}-c000.snappy.parquet"


def _write_parquet(
    path: Path, rows: pa.Table, repeating: Sequence[str]
) -> tuple[int, pq.FileMetaData]:
    """Write one file; return its bytes, and what Parquet says of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written: list[pq.FileMetaData] = []
    pq.write_table(
        rows,
        path,
        compression="snappy",
        use_dictionary=list(repeating),
        column_encoding=dict.fromkeys(_packed_columns(rows.schema), "DELTA_BINARY_PACKED"),
        coerce_timestamps="us",
        version="2.6",
        write_statistics=True,
        store_schema=False,
        metadata_collector=written,
    )
    return path.stat().st_size, written[0]


def _repeating_columns(parts: Sequence[_Part]) -> list[str]:
    """Return the columns to make a dictionary of, in the files of all parts of one table.

    The largest part speaks for all: to look at each takes a sixth of the time of writing it.
    """
    if not parts:
        return []
    _, rows = max(parts, key=lambda part: part[1].num_rows)
    # Numbers and times are sorted or random here, never repetitive enough for a dictionary.
    packed = _packed_columns(rows.schema)
    return [it for it in rows.column_names if it not in packed and _repeats(rows.column(it))]


def _packed_columns(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if _is_packed(field.type) and "." not in field.name]


def _repeats(column: pa.ChunkedArray) -> bool:
    """Return whether values come often enough for a dictionary of them to save anything.

    One of keys and amounts takes as long to make as all the rest of a file, and more room.
    """
    if pa.types.is_nested(column.type):
        return True
    sample = column.slice(max(0, len(column) - _SAMPLED_ROWS) // 2, _SAMPLED_ROWS)
    return bool(2 * pc.count_distinct(sample).as_py() <= len(sample))


def _is_packed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_int64(kind) or pa.types.is_timestamp(kind))


def _statistics(rows: pa.Table, written: pq.FileMetaData) -> dict[str, Any]:
    """Return the file statistics for the log.

    Only types whose bounds every reader parses alike get minimum and maximum: a wrong bound would
    lose rows. Timestamps are widened to whole milliseconds, long strings to prefixes around them.
    """
    by_column = _known_statistics(written)
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for field in list(rows.schema)[:_STATISTICS_COLUMNS]:
        kind, column = field.type, rows.column(field.name)
        if pa.types.is_nested(kind):
            continue
        nulls[field.name] = column.null_count
        if not has_order(kind) or column.null_count == len(column):
            continue
        try:
            least, most = _extremes(column, by_column.get(field.name))
            lowest = _bound(least, is_upper=False)
            highest = _bound(most, is_upper=True)
        except (OverflowError, ValueError):  # beyond the years that Python knows
            continue
        low[field.name], high[field.name] = lowest, highest
    return {
        "numRecords": rows.num_rows,
        "minValues": low,
        "maxValues": high,
        "nullCount": nulls,
    }


def _known_statistics(written: pq.FileMetaData) -> dict[str, pq.Statistics]:
    """Return what Parquet says of columns, by name; it has looked for their bounds already."""
    if written.num_row_groups != 1:
        return {}
    group = written.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    # A column `a.b` and field b of a struct a have one path.
    paths = Counter(column.path_in_schema for column in columns)
    return {it.path_in_schema: it.statistics for it in columns if paths[it.path_in_schema] == 1}


def _extremes(column: pa.ChunkedArray, statistics: pq.Statistics | None) -> tuple[Any, Any]:
    if statistics is not None and statistics.has_min_max:
        return statistics.min, statistics.max
    bounds = pc.min_max(column)
    return bounds["min"].as_py(), bounds["max"].as_py()


def _bound(value: Any, *, is_upper: bool) -> Any:
    match value:
        case datetime():
            spare = timedelta(microseconds=value.microsecond % 1000)
            rounded = value - spare
            if is_upper and spare:
                rounded += timedelta(milliseconds=1)
            text = rounded.replace(tzinfo=None).isoformat(timespec="milliseconds")
            return f"{text}Z" if value.tzinfo else text
        case date():
            return value.isoformat()
        case str() if len(value) > _STRING_PREFIX:
            return value[:_STRING_PREFIX] + ("\U0010ffff" if is_upper else "")
        case _:
            return value
