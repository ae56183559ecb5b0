"""Remembers which requests were handed over, so that one that is sent twice is stored once.

Used by the HTTP endpoint of `ingest`. A journal below the warehouse's state names the keys of a
file before the file appears; who finds the last entry without its file knows that it never did.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from livemart.state.atomic_files import read_file, replace_file
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

# A sender tries again within minutes.
_REMEMBERED = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class IngestedRequest:
    """A request that was handed over: digest of its records, how many they are, the file."""

    digest: str
    records: int
    file: str


class IngestedKeys:
    """The keys of one day, at most two, in a journal that one process writes."""

    def __init__(self, path: Path, landing: StoragePlace, now: datetime | None = None) -> None:
        self._path = path
        self._requests: dict[tuple[str, str], IngestedRequest] = {}
        self._oldest: datetime | None = None
        entries = self._read(now or datetime.now(UTC))
        if entries and open_storage(landing).head(entries[-1]["file"]) is None:
            # It was cut off before the file appeared.
            entries.pop()
        self._keep(entries)

    def find(self, source: str, key: str) -> IngestedRequest | None:
        """Return the request that was handed over under a key."""
        return self._requests.get((source, key))

    def note(self, source: str, file: str, keys: Mapping[str, tuple[str, int]]) -> None:
        """Note the keys of a file that is about to appear; it is on disk when this returns.

        `keys`: digest and number of records by key; `file`: below the landing folder.
        """
        now = datetime.now(UTC)
        if self._oldest is not None and now - self._oldest > 2 * _REMEMBERED:
            self._keep(self._read(now))
        self._oldest = self._oldest or now
        entry = {"at": now.isoformat(), "source": source, "file": file, "keys": keys}
        with self._path.open("ab") as journal:
            journal.write(json.dumps(entry).encode() + b"\n")
            journal.flush()
            os.fsync(journal.fileno())
        self._remember(source, file, keys)

    def withdraw(self, source: str, keys: Mapping[str, object]) -> None:
        """Forget the keys of the newest file: it could not be written."""
        for key in keys:
            self._requests.pop((source, key), None)
        lines = read_file(self._path).decode().splitlines(keepends=True)
        replace_file(self._path, "".join(lines[:-1]))

    def _keep(self, entries: Sequence[dict[str, Any]]) -> None:
        """Keep these entries and no others."""
        self._requests.clear()
        for entry in entries:
            self._remember(entry["source"], entry["file"], entry["keys"])
        self._oldest = datetime.fromisoformat(entries[0]["at"]) if entries else None
        replace_file(self._path, "".join(json.dumps(entry) + "\n" for entry in entries))

    def _remember(self, source: str, file: str, keys: Mapping[str, tuple[str, int]]) -> None:
        for key, (digest, records) in keys.items():
            self._requests[source, key] = IngestedRequest(digest, records, file)

    def _read(self, now: datetime) -> list[dict[str, Any]]:
        entries = []
        try:
            lines = read_file(self._path).decode().splitlines()
        except FileNotFoundError:
            return []
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                # The last line, of a write that was cut off.
                continue
            if now - datetime.fromisoformat(entry["at"]) < _REMEMBERED:
                entries.append(entry)
        return entries
