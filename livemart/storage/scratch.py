"""Makes folders for files that no later process needs, on this machine or beside the tables.

Used where rows are too large for memory while they land or are compared, and for what another
program reads from a file. They never hold state.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeVar

from livemart.errors import LivemartError
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

_Place = TypeVar("_Place", bound=StoragePlace)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Yield a new folder that only this user may read, and that is gone at the end of the block."""
    folder = _new_folder(purpose)
    try:
        yield folder
    finally:
        drop_folder(folder)


def folder_until_exit(purpose: str) -> Path:
    """Return a new folder that only this user may read, and that the end of the process removes."""
    folder = _new_folder(purpose)
    atexit.register(drop_folder, folder)
    return folder


def empty_folder(folder: _Place) -> _Place:
    """Make a folder without files, in the place of one that a killed process left; return it."""
    drop_folder(folder)
    if isinstance(folder, Path):
        folder.mkdir(parents=True)
    return folder


def drop_folder(folder: StoragePlace) -> None:
    """Remove a folder and all that it holds, if it exists; files that cannot be removed stay."""
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        with suppress(LivemartError, OSError):
            storage = open_storage(folder)
            storage.delete(storage.names())


def _new_folder(purpose: str) -> Path:
    return Path(mkdtemp(prefix=f"livemart-{purpose}-"))
