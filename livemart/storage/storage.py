"""Defines the promises of every storage: objects that are whole, by name, below one folder.

Used by the rooms that keep tables and state. A name is relative, with slashes. The next look finds
every object that was written. No object is renamed or appended to, no folder is made, and no time
says which of two objects is newer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pyarrow.fs import FileSystem

from livemart.storage.location import Location


class Taken(FileExistsError):
    """Another writer created the object first; nothing was written."""


class Changed(Exception):
    """The object is no longer the one that was read; nothing was written."""


class Missing(FileNotFoundError):
    """The object does not exist."""


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """An object: `size` in bytes, `etag` another if it is written again, time in POSIX seconds."""

    name: str
    size: int
    etag: str
    modified_s: float


@runtime_checkable
class Storage(Protocol):
    """Objects below `location`. Safe to use from several threads.

    A storage in a bucket raises from each method:
        StorageError: STORAGE_AWAY after some patience, STORAGE_DENIED, BUCKET_MISSING,
            OBJECT_UNNAMED.
    """

    @property
    def location(self) -> Location:
        """The folder that holds the objects."""
        ...

    def below(self, folder: str) -> Storage:
        """Return the storage of a folder in this one."""
        ...

    def create(self, name: str, data: bytes) -> None:
        """Create an object, whole or not at all. Raises Taken."""
        ...

    def put(self, name: str, data: bytes, *, synced: bool = True) -> None:
        """Create or replace an object: a reader sees the old content or the new one.

        Args:
            name: of the object.
            data: its content, which survives a loss of power when this returns.
            synced: False for a new name that no other object mentions yet: on a disk it may be
                torn by a crash.
        """
        ...

    def replace_if(self, name: str, data: bytes, etag: str) -> None:
        """Replace an object that is still the one of an ETag. Raises Changed.

        Only a bucket does so for several processes at once.
        """
        ...

    def get(self, name: str) -> bytes:
        """Return the content of an object. Raises Missing."""
        ...

    def download(self, name: str, path: Path, etag: str) -> None:
        """Copy an object that is still the one of an ETag to a file of this machine, in parts.

        Raises Missing, Changed.
        """
        ...

    def upload(self, name: str, path: Path) -> None:
        """Create or replace an object with the content of a file of this machine, in parts."""
        ...

    def head(self, name: str) -> ObjectEntry | None:
        """Return the entry of an object without its content; None if it does not exist."""
        ...

    def entries(self, folder: str = "") -> list[ObjectEntry]:
        """Return the objects below a folder and its folders, sorted by name; all if it is empty."""
        ...

    def names(self, folder: str = "", after: str = "", most: int | None = None) -> list[str]:
        """Return the names of these objects alone, which a disk finds by fewer calls.

        Args:
            folder: a name; all objects if empty.
            after: only names greater than this one.
            most: the first of these, at most so many.
        """
        ...

    def folders(self, folder: str = "") -> list[str]:
        """Return the names of the folders right below one, sorted; in a bucket none is empty."""
        ...

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; one that does not exist is no error."""
        ...

    def filesystem(self) -> FileSystem:
        """Return a file system of pyarrow, to read objects by their names."""
        ...

    def options(self) -> dict[str, str]:
        """Return the storage options of deltalake. They hold secrets: never log them."""
        ...

    def spark_settings(self) -> dict[str, str]:
        """Return the settings of a Spark that opens `location.spark_url`; no secret is in them."""
        ...
