"""Finds and removes what none of a table's readable versions needs any more: files, log entries.

Used by the upkeep of a warehouse. A file that a commit takes out stays for as long as the table's
property `delta.deletedFileRetentionDuration` says, so that the versions before can be read; a file
of changes, and one that no commit names, for as long from when it was written. Here is what is
older, as VACUUM finds it; VACUUM itself would add two versions to each table. An entry of the log
stays for as long as `delta.logRetentionDuration` says.
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
    # Each version is asked by itself: one whose log entries are gone would refuse the whole list.
    named = {path for version in kept_versions for path in _files_of(folder, version)}
    paths = map(unquote, table.vacuum(dry_run=True, full=True))
    # deltalake 1.6 does not see that a version names them.
    return [
        folder / path
        for path in paths
        if path not in named and not Path(path).name.startswith("deletion_vector_")
    ]


def remove_file(path: Path) -> int:
    """Remove a file and the checksum that Spark writes beside it; return the bytes of the file.

    Raises:
        OSError: FileNotFoundError, if another process has removed it.
    """
    size = path.stat().st_size
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return size


def remove_old_entries(folder: Path, kept_versions: Collection[int] = ()) -> None:
    """Remove the log entries that are too old, and their checksums.

    Args:
        folder: of the table.
        kept_versions: that stay readable, however old; one whose entry is gone already is not.

    Raises:
        DeltaError: the log cannot be read; OSError: it cannot be written.
    """
    log = folder / "_delta_log"
    readable = [version for version in kept_versions if log_file(folder, version) is not None]
    # An entry is of use from the checkpoint before the oldest version on.
    DeltaTable(str(folder), version=min(readable, default=None)).cleanup_metadata()
    versions = {path.stem for path in log.glob("[0-9]*.json")}
    for checksum in (*log.glob("[0-9]*.crc"), *log.glob(".[0-9]*.crc")):
        # Spark's own, of an entry and of its checksum: `2.crc`, `.2.json.crc`, `.2.crc.crc`.
        if checksum.name.lstrip(".").partition(".")[0] not in versions:
            checksum.unlink(missing_ok=True)


def _files_of(folder: Path, version: int) -> set[str]:
    try:
        table = DeltaTable(str(folder), version=version)
    except DeltaError:
        if log_file(folder, version) is None:
            return set()
        raise
    paths = pa.table(table.get_add_actions()).column("path").to_pylist()
    return {unquote(path) for path in paths}
