"""Removes the files of a first build that never committed: no commit names them.

Used when a project is opened to be written; the warehouse is held, so no other process works on it.
Spark writes data files first and the commit last. A table that was never committed has no rows, and
no reader.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import structlog

from livemart.delta.log import has_commits
from livemart.delta.warehouse import Warehouse
from livemart.plan.stored_queries import STAGES
from livemart.project.graph import Project
from livemart.storage.location import StoragePlace
from livemart.storage.storage import Storage

_LOG = "_delta_log"
_DATA = (".parquet", ".crc")
_CHANGES = "_change_data"


def clear_leftovers(warehouse: StoragePlace, project: Project) -> list[str]:
    """Remove the folders of models that hold data files and no commit, and return their relations.

    So are those of stages. A folder that is no model's, a link, and one that holds anything else
    are left alone.
    """
    cleared, tables = [], Warehouse(warehouse)
    relations = [model.relation for model in project.models.values() if model.is_stored]
    for relation in (*relations, *tables.folders_of(STAGES)):
        storage = tables.storage(relation)
        if _clear(storage):
            cleared.append(relation)
            structlog.get_logger().warning(
                "leftover_cleared",
                relation=relation,
                folder=str(storage.location),
                reason="a first build ended before its commit: it was killed, or Delta refused it",
            )
    return cleared


def _clear(storage: Storage) -> bool:
    if has_commits(storage):
        return False
    if isinstance(folder := storage.location.place, Path):
        if is_leftover := _is_leftover(folder):
            shutil.rmtree(folder)
        return is_leftover
    names = storage.names()
    is_leftover = bool(names) and all(map(_is_data_object, names))
    if is_leftover:
        storage.delete(names)
    return is_leftover


def _is_data_object(name: str) -> bool:
    *folders, file = name.split("/")
    if folders[:1] == [_LOG]:
        return True
    return file.endswith(_DATA) and all("=" in folder or folder == _CHANGES for folder in folders)


def _is_leftover(folder: Path) -> bool:
    if folder.is_symlink() or not folder.is_dir():
        return False
    return all(_is_data(path, path.relative_to(folder).parts) for path in folder.rglob("*"))


def _is_data(path: Path, parts: tuple[str, ...]) -> bool:
    """Return True for a file as Spark writes them, the log's drafts, and the folders of either."""
    if parts[0] == _LOG:
        return True
    if path.is_dir() and not path.is_symlink():
        return "=" in path.name or path.name == _CHANGES
    return path.is_file() and path.suffix in _DATA
