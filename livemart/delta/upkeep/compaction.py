"""Merges the small files of partitions that no commit has written to for a while.

Used by the warehouse. A commit merges small files only in the partitions that it adds rows to. The
partition of a day that has passed would keep its small files for ever, some sixty in each table. No
row changes: the commit names other files for the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np

from livemart.delta.layout import SMALL_FILE_ROWS, lay_out
from livemart.delta.log import Action, write_entry
from livemart.delta.parquet import in_parallel, write_files
from livemart.delta.small_lane import partition_texts, remove_action
from livemart.delta.tags import Tag
from livemart.delta.version import DataFile, TableVersion
from livemart.errors import RefreshError

_APP_ID = "livemart/compaction"
# Held in memory at once: Spark may have written any number of small files.
_MOST_ROWS = 500_000


def commit_compaction(files: TableVersion, *, quiet_since: datetime, until: float) -> int:
    """Merge the small files of quiet partitions of a table's newest version.

    Args:
        files: of that version.
        quiet_since: a partition with a file that was written later is left to commits.
        until: on the monotonic clock; partitions that are left then are left for the next time.

    Returns:
        The number of files that were merged; 0: nothing was committed.

    Raises:
        Taken: another writer committed in between; nothing was changed.
    """
    merged: list[DataFile] = []
    adds: list[Action] = []
    for small in _small_files(files, quiet_since):
        if time.monotonic() > until:
            break
        try:
            tables = in_parallel(lambda file: files.read_file(file, files.schema.names), small)
        except RefreshError:
            # Only Spark can read one of them.
            continue
        stored = [rows.drop_columns(list(files.partition_columns)) for rows in tables]
        pieces = lay_out(stored, stored[0].slice(0, 0), None)
        parts = [(partition_texts(small[0]), rows) for rows in pieces]
        adds += write_files(files.storage, parts, files.indexed)
        merged += small
    if not merged:
        return 0
    actions: Sequence[Action] = [*map(remove_action, merged), *adds]
    write_entry(
        files.storage,
        files.version + 1,
        [{kind: {**body, "dataChange": False} for kind, body in it.items()} for it in actions],
        operation="OPTIMIZE",
        tag=Tag(_APP_ID, files.version + 1),
        metrics={"numRemovedFiles": len(merged), "numAddedFiles": len(adds)},
    )
    files.replaced(merged)
    return len(merged)


def _small_files(files: TableVersion, quiet_since: datetime) -> Iterator[list[DataFile]]:
    """Yield the small files of each quiet partition that has several, the oldest ones first."""
    rows, codes = files.rows_by_file, files.partition_codes
    is_small = (rows >= 0) & (rows < SMALL_FILE_ROWS)
    written_ms = files.written_ms
    busy = np.unique(codes[written_ms > quiet_since.timestamp() * 1000])
    candidates = np.flatnonzero(is_small & ~np.isin(codes, busy))
    by_partition: dict[int, list[int]] = {}
    for position in candidates[np.argsort(written_ms[candidates], kind="stable")].tolist():
        by_partition.setdefault(int(codes[position]), []).append(position)
    for positions in by_partition.values():
        counts = np.cumsum(rows[positions])
        together = positions[: int(np.searchsorted(counts, _MOST_ROWS)) + 1]
        if len(together) > 1:
            mask = np.zeros(len(files), dtype=bool)
            mask[together] = True
            yield files.files(mask)
