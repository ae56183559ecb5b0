"""Lists the files that a run reads, the project's and waiting ones, and tells whether they are few.

Used before anything is started: a command that finds them unchanged need not start, and over few
rows starting is most of its time. The stream looks for edits in the same way. Only names, times and
sizes are compared; folders of dbt's results, of virtual environments and of data are left out. The
rows of tables elsewhere are taken to be many; those that wait in record logs are not counted.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError, StorageError
from livemart.land.sources.files.folder import is_hidden
from livemart.limits import FEW_WAREHOUSE_ROWS
from livemart.project.profiles import profiles_folder
from livemart.run.target_folder import target_folder
from livemart.settings import Settings
from livemart.state.last_pass import last_pass_at
from livemart.state.project_graph import read_graph
from livemart.state.snapshots import SnapshotLog
from livemart.storage.opening import open_storage

_SUFFIXES = (".sql", ".yml", ".yaml", ".csv", ".md", ".py")
# Directly below the project's folder; below `models` a folder may have any name.
_RESULTS = frozenset({"target", "logs"})
_CACHES = frozenset({"node_modules", "__pycache__", ".git"})
_ENVIRONMENT = "pyvenv.cfg"
# Read once, when the process starts.
_SETTINGS = "livemart.yml"
# A look at more waiting files takes as long as the start that it would save.
_MANY_FILES = 50_000
# Landed in a second or two.
_LITTLE_BYTES = 32 << 20

WaitingFiles = Sequence[tuple[str, int, int]]
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


def project_files(settings: Settings) -> ProjectFiles:
    """Return the files of the project of a run.

    Raises:
        ConfigError: DBT_PROJECT_NOT_FOUND, PROFILES_NOT_FOUND.
    """
    folder = profiles_folder(settings.project_dir, settings.profiles_dir)
    left_out = (settings.warehouse, settings.landing, target_folder(settings))
    on_disk = [place for place in left_out if isinstance(place, Path)]
    return ProjectFiles(settings.project_dir, folder, on_disk)


def waiting_files(settings: Settings) -> WaitingFiles | None:
    """Return name, size and change time of each waiting file; None if they are many or unreadable.

    All below the landing folder, whatever the patterns of sources: Spark reads more by a pattern
    than Python would.
    """
    if not isinstance(settings.landing, Path):
        try:
            entries = open_storage(settings.landing).entries()
        except StorageError as error:
            # An object of a name that cannot be read may be in a folder of no source.
            if error.code != "OBJECT_UNNAMED":
                raise
            return None
        files = [
            (it.name, it.size, int(it.modified_s * 1_000_000_000))
            for it in entries
            if not is_hidden(it.name)
        ]
        return files if len(files) <= _MANY_FILES else None
    files = []
    for folder, folders, names in os.walk(settings.landing, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        for name in names:
            if is_hidden(name):
                continue
            path = os.path.join(folder, name)
            try:
                status = os.stat(path)
            except FileNotFoundError:
                # It was removed since it was listed.
                continue
            except OSError:
                # Its size and time are not known.
                return None
            files.append((path, status.st_size, status.st_mtime_ns))
        if len(files) > _MANY_FILES:
            return None
    return sorted(files)


def is_small_refresh(settings: Settings, files: WaitingFiles) -> bool:
    """Return True if no file of the project has changed since the last pass, and little waits."""
    since = last_pass_at(settings.warehouse)
    if since is None or SnapshotLog(settings.warehouse).newest() is None:
        return False
    begin_ns = int(since.timestamp() - 1) * 1_000_000_000
    if any(changed_ns > begin_ns for changed_ns, *_ in project_files(settings).look().values()):
        return False
    size = 0
    for path, bytes_, changed_ns in files:
        with suppress(OSError):
            if isinstance(settings.landing, Path):
                # A file that was moved here keeps its older time of change.
                changed_ns = max(changed_ns, os.stat(path).st_ctime_ns)
            if changed_ns > begin_ns:
                size += bytes_
    return size <= _LITTLE_BYTES


def has_little_data(settings: Settings, files: WaitingFiles) -> bool:
    """Return True if all models together, recomputed from all records, handle few rows."""
    sizes = [size for _, size, _ in files]
    looks = project_files(settings).look()
    sizes += [size for path, (_, size, _) in looks.items() if path.endswith(".csv")]
    # A bucket takes a while to tell.
    if sum(sizes) > _LITTLE_BYTES or not isinstance(settings.warehouse, Path):
        return False
    warehouse = Warehouse(settings.warehouse)
    if (graph := read_graph(settings.warehouse)) is None:
        # A project whose landing folder is empty may read all of its rows elsewhere.
        return bool(files)
    sources = {node.relation for node in graph.nodes if node.kind == "source"}
    return sources <= set(warehouse.relations()) and has_few_rows(warehouse)


def has_few_rows(warehouse: Warehouse) -> bool:
    """Return True if all tables of a warehouse together have few rows."""
    rows = 0
    try:
        for relation in warehouse.relations():
            rows += warehouse.files(relation).row_count
            if rows > FEW_WAREHOUSE_ROWS:
                return False
    except LivemartError:
        # Only Spark may be able to read a table, and count its rows.
        return False
    return True
