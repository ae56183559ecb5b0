"""Counts how often each model has failed in a row, whichever process met it.

Used by the refresh of a project, which sets a model aside that has failed often enough. A stream
that a supervisor starts again, and a refresh by cron, go on counting where the last one ended.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder


class ModelFailures:
    """The failures in a row, by model and fingerprint of its SQL."""

    def __init__(self, root: Path) -> None:
        self._path = StateFolder(root).failures

    def count(self, unique_id: str, fingerprint: str) -> int:
        """Count one more failure, and return how many those are; other SQL begins anew."""
        failures = self._read()
        before, count = failures.get(unique_id, ("", 0))
        failures[unique_id] = (fingerprint, count + 1 if before == fingerprint else 1)
        self._write(failures)
        return failures[unique_id][1]

    def keep_only(self, failing: Collection[str]) -> None:
        """Forget the models that have not failed this time."""
        failures = self._read()
        remaining = {
            unique_id: entry for unique_id, entry in failures.items() if unique_id in failing
        }
        if remaining != failures:
            self._write(remaining)

    def _read(self) -> dict[str, tuple[str, int]]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(key): (str(entry[0]), int(entry[1])) for key, entry in content.items()}
        except (FileNotFoundError, ValueError, TypeError, AttributeError, LookupError):
            # None yet; a file that nobody can read costs some attempts more.
            return {}

    def _write(self, failures: dict[str, tuple[str, int]]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, json.dumps(failures, indent=1))
