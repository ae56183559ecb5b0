"""Counts how often each model has failed in a row, whichever process met it.

Used by the refresh of a project, which sets a model aside that has failed often enough. A stream
that a supervisor starts again, and a refresh by cron, go on counting where the last one ended.
"""

from __future__ import annotations

from collections.abc import Collection

from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace


class ModelFailures:
    """The failures in a row, by model and fingerprint of its SQL."""

    def __init__(self, root: StoragePlace) -> None:
        self._path = StateFolder(root).failures

    def count(self, unique_id: str, fingerprint: str) -> int:
        """Count one more failure and return how many there are; other SQL begins from 1."""
        failures = self._read()
        before, count = failures.get(unique_id, ("", 0))
        failures[unique_id] = (fingerprint, count + 1 if before == fingerprint else 1)
        write_state_file(self._path, failures)
        return failures[unique_id][1]

    def keep_only(self, failing: Collection[str]) -> None:
        """Forget the models that have not failed this time."""
        failures = self._read()
        remaining = {
            unique_id: entry for unique_id, entry in failures.items() if unique_id in failing
        }
        if remaining != failures:
            write_state_file(self._path, remaining)

    def _read(self) -> dict[str, tuple[str, int]]:
        # An unreadable file costs some attempts more.
        return read_state_file(self._path, dict[str, tuple[str, int]]) or {}
