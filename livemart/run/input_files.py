"""Lists the files that a run reads, each with size and times: the project, and what waits to land.

Used before anything is started: a command that finds them unchanged need not start.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from livemart.project.profiles import profiles_folder
from livemart.run.edits import ProjectFiles
from livemart.run.target_folder import target_folder
from livemart.settings import Settings

# A look at more of them takes as long as the start that it would save.
_MANY_FILES = 50_000

WaitingFiles = Sequence[tuple[str, int, int]]


def project_files(settings: Settings) -> ProjectFiles:
    """Return the files of the project of a run.

    Raises:
        ConfigError: DBT_PROJECT_NOT_FOUND, PROFILES_NOT_FOUND.
    """
    folder = profiles_folder(settings.project_dir, settings.profiles_dir)
    left_out = (settings.warehouse, settings.landing, target_folder(settings))
    return ProjectFiles(settings.project_dir, folder, left_out)


def waiting_files(settings: Settings) -> WaitingFiles | None:
    """Return name, size and change time of each waiting file; None if they are many or unreadable.

    All below the landing folder, whatever the patterns of sources: Spark reads more by a pattern
    than Python would.
    """
    files: list[tuple[str, int, int]] = []
    for folder, folders, names in os.walk(settings.landing, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if name.startswith((".", "_")):
                continue
            path = os.path.join(folder, name)
            try:
                status = os.stat(path)
            except FileNotFoundError:
                # It was removed since it was listed.
                continue
            except OSError:
                # Its size and time are not known.
                return None
            files.append((path, status.st_size, status.st_mtime_ns))
        if len(files) > _MANY_FILES:
            return None
    return sorted(files)
