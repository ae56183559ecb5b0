"""Recognizes errors that mean another writer committed first, and errors that may pass.

Used by both committers, by a refresh, and by the runner, which replays a batch that met such an
error.
"""

from __future__ import annotations

import errno
import os

from livemart.errors import LivemartError, RefreshError, causes

# Words in the messages of Delta and deltalake for "somebody else committed first".
CONFLICTS = (
    "ConcurrentModification",
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
)
# A table that is being replaced may be missed for a moment; one that is gone stays so.
_PASSING = ("CommitFailedError", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")
# Messages of the system about a disk that is far away, and of Spark's JVM after it.
_AWAY = (
    *(errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH),
)
# Those of deltalake, pyarrow and Spark's S3A about a bucket, each after retries by itself.
_BUCKET_AWAY = (
    *("Generic S3 error", "AWS Error NETWORK_CONNECTION", "java.net.ConnectException"),
    *("AWSClientIOException", "AWSServiceThrottledException", "AWSStatus500Exception"),
)
_AWAY_WORDS = (*map(os.strerror, _AWAY), "Invalid directory or I/O error", *_BUCKET_AWAY)


class TableChangedError(RefreshError):
    """Somebody else wrote to a table in the middle of a batch; `is_retriable`: replay the batch."""

    is_retriable = True


def is_another_writers(error: BaseException) -> bool:
    """Return True if a fault means that another writer has committed to a table meanwhile."""
    return any(
        isinstance(cause, TableChangedError) or speaks_of(cause, CONFLICTS)
        for cause in causes(error)
    )


def may_pass(error: BaseException) -> bool:
    """Return True for a fault that running the batch again may overcome."""
    return any(
        getattr(cause, "is_retriable", False)
        or is_disk_away(cause)
        or speaks_of(cause, CONFLICTS + _PASSING + _AWAY_WORDS)
        for cause in causes(error)
    )


def is_disk_away(error: BaseException) -> bool:
    """Return True for an error of the system that says that a disk cannot be reached just now."""
    return isinstance(error, OSError) and error.errno in _AWAY


def speaks_of(error: BaseException, words: tuple[str, ...]) -> bool:
    """Return True if the name or the message of a foreign error holds one of the words."""
    if isinstance(error, LivemartError):
        return False
    text = f"{type(error).__name__} {error}"
    return any(word in text for word in words)
