"""Keeps why an edited project is not taken over, for as long as the one before it runs on.

Used by the stream, which follows the project, and by `status`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from livemart.state.atomic_files import replace_file
from livemart.state.places import StateFolder


@dataclass(frozen=True, slots=True)
class ProjectRefusal:
    """An edit that is not taken over. `at`: when, ISO 8601 in UTC; `files`: what was edited."""

    at: str
    files: tuple[str, ...]
    message: str


def note_refusal(warehouse: Path, refusal: ProjectRefusal) -> None:
    """Keep the newest refusal."""
    path = StateFolder(warehouse).project_refusal
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(asdict(refusal), indent=1))


def clear_refusal(warehouse: Path) -> None:
    """Forget the refusal: what runs is the project as it is written."""
    StateFolder(warehouse).project_refusal.unlink(missing_ok=True)


def read_refusal(warehouse: Path) -> ProjectRefusal | None:
    """Return the refusal, None if the project that runs is the one that is written."""
    try:
        content = json.loads(StateFolder(warehouse).project_refusal.read_text(encoding="utf-8"))
        return ProjectRefusal(
            str(content["at"]), tuple(map(str, content["files"])), str(content["message"])
        )
    except (FileNotFoundError, ValueError, TypeError, LookupError):
        return None
