"""A disk without room: told apart from errors that are ours, whoever met it first."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from livemart.errors import StateError, causes

_FULL = (errno.ENOSPC, errno.EDQUOT)
# Of the system, as Spark's JVM and the table library pass it on; of SQLite; of a quota.
_WORDS = ("No space left on device", "database or disk is full", "Disk quota exceeded")


def as_full_disk(error: BaseException, warehouse: Path) -> StateError | None:
    """Return what to say of an error that a full disk has caused, None for any other.

    Args:
        error: what ended the command.
        warehouse: the place to name if the error names none.
    """
    for seen in causes(error):
        if getattr(seen, "errno", None) in _FULL or any(word in str(seen) for word in _WORDS):
            return _disk_full(seen, warehouse)
    return None


def _disk_full(error: BaseException, warehouse: Path) -> StateError:
    named = getattr(error, "filename", None)
    place = Path(named) if isinstance(named, str) else warehouse
    lines = [line.strip() for line in str(error).splitlines()]
    words = next((line for line in lines if any(word in line for word in _WORDS)), "")
    found = words or getattr(error, "strerror", None) or str(error)
    return StateError(
        "DISK_FULL",
        f"{place}: {_free(place)}: {found}",
        hint="free space there (Spark's temporary files lie in /tmp or SPARK_LOCAL_DIRS), then run "
        "the command again; readers keep the last snapshot, nothing is half published",
    )


def _free(place: Path) -> str:
    for folder in (place, *place.absolute().parents):
        try:
            return f"found {shutil.disk_usage(folder).free >> 20:,} MiB free"
        except OSError:
            continue
    return "no space"
