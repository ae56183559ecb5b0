"""Describes the mistakes of a delivered file as a whole.

Used while a micro-batch is read. A file that can be passed over is a dead letter of each source
that reads it. A file that was removed, changed or unreadable before it landed stops the batch, so
that no record is lost.
"""

from __future__ import annotations

from livemart.conflicts import is_disk_away
from livemart.epoch import timestamp_text
from livemart.errors import SourceError
from livemart.land.reasons import LetterReason
from livemart.land.sources.delivery import DeliveryProblem
from livemart.land.sources.files.bucket import LandingPlace
from livemart.land.sources.files.folder import FileIdentity


def file_problem(folder: LandingPlace, before: FileIdentity) -> DeliveryProblem | None:
    """Return why a file of a delivery is passed over or given up, None if nothing is wrong."""
    if folder.locate(before.path) is None:
        detail = "its path, or a link in it, leads out of the landing folder: not read"
        return DeliveryProblem(before.path, LetterReason.MALFORMED_RECORD, detail)
    if before.size and not folder.size(before.path):
        detail = f"had {before.size} bytes, is empty now: its records were given up"
        return DeliveryProblem(before.path, LetterReason.SOURCE_FILE_CHANGED, detail)
    return None


def changed_since(now: FileIdentity) -> DeliveryProblem:
    """Return the problem of a file that was changed after it was landed."""
    detail = (
        f"changed after it was landed, to {now.size} bytes: what is new is not "
        "read; deliver it under another name"
    )
    return DeliveryProblem(now.path, LetterReason.SOURCE_FILE_CHANGED, detail)


class UnreadableFileError(SourceError):
    """A delivered file cannot be read; `is_retriable`: rights may be mended, a disk read again."""

    is_retriable = True


class FolderAwayError(UnreadableFileError):
    """The disk that a delivered file is on cannot be reached; a stream waits for it: `is_away`."""

    is_away = True


def unreadable(name: str, error: OSError) -> SourceError:
    """Return the error for a file that the system refuses to read."""
    if is_disk_away(error):
        return _away(name, error.strerror or str(error))
    return UnreadableFileError(
        "SOURCE_FILE_UNREADABLE",
        f"{name}: {error.strerror or error}",
        hint="let the user that runs livemart read the file; until then nothing of its batch lands",
    )


def disappeared(folder: LandingPlace, name: str) -> SourceError:
    """Return the error for a file that is no longer there, or with all of its folder."""
    if not folder.has_folder(name.rpartition("/")[0]):
        return _away(name, f"its folder below {folder.root} is not there")
    return SourceError(
        "SOURCE_FILE_CHANGED",
        f"{name}: was delivered, and is missing before it has landed",
        hint="restore the file; to give up its records, put an empty file in its place",
    )


def _away(name: str, why: str) -> SourceError:
    return FolderAwayError(
        "SOURCE_FILE_UNREADABLE",
        f"{name}: {why}",
        hint="check that the disk is mounted; until then nothing of its batch lands, and "
        "nothing is lost",
    )


def changed(before: FileIdentity, now: FileIdentity, batch_id: int) -> SourceError:
    """Return the error for a file that was changed after its batch had begun."""
    begun = f"when batch {batch_id} was begun"
    difference = (
        f"was modified at {_time(before)} {begun}, now at {_time(now)}"
        if before.is_sampled and now.size == before.size
        else f"had {before.size} bytes {begun}, has {now.size} now with other content"
    )
    return SourceError(
        "SOURCE_FILE_CHANGED",
        f"{before.path}: {difference}, and is not landed yet",
        hint="restore the first content (above 64 MiB also the time: `cp -p`); to give its "
        "records up, make the file empty; deliver new records under another name",
    )


def _time(identity: FileIdentity) -> str:
    # In full: a file may be written twice within a second.
    rest = identity.mtime_ns % 1_000_000_000
    return f"{timestamp_text(identity.mtime_ns - rest)}.{rest:09}Z"
