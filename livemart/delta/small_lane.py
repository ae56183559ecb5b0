"""Commits a change set in Arrow as one Delta commit, without Spark.

Used by the warehouse. Only files that hold a changed row are rewritten; removed and added rows go
to the change feed, so the feed is the net change. A row that goes is found by its equal key, or is
the identical row (`bags`), so maps, structs and floats need no special care.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, is_member, repeated
from livemart.delta.layout import USUAL_FILE_ROWS, crowded, lay_out, order_column
from livemart.delta.log import Action, write_entry
from livemart.delta.parquet import in_parallel, read_change_file, write_change_files, write_files
from livemart.delta.partitions import PartitionValues, partition_text, split_partitions
from livemart.delta.tags import Tag
from livemart.delta.version import DataFile, TableVersion

_FEATURES = {"appendOnly", "invariants", "changeDataFeed", "timestampNtz", "variantType"}
_MAX_WRITER_VERSION = 4
# Measured, narrow reads of two million rows in no order: 13 ms of CPU a batch, 73 ms without.
_WIDE_FILES_A_COMMIT = 2
_ROWS_TOGETHER = 1_000_000


class StoredRowsError(Exception):
    """The table does not hold the rows that a change set takes away; nothing was written."""

    def __init__(self, expected: int, present: int) -> None:
        super().__init__(f"{expected} rows to remove, {present} found")


def unsupported_reason(table: DeltaTable) -> str | None:
    """Return why the small lane cannot write to this table, or None if it can."""
    protocol = table.protocol()
    features = set(protocol.writer_features or [])
    if protocol.min_writer_version >= 7:
        if unknown := features - _FEATURES:
            return f"table features {', '.join(sorted(unknown))}"
    elif protocol.min_writer_version > _MAX_WRITER_VERSION:
        return f"writer version {protocol.min_writer_version}"
    configuration = table.metadata().configuration
    if any(name.startswith("delta.constraints.") for name in configuration):
        return "check constraints"
    if configuration.get("delta.appendOnly") == "true":
        return "delta.appendOnly"
    if any(name.startswith("delta.") for field in table.schema().fields for name in field.metadata):
        return "generated or identity columns"
    return None


def write_rows(files: TableVersion, rows: pa.Table, *, key: Sequence[str]) -> list[Action]:
    """Write rows to files of a table that no commit names yet; return their `add` actions."""
    order_by = order_column(files.schema, key)
    parts = split_partitions(rows, files.partition_columns)
    laid_out = [(values, file) for values, part in parts for file in lay_out([], part, order_by)]
    return write_files(files.storage, laid_out, files.indexed)


def commit_diff(
    files: TableVersion,
    diff: pa.Table,
    *,
    key: Sequence[str],
    tag: Tag,
    written: Sequence[Action] = (),
) -> int:
    """Apply a change set to the newest version of a table in one commit.

    Args:
        diff: columns of the table, in its types, plus `OLD_COUNT` and `NEW_COUNT` (bigint, not
            NULL); one row for each distinct row whose multiplicity changes.
        key: columns that identify a row; if empty, all columns do.
        written: files of `write_rows` whose rows the commit adds as well.

    Returns:
        The new version.

    Raises:
        StoredRowsError: the table does not hold the rows to remove, or its key is not unique.
        Taken: another writer committed in between; nothing was changed.
    """
    rows = diff.select(files.schema.names)
    old_counts = diff.column(OLD_COUNT).to_numpy()
    removed_rows = rows.filter(pa.array(old_counts > 0)).combine_chunks()
    added = repeated(rows, diff.column(NEW_COUNT))

    touched = _find(files, removed_rows, key) if removed_rows.num_rows else []
    expected, present = (
        int(np.maximum(old_counts, 0).sum()),
        sum(int(t.is_removed.sum()) for t in touched),
    )
    if present != expected:
        raise StoredRowsError(expected, present)
    touched += _misplaced_files(files, added, {piece.file.path for piece in touched})
    order_by = order_column(files.schema, key)
    actions, removed = _rewrite(files, touched, added, order_by)
    if touched:
        # With files of changes in a commit, readers of changes look at nothing else.
        actions += [_change_of(files, action["add"]) for action in written]
    actions += written
    write_entry(
        files.storage,
        files.version + 1,
        actions,
        operation="MERGE" if removed_rows.num_rows else "WRITE",
        tag=tag,
        metrics={
            "numTargetRowsDeleted": removed,
            "numTargetRowsInserted": added.num_rows + sum(map(_rows_of, written)),
        },
    )
    files.replaced([piece.file for piece in touched])
    return files.version + 1


def commit_rows(files: TableVersion, rows: pa.Table, *, tag: Tag) -> int:
    """Replace all rows of a table in one commit; its schema stays. Return the new version."""
    removes = map(remove_action, files.files())
    write_entry(
        files.storage,
        files.version + 1,
        [*removes, *write_rows(files, rows, key=())],
        operation="WRITE",
        tag=tag,
        metrics={"numOutputRows": rows.num_rows},
    )
    return files.version + 1


@dataclass(frozen=True, slots=True)
class _Touched:
    """A file that holds rows to delete: all its rows, and which of them go."""

    file: DataFile
    rows: pa.Table
    is_removed: npt.NDArray[Any]


def _find(files: TableVersion, removed_rows: pa.Table, key: Sequence[str]) -> list[_Touched]:
    """Find the files that hold one of these rows, by its key if it has one; read whole only those.

    All columns rule files out: a key of texts in no order is within the bounds of each, but its
    row may have a time.
    """
    looked_for = removed_rows.select(key) if key else removed_rows
    touched: list[_Touched] = []
    for together in _in_portions(files.files(files.bounds.may_hold(removed_rows))):
        touched += _find_among(files, together, looked_for, identical=not key)
    return touched


def _find_among(
    files: TableVersion, candidates: Sequence[DataFile], removed_rows: pa.Table, *, identical: bool
) -> list[_Touched]:
    """Look for rows in several files at once: each separate look-up costs time."""

    def read(file: DataFile) -> pa.Table:
        # A usual file is read whole at once: opening it twice costs more than its other columns.
        is_usual = file.rows is not None and file.rows <= USUAL_FILE_ROWS
        return files.read_file(file, files.schema.names if is_usual else removed_rows.column_names)

    tables = in_parallel(read, candidates)
    keys = pa.concat_tables([table.select(removed_rows.column_names) for table in tables])
    is_removed = is_member(keys.columns, removed_rows.columns, identical=identical)
    touched = []
    start = 0
    for file, table in zip(candidates, tables, strict=True):
        of_file = is_removed[start : start + table.num_rows]
        start += table.num_rows
        if of_file.any():
            is_whole = len(table.column_names) == len(files.schema.names)
            rows = table if is_whole else files.read_file(file, files.schema.names)
            touched.append(_Touched(file, rows, of_file))
    return touched


def _in_portions(candidates: Sequence[DataFile]) -> list[list[DataFile]]:
    """Split files so that the rows of a portion fit into memory beside each other."""
    portions: list[list[DataFile]] = []
    left = 0
    for file in candidates:
        if left <= 0:
            portions.append([])
            left = _ROWS_TOGETHER
        portions[-1].append(file)
        left -= file.rows if file.rows is not None else _ROWS_TOGETHER
    return portions


def _misplaced_files(files: TableVersion, added: pa.Table, rewritten: Set[str]) -> list[_Touched]:
    """Return the files whose rows are to be laid out again.

    These are small ones in a partition that gets new rows, if they have become too many. A large
    one, such as a build writes, is laid out again if readers want a small part of it.
    """
    mask = crowded(files.rows_by_file, files.partition_codes)
    if mask.any() and files.partition_columns and added.num_rows:
        mask &= files.bounds.may_hold(added.select(files.partition_columns))
    misplaced = (files.files(mask) if mask.any() else []) + files.wide_files(_WIDE_FILES_A_COMMIT)
    chosen = [file for file in misplaced if file.path not in rewritten]
    if not chosen:
        return []
    whole = in_parallel(lambda file: files.read_file(file, files.schema.names), chosen)
    return [
        _Touched(file, table, np.zeros(table.num_rows, dtype=bool))
        for file, table in zip(chosen, whole, strict=True)
    ]


def _rewrite(
    files: TableVersion, touched: Sequence[_Touched], added: pa.Table, order_by: str | None
) -> tuple[list[Action], int]:
    """Write kept and new rows; return the commit's file actions and the rows removed."""
    partitions = files.partition_columns
    parts = _parts(
        added, [(p.file, p.rows.filter(pa.array(~p.is_removed))) for p in touched], partitions
    )
    laid_out = [
        (values, rows)
        for values, remaining, new in parts
        for rows in lay_out(remaining, new, order_by)
    ]
    adds = write_files(files.storage, laid_out, files.indexed)
    for action, (_, rows) in zip(adds, laid_out, strict=True):
        files.written(action["add"]["path"], rows)
    if not touched:
        return adds, 0
    removed_rows = pa.concat_tables(
        [piece.rows.filter(pa.array(piece.is_removed)) for piece in touched]
    )
    changed = pa.concat_tables(
        [_with_change_type(removed_rows, "delete"), _with_change_type(added, "insert")]
    )
    cdc = write_change_files(files.storage, list(split_partitions(changed, partitions)))
    return [*(remove_action(piece.file) for piece in touched), *adds, *cdc], removed_rows.num_rows


