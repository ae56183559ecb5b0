"""Finds files below a landing folder in a bucket, and copies those that are read.

Used by landing for `s3://` URLs. A file's ETag stands for its content, so that nothing is read to
see whether it has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from livemart.errors import SourceError
from livemart.land.sources.files.folder import (
    ETAG,
    FileIdentity,
    FoundFile,
    LandingFolder,
    is_below,
    is_hidden,
    literal_folder,
    matches,
    moved,
)
from livemart.storage.location import Location, StoragePlace
from livemart.storage.opening import open_storage
from livemart.storage.scratch import temporary_folder
from livemart.storage.storage import Changed, Missing, ObjectEntry


class LandingBucket:
    """A landing folder in a bucket, which answers as a `LandingFolder` does."""

    def __init__(self, root: Location) -> None:
        self.root = root
        self._storage = open_storage(root)

    def locate(self, relative: str) -> Location | None:
        return self.root / relative if is_below(relative) else None

    def relative(self, place: StoragePlace) -> str:
        url, start = Location.of(place).url, f"{self.root}/"
        if not url.startswith(start):
            raise moved(place, self.root)
        return url.removeprefix(start)

    def name_in(self, error: OSError) -> str | None:
        url, start = str(error), f"{self.root}/"
        is_ours = isinstance(error, Missing) and url.startswith(start)
        return url.removeprefix(start) if is_ours else None

    def has_folder(self, name: str) -> bool:
        # A bucket that cannot be reached raises an error before.
        return True

    def touched(self, files: Sequence[FileIdentity]) -> list[FileIdentity]:
        # One request lists a thousand names; each look at a single one would be another.
        folders = {str(PurePosixPath(file.path).parent) for file in files}
        now = {
            entry.name: entry
            for folder in sorted(folders)
            for entry in self._storage.entries("" if folder == "." else folder)
        }
        return [file for file in files if file.path in now and _tag(now[file.path]) != file.digest]

    def found(self, pattern: str) -> Iterator[FoundFile]:
        for entry in self._storage.entries(literal_folder(pattern)):
            if matches(entry.name, pattern) and not is_hidden(entry.name):
                yield FoundFile(self.root / entry.name, entry.size, entry.modified_s)

    def names(self) -> Iterator[str]:
        return (name for name in self._storage.names() if not is_hidden(name))

    def size(self, name: str) -> int:
        if (entry := self._storage.head(name)) is None:
            raise Missing(str(self.root / name))
        return entry.size

    def identify(self, name: str) -> FileIdentity | None:
        entry = self._storage.head(name)
        return None if entry is None else _identity(entry)


LandingPlace = LandingFolder | LandingBucket


def open_landing(place: StoragePlace) -> LandingPlace:
    """Return the landing folder at a path or a URL; nothing is read yet."""
    location = Location.of(place)
    return LandingBucket(location) if location.scheme else LandingFolder(location.on_disk)


def _identity(entry: ObjectEntry) -> FileIdentity:
    # A store gives milliseconds or seconds; a double holds no more than microseconds.
    modified_ns = round(entry.modified_s * 1_000_000) * 1_000
    return FileIdentity(entry.name, entry.size, modified_ns, _tag(entry))


def _tag(entry: ObjectEntry) -> str:
    return f"{ETAG}{entry.etag}"


@contextmanager
def on_this_machine(place: StoragePlace, digest: str = "") -> Iterator[Path]:
    """Yield the path of a file; one in a bucket is copied, for as long as the block lasts.

    `digest`: of the content that is asked for; any if it is empty, as is that of a path.

    Raises:
        Missing: it was removed.
        SourceError: SOURCE_FILE_CHANGED.
        StorageError: see `Storage`.
    """
    if isinstance(place, Path):
        yield place
        return
    location = Location.of(place)
    storage, name = open_storage(location.top), location.path
    etag = digest.removeprefix(ETAG)
    if not etag and (entry := storage.head(name)) is not None:
        etag = entry.etag
    with temporary_folder("landing") as folder:
        copy = folder / "file"
        try:
            storage.download(name, copy, etag)
        except Changed:
            raise SourceError(
                "SOURCE_FILE_CHANGED",
                f"{place}: was changed after its batch had begun, and is not landed yet",
                hint="restore the first content; to give its records up, make the object empty; "
                "deliver new records under another name",
            ) from None
        yield copy
