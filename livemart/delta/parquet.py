"""Reads and writes data files of a Delta table, with the statistics that the log needs.

Used by the small lane and by net changes. Several files at once are read and written by one pool of
threads.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from livemart.arrow.variants import as_structs
from livemart.delta.log import Action
from livemart.delta.partitions import PartitionValues, partition_value
from livemart.delta.skipping.bounds import (
    has_zero,
    leaves_with_nan,
    log_statistics,
)
from livemart.delta.table_schema import require_own_days, require_whole
from livemart.storage.storage import Storage

_Part = tuple[PartitionValues, pa.Table]

_SAMPLED_ROWS = 4_096
# File systems hold names of so many bytes.
_LONGEST_FOLDER = 255
# A request for so much takes little longer than one for a few bytes.
_ONE_REQUEST_BYTES = 1 << 20
# One pool for the process: Parquet is read and written on one core a file.
_POOL = ThreadPoolExecutor(max_workers=4, thread_name_prefix="data-files")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def write_files(table: Storage, parts: Sequence[_Part], indexed: Sequence[str]) -> list[Action]:
    """Write one Parquet file for each part of one table; return their `add` actions, in order.

    Args:
        indexed: columns that have statistics in the log, as the table's properties say.
    """

    def add(rows: pa.Table, entry: dict[str, Any], footer: pq.FileMetaData) -> Action:
        names = [name for name in indexed if name in rows.column_names]
        statistics = log_statistics(rows.schema, footer, rows.column, names, knows_nan=True)
        modified_ms = int(time.time() * 1000)
        entry |= {"modificationTime": modified_ms, "dataChange": True, "stats": statistics}
        return {"add": entry}

    return _write_each(table, parts, "part", add)


def write_change_files(table: Storage, parts: Sequence[_Part]) -> list[Action]:
    """Write one change-feed file for each part (with `_change_type`), return `cdc` actions."""
    return _write_each(
        table, parts, "cdc", lambda rows, entry, footer: {"cdc": entry | {"dataChange": False}}
    )


class TooManyRowsError(Exception):
    """A file holds more rows than its reader takes."""


def read_change_file(
    table: Storage, action: Action, schema: pa.Schema, *, most_rows: int | None = None
) -> pa.Table:
    """Return the rows of a data or change file that the log names, partition columns filled in.

    Args:
        action: body of an `add`, `remove` or `cdc` action.
        schema: plain schema; columns that the file lacks are NULL.

    Raises:
        TooManyRowsError: by its footer there are more than `most_rows`.
        pa.ArrowInvalid: a `remove` action leaves its partition out, as Delta allows, and the file
            lacks columns.
    """
    partition: PartitionValues = action.get("partitionValues") or {}
    file = open_file(table, action["path"], action.get("size"), pre_buffer=False)
    if most_rows is not None and file.metadata.num_rows > most_rows:
        raise TooManyRowsError(action["path"])
    present = set(file.schema_arrow.names) - set(partition)
    if action.get("partitionValues") is None and not present.issuperset(schema.names):
        raise pa.ArrowInvalid("a removed file does not say its partition")
    require_own_days(file.metadata, schema.names)
    data = file.read(columns=[name for name in schema.names if name in present])
    values = {
        field.name: partition_value(text, field.type)
        for field in schema
        # Delta reads an empty text as NULL, of any type; deltalake writes it for one.
        if (text := partition.get(field.name))
    }
    return completed(data, schema, values, file.metadata.num_rows)


def open_file(table: Storage, path: str, size: int | None, *, pre_buffer: bool) -> pq.ParquetFile:
    """Open a file that the log names, of so many bytes. Raises FileNotFoundError."""
    name, in_bucket = unquote(path), bool(table.location.scheme)
    # pyarrow asks a bucket for the size, for the footer, and for the columns.
    in_one_request = in_bucket and 0 < (size or 0) <= _ONE_REQUEST_BYTES
    return pq.ParquetFile(
        pa.BufferReader(table.get(name)) if in_one_request else name,
        filesystem=None if in_one_request else table.filesystem(),
        coerce_int96_timestamp_unit="us",
        pre_buffer=pre_buffer,
    )


def completed(
    data: pa.Table, schema: pa.Schema, partition: Mapping[str, pa.Scalar], count: int
) -> pa.Table:
    """Return so many rows of a file in a table's types, with the columns that the file lacks.

    Raises:
        OnlySparkError: its variants are in pieces.
    """
    require_whole(data.schema, schema)
    arrays = [
        data.column(field.name).cast(field.type)
        if field.name in data.column_names
        else pa.repeat(partition[field.name], count)
        if field.name in partition
        else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def in_parallel(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Return `work` of each item, in order, several at a time."""
    if len(items) <= 1:
        return [work(item) for item in items]
    return list(_POOL.map(work, items))