def _parts(
    added: pa.Table,
    remaining: Sequence[tuple[DataFile, pa.Table]],
    partition_columns: Sequence[str],
) -> list[tuple[PartitionValues, list[pa.Table], pa.Table]]:
    """Bring together, by partition, the rows that stay of each file and the new ones."""
    parts: dict[tuple[str | None, ...], tuple[PartitionValues, list[pa.Table], pa.Table]] = {}
    for values, rows in split_partitions(added, partition_columns):
        parts[tuple(values.values())] = (values, [], rows)
    nothing = added.slice(0, 0).drop_columns(list(partition_columns))
    for file, rows in remaining:
        values = partition_texts(file)
        part = parts.setdefault(tuple(values.values()), (values, [], nothing))
        part[1].append(rows.drop_columns(list(partition_columns)))
    return list(parts.values())


def partition_texts(file: DataFile) -> PartitionValues:
    """Return the partition values of a file as the log spells them."""
    return {name: partition_text(value) for name, value in file.partition.items()}


def _change_of(files: TableVersion, added: Action) -> Action:
    """Write the change file of a file of new rows."""
    values: PartitionValues = added["partitionValues"]
    rows = read_change_file(files.storage, added, files.schema).drop_columns(list(values))
    (change,) = write_change_files(files.storage, [(values, _with_change_type(rows, "insert"))])
    return change


def _rows_of(action: Action) -> int:
    return int(json.loads(action["add"]["stats"])["numRecords"])


def _with_change_type(rows: pa.Table, change: str) -> pa.Table:
    kinds = pa.repeat(pa.scalar(change), rows.num_rows)
    return rows.append_column("_change_type", kinds)


def remove_action(file: DataFile) -> Action:
    """Return the action that takes a file out of its table."""
    return {
        "remove": {
            "path": file.path,
            "deletionTimestamp": int(time.time() * 1000),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": dict(partition_texts(file)),
            "size": file.size,
        }
    }


def rewritten(files: TableVersion, file: DataFile, schema: pa.Schema) -> list[Action]:
    """Write a file again, its columns in these types; return the actions, which change no data."""
    rows = files.read_file(file, schema.names).cast(schema)
    stored = rows.drop_columns(list(files.partition_columns))
    actions = [
        remove_action(file),
        *write_files(files.storage, [(partition_texts(file), stored)], files.indexed),
    ]
    return [
        {name: {**body, "dataChange": False} for name, body in action.items()} for action in actions
    ]
