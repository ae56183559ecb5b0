"""Files that stop a micro-batch before it is landed: gone, changed or unreadable since it began."""

from __future__ import annotations

from datetime import UTC, datetime

from livemart.errors import SourceError
from livemart.land.files.folder import FileIdentity


class UnreadableFileError(SourceError):
    """A delivered file cannot be read; `is_retriable`: a disk far away may come back."""

    is_retriable = True


def unreadable(name: str, error: OSError) -> SourceError:
    """Return the error for a file that the system refuses to read."""
    return UnreadableFileError(
        "SOURCE_FILE_UNREADABLE",
        f"{name}: {error.strerror or error}",
        hint="let the user that runs livemart read the file; until then nothing of its batch lands",
    )


def gone(name: str) -> SourceError:
    """Return the error for a file that is no longer there."""
    return SourceError(
        "SOURCE_FILE_CHANGED",
        f"{name}: was delivered, is gone now, and is not landed yet",
        hint="put the file back; to give its records up, put an empty file in its place",
    )


def changed(before: FileIdentity, now: FileIdentity, batch_id: int) -> SourceError:
    """Return the error for a file that is not what it was when its batch was begun."""
    begun = f"when batch {batch_id} was begun"
    found = (
        f"was modified at {_time(before)} {begun}, now at {_time(now)}"
        if before.is_sampled and now.size == before.size
        else f"had {before.size} bytes {begun}, has {now.size} now with other content"
    )
    return SourceError(
        "SOURCE_FILE_CHANGED",
        f"{before.path}: {found}, and is not landed yet",
        hint="put the first content back (a file above 64 MiB with its time: `cp -p`); to give its "
        "records up, make the file empty; deliver what is new under another name",
    )


def _time(identity: FileIdentity) -> str:
    # In full: a file may be written twice within a second.
    seconds, rest = divmod(identity.mtime_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"
