"""Chooses the folder of dbt's artifacts: the operator's, the project's, or one that is writable.

Used wherever a command lets dbt read a project. A folder that the operator has named is taken, or
is an error; that of the project is given up for another one if it cannot be written.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile

import yaml

from livemart.errors import ConfigError
from livemart.settings import Settings
from livemart.state.places import LocalFolder
from livemart.storage.scratch import folder_until_exit


def target_folder(settings: Settings) -> Path:
    """Return the folder of dbt's artifacts; if there is a project, it is there and can be written.

    Raises:
        ConfigError: TARGET_NOT_WRITABLE, for the folder that the operator has named; DBT_FAILED,
            if dbt cannot render the project's `target-path`.
    """
    if (named := settings.target_path) is not None:
        if (failure := _why_unwritable(named)) is not None:
            raise ConfigError(
                "TARGET_NOT_WRITABLE",
                f"target_path: {named}: {failure.strerror or failure}",
                hint="name a folder that you may write to: --target-path DIR, or DBT_TARGET_PATH",
            ) from failure
        return named
    written = written_path(settings, "target-path")
    folder = settings.project_dir / (written or "target")
    if not (settings.project_dir / "dbt_project.yml").is_file():
        # No project: nothing is made there, and the step that reads the project says so.
        return folder
    if _why_unwritable(folder) is None:
        return folder
    # Made by a command that holds the warehouse; a look at a project makes none.
    local = LocalFolder(settings.warehouse)
    if local.path.is_dir() and _why_unwritable(local.target) is None:
        return local.target
    return folder_until_exit("target")


def written_path(settings: Settings, name: str) -> str | None:
    """Return a path of `dbt_project.yml`, such as `target-path`, as dbt renders it; None if unset.

    Raises:
        ConfigError: DBT_FAILED, if dbt cannot render it.
    """
    file = settings.project_dir / "dbt_project.yml"
    try:
        written = yaml.safe_load(file.read_text(encoding="utf-8")).get(name)
    except (OSError, ValueError, yaml.YAMLError, AttributeError):
        # dbt says what is wrong with the file.
        return None
    if not isinstance(written, str) or "{" not in written:
        return written if isinstance(written, str) else None
    # Not before it is needed: dbt takes a while to load.
    from livemart.project.dbt_invocations import render_in_project

    return render_in_project(written, settings.project_dir, settings.vars)


def _why_unwritable(folder: Path) -> OSError | None:
    """Return why a folder cannot be made or written, None if it can; makes it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error
