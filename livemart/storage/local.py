"""Keeps objects as files of a local disk.

Used for every path. A new file appears by link(2), which fails if another writer took its name.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from pathlib import Path

import pyarrow.fs as pfs

from livemart.storage.location import Location
from livemart.storage.storage import Changed, Missing, ObjectEntry, Taken

_DRAFTS = (".tmp", ".new")


class LocalStorage:
    """Objects below a folder; folders are made as they are needed."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._root = location.url
        self._filesystem: pfs.FileSystem | None = None

    def below(self, folder: str) -> LocalStorage:
        return LocalStorage(self.location / folder)

    def create(self, name: str, data: bytes) -> None:
        path = self._path(name)
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        _write(draft, data, synced=True)
        try:
            os.link(draft, path)
        except FileExistsError as error:
            raise Taken(str(path)) from error
        finally:
            draft.unlink()

    def put(self, name: str, data: bytes, *, synced: bool = True) -> None:
        path = self._path(name)
        if not synced:
            _write(path, data, synced=False)
            return
        draft = path.with_name(f".{path.name}.new")
        _write(draft, data, synced=True)
        draft.rename(path)

    def replace_if(self, name: str, data: bytes, etag: str) -> None:
        if (entry := self.head(name)) is None or entry.etag != etag:
            raise Changed(str(self._path(name)))
        self.put(name, data)

    def get(self, name: str) -> bytes:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError as error:
            raise Missing(str(self._path(name))) from error

    def download(self, name: str, path: Path, etag: str) -> None:
        if (entry := self.head(name)) is None:
            raise Missing(str(self._path(name)))
        if entry.etag != etag:
            raise Changed(str(self._path(name)))
        shutil.copyfile(self._path(name), path)

    def upload(self, name: str, path: Path) -> None:
        self.put(name, path.read_bytes())

    def head(self, name: str) -> ObjectEntry | None:
        try:
            status = os.stat(f"{self._root}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        # A file that was removed and written again has another inode or another time.
        etag = f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"
        return ObjectEntry(name, status.st_size, etag, status.st_mtime)

    def entries(self, folder: str = "") -> list[ObjectEntry]:
        # Another process may remove one meanwhile.
        return [entry for name in self.names(folder) if (entry := self.head(name)) is not None]

    def names(self, folder: str = "", after: str = "", most: int | None = None) -> list[str]:
        names = (name for name in self._names(folder) if name > after)
        return sorted(names) if most is None else nsmallest(most, names)

    def _names(self, folder: str) -> Iterator[str]:
        for place, _, files in os.walk(
            f"{self._root}/{folder}" if folder else self._root, onerror=_unless_missing
        ):
            inside = place.removeprefix(self._root).strip("/")
            for file in files:
                if not (file.startswith(".") and file.endswith(_DRAFTS)):
                    yield f"{inside}/{file}" if inside else file

    def folders(self, folder: str = "") -> list[str]:
        try:
            entries = os.scandir(f"{self._root}/{folder}")
        except (FileNotFoundError, NotADirectoryError):
            return []
        with entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._path(name).unlink(missing_ok=True)

    def filesystem(self) -> pfs.FileSystem:
        if self._filesystem is None:
            self._filesystem = pfs.SubTreeFileSystem(self._root, pfs.LocalFileSystem())
        return self._filesystem

    def options(self) -> dict[str, str]:
        return {}

    def spark_settings(self) -> dict[str, str]:
        return {}

    def _path(self, name: str) -> Path:
        return Path(f"{self._root}/{name}")


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def _write(path: Path, data: bytes, *, synced: bool) -> None:
    try:
        file = path.open("wb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("wb")
    with file:
        file.write(data)
        if synced:
            file.flush()
            os.fsync(file.fileno())
