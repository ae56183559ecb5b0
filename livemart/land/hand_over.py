"""Hands a file over to landing: whole, durable, and under a name that was not used before.

Used by Python code that delivers files. Spark looks for files at any moment, and passes over names
that begin with a dot. So a file on a disk is written under such a name and then renamed. In a
bucket it is whole at once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from livemart.state.atomic_files import sync
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

_Place = TypeVar("_Place", bound=StoragePlace)


def hand_over(folder: _Place, name: str, data: bytes) -> _Place:
    """Put a file into a folder of the landing folder; it is durable when this returns.

    Args:
        folder: a path, made if it is not there, or a location in a bucket.
        name: of the file, without a folder, as the source's pattern asks for it.
        data: all of its content.

    Raises:
        ValueError: the name is a path, or begins with a sign that landing passes over.
        FileExistsError: a file of this name was handed over before; landing reads a name once.
    """
    _check(name)
    storage = open_storage(folder)
    if isinstance(folder, Path):
        _hand_over(folder, name, lambda draft: storage.put(draft.name, data, synced=False))
    else:
        # One request puts it there, or not at all.
        storage.create(name, data)
    return folder / name


def hand_over_below(landing: StoragePlace, name: str, data: bytes) -> None:
    """Put a file below the landing folder, by its name from there; see `hand_over`."""
    folder, name = _folder_and_name(landing, name)
    hand_over(folder, name, data)


def hand_over_copy(landing: StoragePlace, name: str, file: Path) -> bool:
    """Put a copy of a file below the landing folder, by its name from there; see `hand_over`.

    Returns:
        False if a file of this name was handed over before.
    """
    folder, plain = _folder_and_name(landing, name)
    _check(plain)
    storage = open_storage(landing)
    if storage.head(name) is not None:
        return False
    if isinstance(folder, Path):
        _hand_over(folder, plain, lambda draft: shutil.copyfile(file, draft))
    else:
        storage.upload(name, file)
    return True


def _check(name: str) -> None:
    if not name or Path(name).name != name or name.startswith((".", "_")):
        raise ValueError(f"{name!r}: write a file name that begins with neither . nor _")


def _folder_and_name(landing: StoragePlace, name: str) -> tuple[StoragePlace, str]:
    *folders, name = name.split("/")
    return (landing / "/".join(folders) if folders else landing), name


def _hand_over(folder: Path, name: str, write: Callable[[Path], object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path, draft = folder / name, folder / f".{name}.{os.getpid()}"
    if path.exists():
        raise FileExistsError(f"{path}: a file of this name was handed over before")
    try:
        write(draft)
        sync(draft)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    # Without this a power cut may take the name back.
    sync(folder)
