"""Makes folders of this machine for files that no later process needs.

Used where rows are too large for memory while they land or are compared, and for what another
program reads from a file. They never hold state.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


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


def empty_folder(folder: Path) -> Path:
    """Make a folder without files, in the place of one that a killed process left; return it."""
    drop_folder(folder)
    folder.mkdir(parents=True)
    return folder


def drop_folder(folder: Path) -> None:
    """Remove a folder and all that it holds, if it exists; files that cannot be removed stay."""
    shutil.rmtree(folder, ignore_errors=True)


def _new_folder(purpose: str) -> Path:
    return Path(mkdtemp(prefix=f"livemart-{purpose}-"))
