"""Notices edits of a project: files that are new, changed or removed.

Used by the stream, which follows the analyst. It compares only names, times and sizes, and skips
folders of dbt's results, of virtual environments and of data.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

_SUFFIXES = (".sql", ".yml", ".yaml", ".csv", ".md", ".py")
# Directly below the project's folder; below `models` a folder may have any name.
_RESULTS = frozenset({"target", "logs"})
_CACHES = frozenset({"node_modules", "__pycache__", ".git"})
_ENVIRONMENT = "pyvenv.cfg"
# Read once, when the process starts.
_SETTINGS = "livemart.yml"

Look = Mapping[str, tuple[int, int, int]]


class ProjectFiles:
    """The files that make up a project.

    Args:
        project_dir: folder of `dbt_project.yml`.
        profiles_dir: folder of `profiles.yml`.
        left_out: folders inside the project that are not part of it: warehouse, landing.
    """

    def __init__(
        self, project_dir: Path, profiles_dir: Path, left_out: Collection[Path] = ()
    ) -> None:
        self._project_dir = project_dir.resolve()
        self._profiles = profiles_dir.resolve() / "profiles.yml"
        self._left_out = {str(folder.resolve()) for folder in left_out}

    def look(self) -> Look:
        """Return change time, size and inode of each file, by its path."""
        return dict(self._below(str(self._project_dir))) | _stat(str(self._profiles))

    def changed(self, before: Look, now: Look) -> list[str]:
        """Return the files that differ between two looks, relative to the project, sorted."""
        names = (path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        return sorted(os.path.relpath(path, self._project_dir) for path in names)

    def _below(self, folder: str) -> Iterator[tuple[str, tuple[int, int, int]]]:
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        if any(entry.name == _ENVIRONMENT for entry in entries):
            return
        is_root = folder == str(self._project_dir)
        for entry in entries:
            if entry.name in _CACHES or entry.name == _SETTINGS:
                continue
            if is_root and (entry.name.startswith(".") or entry.name in _RESULTS):
                continue
            if entry.is_dir():
                # A link to a folder is followed, but not into a circle.
                real = os.path.realpath(entry.path)
                is_circle = entry.is_symlink() and Path(folder).is_relative_to(real)
                if real not in self._left_out and not is_circle:
                    yield from self._below(entry.path)
            elif entry.name.endswith(_SUFFIXES):
                yield from _stat(entry.path).items()


def _stat(path: str) -> dict[str, tuple[int, int, int]]:
    try:
        status = os.stat(path)
    except OSError:
        return {}
    return {path: (status.st_mtime_ns, status.st_size, status.st_ino)}
