"""Writes small state files atomically, and lists folders that number them.

Used for manifests, the epoch and views. A reader sees the old content or the new one, whatever
happens in between.
"""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file anew; it is on disk when this returns, and until then what was there before."""
    draft = path.with_name(f".{path.name}.new")
    write_synced(draft, content.encode() if isinstance(content, str) else content)
    draft.rename(path)


def write_synced(path: Path, data: bytes) -> None:
    """Write a file; its content is on disk when this returns, its name may not be."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Wait until a file, or the names of a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def numbers_of(folder: Path) -> list[int]:
    """Return the numbers of the files `<number>.json` in a folder, the highest first."""
    names = (path.stem for path in folder.glob("*.json"))
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)
