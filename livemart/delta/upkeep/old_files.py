"""Finds and removes files and log entries that no readable version of a table needs any more.

Used by the upkeep of a warehouse. A file that a commit takes out stays for the time of the
table's property `delta.deletedFileRetentionDuration`, so that the versions before can be read. A
file of changes, and one that no commit names, stays as long, counted from when it was written.
Older files are found as VACUUM finds them; VACUUM itself would add two versions to each table. An
entry of the log stays for the time of `delta.logRetentionDuration`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote

import pyarrow as pa
from deltalake.exceptions import DeltaError

from livemart.delta.log import log_file
from livemart.delta.open_tables import open_table
from livemart.storage.fence import require_right_to_write
from livemart.storage.storage import ObjectEntry, Storage

_ENTRY = re.compile(r"_delta_log/(\d+)\.json")
# Spark's own, of an entry and of its checksum: `2.crc`, `.2.json.crc`, `.2.crc.crc`.
_CHECKSUM = re.compile(r"_delta_log/\.?(\d+)\..*crc")


def old_files(table: Storage, kept_versions: Collection[int] = ()) -> list[ObjectEntry]:
    """Return the files to remove.

    Args:
        table: its storage.
        kept_versions: whose files stay, however old; one whose entry in the log is gone has none.

    Raises:
        DeltaError: it is no table, or its log cannot be read: then nothing is known to be old.
        OSError: the folder cannot be listed.
    """
    # Each version is asked by itself: one whose log entries are gone would refuse the whole list.
    named = {path for version in kept_versions for path in _files_of(table, version)}
    listed = open_table(table).vacuum(dry_run=True, full=True)
    # Some names come percent-encoded, in others it is the name that is (no two files share one).
    old = {*listed, *map(unquote, listed)} - named
    # deltalake 1.6 does not see that a version names deletion vectors.
    return [
        entry
        for entry in (table.entries() if old else ())
        if entry.name in old and not entry.name.rpartition("/")[2].startswith("deletion_vector_")
    ]


def remove_file(table: Storage, name: str) -> None:
    """Remove a file and the checksum that Spark writes beside it."""
    folder, slash, file = name.rpartition("/")
    table.delete([name, f"{folder}{slash}.{file}.crc"])


def remove_old_entries(table: Storage, kept_versions: Collection[int] = ()) -> None:
    """Remove the log entries that are too old, and their checksums.

    Args:
        table: its storage.
        kept_versions: that stay readable, however old; one whose entry is gone already is not.

    Raises:
        DeltaError: the log cannot be read; OSError: it cannot be written.
    """
    readable = [version for version in kept_versions if log_file(table, version) is not None]
    # An entry is of use from the checkpoint before the oldest version on.
    require_right_to_write(table.location)
    open_table(table, min(readable, default=None)).cleanup_metadata()
    names = table.names("_delta_log")
    versions = {match[1] for name in names if (match := _ENTRY.fullmatch(name))}
    checksums = [(name, match[1]) for name in names if (match := _CHECKSUM.fullmatch(name))]
    table.delete(name for name, version in checksums if version not in versions)


def _files_of(table: Storage, version: int) -> set[str]:
    try:
        opened = open_table(table, version)
    except DeltaError:
        if log_file(table, version) is None:
            return set()
        raise
    paths = pa.table(opened.get_add_actions()).column("path").to_pylist()
    return {unquote(path) for path in paths}
