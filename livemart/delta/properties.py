"""Gives the table properties that every table of the warehouse has.

Used to create a table: by the small lane, and by Spark through its session.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from zlib import crc32

# For how long readers can go back if no setting says otherwise.
RETENTION = timedelta(days=7)


def retention_properties(retention: timedelta) -> Mapping[str, str]:
    """Return the properties by which a table keeps old files and log entries for so long.

    >>> retention_properties(timedelta(days=7))["delta.logRetentionDuration"]
    'interval 7 days'
    """
    # Time travel ends at the retention of deleted files even without VACUUM: so both are set.
    names = ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration")
    seconds = max(1, round(retention.total_seconds()))
    count, unit = (seconds // 86_400, "days") if seconds % 86_400 == 0 else (seconds, "seconds")
    return dict.fromkeys(names, f"interval {count} {unit}")


CHECKPOINT_INTERVAL = 10
"""Commits of a table from one checkpoint of its log to the next."""

# Deletion vectors and clustering are off because the small-change committer refuses such tables.
TABLE_PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "false",
    **retention_properties(RETENTION),
    # Upkeep removes old entries: no other program knows which versions have readers.
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
}


def is_checkpointed(relation: str, version: int) -> bool:
    """Return whether a commit of a table is followed by a checkpoint of its log: each tenth is.

    Which one depends on the table's name: tables that are all committed in each batch take turns.
    """
    turn = version + crc32(relation.encode())
    return turn % CHECKPOINT_INTERVAL == 0
