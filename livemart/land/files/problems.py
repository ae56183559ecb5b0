"""Files that are wrong as a whole: each source that reads one gets a dead letter for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from livemart.land.files.folder import LandingFolder
from livemart.land.files.manifest import Changed, Manifest


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What is wrong with a file. `code` is the dead letter's reason."""

    name: str
    code: str
    detail: str


def find_readable(
    folder: LandingFolder, manifest: Manifest, names: Sequence[str]
) -> tuple[list[tuple[str, Path]], list[FileProblem]]:
    """Return the files that can be read, by name, and what is wrong with the others."""
    files: list[tuple[str, Path]] = []
    problems: list[FileProblem] = []
    for name in names:
        path, before = folder.locate(name), manifest.files[name]
        if path is None:
            detail = "its path, or a link in it, leads out of the landing folder: not read"
            problems.append(FileProblem(name, "MALFORMED_RECORD", detail))
            continue
        if before.size and not path.stat().st_size:
            detail = f"had {before.size} bytes, is empty now: its records were given up"
            problems.append(FileProblem(name, "SOURCE_FILE_CHANGED", detail))
        files.append((name, path))
    return files, problems


def changed_since(name: str, changed: Changed) -> FileProblem:
    """Return what is wrong with a file that was changed after it was landed."""
    detail = (
        f"changed after it was landed, to {changed.now.size} bytes: what is new is not "
        "read; deliver it under another name"
    )
    return FileProblem(name, "SOURCE_FILE_CHANGED", detail)
