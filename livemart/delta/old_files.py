"""Finds the files of a table that none of its readable versions names any more.

Used by the upkeep of a warehouse. A file that a commit takes out stays for as long as the table's
property `delta.deletedFileRetentionDuration` says, so that the versions before can be read; a file
of changes, and one that no commit names, for as long from when it was written. Here is what is
older, as VACUUM finds it; VACUUM itself would add two versions to each table.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from livemart.delta.log import log_file


def old_files(folder: Path, kept_versions: Collection[int] = ()) -> list[Path]:
    """Return the files to remove.

    Args:
        folder: of the table.
        kept_versions: whose files stay, however old; one whose entry in the log is gone has none.

    Raises:
        DeltaError: it is no table, or its log cannot be read: then nothing is known to be old.
        OSError: the folder cannot be listed.
    """
    table = DeltaTable(str(folder))
    # Of each version itself: one whose log entries are gone would refuse the whole list.
    named = {path for version in kept_versions for path in _files_of(folder, version)}
    paths = map(unquote, table.vacuum(dry_run=True, full=True))
    # deltalake 1.6 does not see that a version names them.
    return [
        folder / path
        for path in paths
        if path not in named and not Path(path).name.startswith("deletion_vector_")
    ]


def _files_of(folder: Path, version: int) -> set[str]:
    try:
        table = DeltaTable(str(folder), version=version)
    except DeltaError:
        if log_file(folder, version) is None:
            return set()
        raise
    paths = pa.table(table.get_add_actions()).column("path").to_pylist()
    return {unquote(path) for path in paths}
