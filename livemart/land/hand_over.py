"""Hands a file over to landing: whole, durable, and under a name that was not used before.

Used by Python code that delivers files. Spark looks for files at any moment, and passes over names
that begin with a dot: so a file is written under such a name and then renamed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from livemart.state.atomic_files import sync, write_synced


def hand_over(folder: Path, name: str, data: bytes) -> Path:
    """Put a file into a folder of the landing folder; it is on disk when this returns.

    Args:
        folder: made if it is not there.
        name: of the file, without a folder, as the source's pattern asks for it.
        data: all of its content.

    Raises:
        ValueError: the name is a path, or begins with a sign that landing passes over.
        FileExistsError: a file of this name was handed over before; landing reads a name once.
    """
    return _hand_over(folder, name, lambda draft: write_synced(draft, data))


def hand_over_copy(folder: Path, name: str, file: Path) -> Path:
    """Put a copy of a file into a folder of the landing folder; see `hand_over`."""

    def copy(draft: Path) -> None:
        shutil.copyfile(file, draft)
        sync(draft)

    return _hand_over(folder, name, copy)


def _hand_over(folder: Path, name: str, write: Callable[[Path], None]) -> Path:
    if not name or Path(name).name != name or name.startswith((".", "_")):
        raise ValueError(f"{name!r}: write a file name that begins with neither . nor _")
    folder.mkdir(parents=True, exist_ok=True)
    path, draft = folder / name, folder / f".{name}.{os.getpid()}"
    if path.exists():
        raise FileExistsError(f"{path}: a file of this name was handed over before")
    try:
        write(draft)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    # Without this a power cut may take the name back.
    sync(folder)
    return path