def _in_files(rows: pa.Table) -> pa.Table:
    """Return rows as files hold them: without columns of type VOID, which readers fill in."""
    typed_columns = [field.name for field in rows.schema if not pa.types.is_null(field.type)]
    return as_structs(rows.select(typed_columns))


def _write_each(
    table: Storage,
    parts: Sequence[_Part],
    prefix: Literal["part", "cdc"],
    action: Callable[[pa.Table, dict[str, Any], pq.FileMetaData], Action],
) -> list[Action]:
    """Write each part to a file; return the actions, made of rows, path with size, and footer."""
    parts = [(partition, _in_files(rows)) for partition, rows in parts]
    repeating = _repeating_columns(parts)
    folder = "_change_data/" if prefix == "cdc" else ""

    def write(part: _Part) -> Action:
        partition, rows = part
        path = f"{folder}{_new_path(partition, prefix)}"
        size, footer = _write_parquet(table, path, rows, repeating)
        quoted_path, values = quote(path, safe="/=+"), dict(partition)
        return action(rows, {"path": quoted_path, "partitionValues": values, "size": size}, footer)

    return in_parallel(write, parts)


def _new_path(partition: PartitionValues, prefix: str) -> str:
    """Return a fresh path, with folders that name the partition, encoded as by deltalake.

    Polars 2.1 reads the values there and not from the log, and fails where some files have none.
    """
    folders = [
        f"{quote(name, safe='')}={quote(text or '__HIVE_DEFAULT_PARTITION__', safe='')}/"
        for name, text in partition.items()
    ]
    named = "".join(folders) if all(len(folder) <= _LONGEST_FOLDER for folder in folders) else ""
    return f"{named}{prefix}-00000-{uuid.uuid4()}-c000.snappy.parquet"


def _write_parquet(
    table: Storage, path: str, rows: pa.Table, repeating: Sequence[str]
) -> tuple[int, pq.FileMetaData]:
    """Write one file; return its bytes, and its metadata as Parquet has them.

    Readers skip a file by these metadata, too. Parquet's bounds pass over NaN, which Spark and
    DuckDB hold to be above all numbers. A dictionary with one zero does not have the other for
    Spark, which compares bits there. So such columns have neither.
    """
    written: list[pq.FileMetaData] = []
    with_nan, others = leaves_with_nan(rows)
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        compression="snappy",
        use_dictionary=[name for name in repeating if not has_zero(rows.column(name))],
        column_encoding=dict.fromkeys(_packed_columns(rows.schema), "DELTA_BINARY_PACKED"),
        coerce_timestamps="us",
        version="2.6",
        write_statistics=others if with_nan else True,
        store_schema=False,
        metadata_collector=written,
    )
    data = sink.getvalue().to_pybytes()
    table.put(path, data, synced=False)
    return len(data), written[0]


def _repeating_columns(parts: Sequence[_Part]) -> list[str]:
    """Return the columns to make a dictionary of, in the files of all parts of one table.

    The largest part speaks for all: to look at each takes a sixth of the time of writing it.
    """
    if not parts:
        return []
    _, rows = max(parts, key=lambda part: part[1].num_rows)
    # Numbers and times are sorted or random here, never repetitive enough for a dictionary.
    packed = _packed_columns(rows.schema)
    names = [name for name in _sure_names(rows.schema) if name not in packed]
    return [name for name in names if _repeats(rows.column(name))]


def _packed_columns(schema: pa.Schema) -> list[str]:
    return [name for name in _sure_names(schema) if _is_packed(schema.field(name).type)]


def _sure_names(schema: pa.Schema) -> list[str]:
    """Return the names of columns but those that could be the path of a field in a struct."""
    return [name for name in schema.names if "." not in name]


def _repeats(column: pa.ChunkedArray) -> bool:
    """Return whether values come often enough for a dictionary of them to save anything.

    One of keys and amounts takes as long to make as all the rest of a file, and more room.
    """
    if pa.types.is_nested(column.type):
        return False
    sample = column.slice(max(0, len(column) - _SAMPLED_ROWS) // 2, _SAMPLED_ROWS)
    return bool(2 * pc.count_distinct(sample).as_py() <= len(sample))


def _is_packed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_int64(kind) or pa.types.is_timestamp(kind))
