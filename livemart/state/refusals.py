"""Keeps the reason why an edited project is refused, while the previous one runs on.

Used by the stream, which follows the project, and by `status`.
"""

from __future__ import annotations

from dataclasses import dataclass

from livemart.state.atomic_files import read_state_file, remove_state_file, write_state_file
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace


@dataclass(frozen=True, slots=True)
class ProjectRefusal:
    """An edit that is not taken over. `at`: when, ISO 8601 in UTC; `files`: the edited ones."""

    at: str
    files: tuple[str, ...]
    message: str


def note_refusal(warehouse: StoragePlace, refusal: ProjectRefusal) -> None:
    """Keep the newest refusal."""
    write_state_file(StateFolder(warehouse).project_refusal, refusal)


def clear_refusal(warehouse: StoragePlace) -> None:
    """Forget the refusal: the project runs as it is written."""
    remove_state_file(StateFolder(warehouse).project_refusal)


def read_refusal(warehouse: StoragePlace) -> ProjectRefusal | None:
    """Return the refusal, None if the project that runs is the one that is written."""
    return read_state_file(StateFolder(warehouse).project_refusal, ProjectRefusal)
