"""The small lane's committer: a change set in Arrow becomes one Delta commit, Spark not involved.

Only files that hold a changed row are rewritten. Removed and added rows are written to the change
feed, so the feed is the net change. Rows are compared as Spark groups them (`bags`), so maps,
structs and floats need no special care.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable

from livemart.engine.bags import is_member
from livemart.engine.data_files import (
    partition_text,
    split_partitions,
    write_change_files,
    write_files,
)
from livemart.engine.delta_log import Action, write_entry
from livemart.engine.file_index import DataFile, FileIndex

OLD_COUNT = "_old_count"
NEW_COUNT = "_new_count"

# A rewrite costs about 0.4 ms per 1,000 rows of each file it touches.
_ROWS_PER_FILE = 100_000
# Files of like size (within a factor of 8) are merged when a partition has 16 of them: every row is
# then rewritten a few times in its life, and no partition has more than about 80 files.
_SMALL_FILE_ROWS = 32_768
_TIER_FACTOR = 8
_FILES_PER_TIER = 16
_FEATURES = {"appendOnly", "invariants", "changeDataFeed", "timestampNtz"}
_MAX_WRITER_VERSION = 4


@dataclass(frozen=True, slots=True)
class Tag:
    """Who commits: a version not above the last one of its application id is skipped.

    `app_id` is epoch/relation/generation, `version` the batch id, `metadata` what the commit says
    of itself.
    """

    app_id: str
    version: int
    metadata: Mapping[str, str]


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
    if '"delta.' in table.schema().to_json().replace('"delta.columnMapping', '"'):
        return "generated or identity columns"
    return None


def commit_diff(files: FileIndex, diff: pa.Table, *, key: Sequence[str], tag: Tag) -> int:
    """Apply a change set to the newest version of a table in one commit.

    Args:
        files: the table's newest version.
        diff: columns of the table, in its types, plus `_old_count` and `_new_count` (bigint, not
            NULL); one row for each distinct row whose multiplicity changes.
        key: columns that identify a row; if empty, all columns do.
        tag: application id, its version, commit metadata.

    Returns:
        The new version.

    Raises:
        VersionTakenError: another writer committed in between; nothing was changed.
    """
    rows = diff.select(files.schema.names)
    old_counts = diff.column(OLD_COUNT).to_numpy()
    new_counts = diff.column(NEW_COUNT).to_numpy()
    gone = rows.filter(pa.array(old_counts > 0)).combine_chunks()
    copies = np.repeat(np.arange(len(new_counts)), new_counts)
    added = rows.take(pa.array(copies)).combine_chunks()

    touched = _find(files, gone.select(list(key) or files.schema.names)) if gone.num_rows else []
    merged = _small_files(files, added, {piece.file.path for piece in touched})
    actions, removed = _rewrite(files, [*touched, *merged], added)
    write_entry(
        files.root,
        files.version + 1,
        actions,
        operation="MERGE" if gone.num_rows else "WRITE",
        app_id=tag.app_id,
        app_version=tag.version,
        metadata=tag.metadata,
        metrics={"numTargetRowsDeleted": removed, "numTargetRowsInserted": added.num_rows},
    )
    return files.version + 1


def commit_rows(files: FileIndex, rows: pa.Table, *, tag: Tag) -> int:
    """Replace all rows of a table in one commit; its schema stays. Return the new version."""
    removes = [_remove(file) for file in files.files()]
    written = write_files(files.root, _parts(rows, files.partition_columns))
    write_entry(
        files.root,
        files.version + 1,
        [*removes, *written],
        operation="WRITE",
        app_id=tag.app_id,
        app_version=tag.version,
        metadata=tag.metadata,
        metrics={"numOutputRows": rows.num_rows},
    )
    return files.version + 1


@dataclass(frozen=True, slots=True)
class _Touched:
    """A file that holds rows to delete: all its rows, and which of them go."""

    file: DataFile
    rows: pa.Table
    gone: npt.NDArray[Any]


def _find(files: FileIndex, wanted: pa.Table) -> list[_Touched]:
    """Find the files that hold a wanted row; read whole only those."""
    candidates = files.files(files.may_hold(wanted))
    identities = files.read_files(candidates, wanted.column_names)
    hits = [
        (file, gone)
        for file, present in zip(candidates, identities, strict=True)
        if (gone := is_member(present.columns, wanted.columns)).any()
    ]
    whole = files.read_files([file for file, _ in hits], files.schema.names)
    return [_Touched(file, rows, gone) for (file, gone), rows in zip(hits, whole, strict=True)]


def _small_files(files: FileIndex, added: pa.Table, taken: Set[str]) -> list[_Touched]:
    """Return small files beside which new rows land, where they have become too many."""
    rows = files.rows_by_file
    small = (rows >= 0) & (rows < _SMALL_FILE_ROWS)
    if added.num_rows == 0 or np.count_nonzero(small) < _FILES_PER_TIER:
        return []
    if files.partition_columns:
        small &= files.may_hold(added.select(files.partition_columns))
    positions = np.flatnonzero(small)
    tiers = (np.log(rows[positions] + 1) / np.log(_TIER_FACTOR)).astype(np.int64)
    groups = files.partition_codes[positions] * 64 + tiers
    _, group, counts = np.unique(groups, return_inverse=True, return_counts=True)
    mask = np.zeros(len(files), dtype=bool)
    mask[positions[counts[group] >= _FILES_PER_TIER]] = True
    chosen = [file for file in files.files(mask) if file.path not in taken]
    whole = files.read_files(chosen, files.schema.names)
    return [
        _Touched(file, table, np.zeros(table.num_rows, dtype=bool))
        for file, table in zip(chosen, whole, strict=True)
    ]


def _rewrite(
    files: FileIndex, touched: Sequence[_Touched], added: pa.Table
) -> tuple[list[Action], int]:
    """Write what stays and what is new; return the commit's file actions and the rows removed."""
    partitions = files.partition_columns
    if not touched:
        return write_files(files.root, _parts(added, partitions)), 0
    kept = [piece.rows.filter(pa.array(~piece.gone)) for piece in touched]
    gone = pa.concat_tables([piece.rows.filter(pa.array(piece.gone)) for piece in touched])
    merged = pa.concat_tables([*kept, added])
    changed = pa.concat_tables(
        [_with_change_type(gone, "delete"), _with_change_type(added, "insert")]
    )
    adds = write_files(files.root, _parts(merged, partitions))
    cdc = write_change_files(files.root, list(split_partitions(changed, partitions)))
    return [*(_remove(piece.file) for piece in touched), *adds, *cdc], gone.num_rows


def _with_change_type(rows: pa.Table, change: str) -> pa.Table:
    kinds = pa.repeat(pa.scalar(change), rows.num_rows)
    return rows.append_column("_change_type", kinds)


def _parts(
    rows: pa.Table, partition_columns: Sequence[str]
) -> list[tuple[Mapping[str, str | None], pa.Table]]:
    """Cut rows into files: by partition, then evenly, order kept, at most `_ROWS_PER_FILE` each."""
    parts = []
    for values, part in split_partitions(rows, partition_columns):
        pieces = -(-part.num_rows // _ROWS_PER_FILE)
        size = -(-part.num_rows // pieces)
        parts += [(values, part.slice(start, size)) for start in range(0, part.num_rows, size)]
    return parts


def _remove(file: DataFile) -> Action:
    return {
        "remove": {
            "path": file.path,
            "deletionTimestamp": int(time.time() * 1000),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {
                name: partition_text(value.as_py()) for name, value in file.partition.items()
            },
            "size": file.size,
        }
    }
