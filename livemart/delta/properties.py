"""Gives the table properties that every table of the warehouse has.

Used to create a table: by the small lane, and by Spark through its session.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

# For how long readers can go back: files, log entries and the rows of the snapshot log.
RETENTION = timedelta(days=7)

# Deletion vectors and clustering are off because the small-change committer refuses such tables.
# Time travel ends at the retention of deleted files even without VACUUM: so both are set.
TABLE_PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "false",
    "delta.deletedFileRetentionDuration": f"interval {RETENTION.days} days",
    "delta.logRetentionDuration": f"interval {RETENTION.days} days",
    # Upkeep removes old entries: whoever else does so does not know which versions have readers.
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": "10",
}
