"""Finds `profiles.yml` of a dbt project.

Used by `Dbt` before dbt starts, because dbt's own message does not show what to write.
"""

from __future__ import annotations

import os
from pathlib import Path

from livemart.errors import ConfigError
from livemart.storage.opening import open_storage

_PROJECT = "dbt_project.yml"
_EXAMPLE = """\
    NAME:
      target: local
      outputs:
        local: {type: spark, method: session, schema: analytics, host: NA, threads: 1}"""


def find_profiles(project_dir: Path, profiles_dir: Path | None) -> Path | None:
    """Return the folder of `profiles.yml`, or None to leave the search to dbt.

    Raises:
        ConfigError: PROFILES_NOT_FOUND, if there is none; DBT_PROJECT_NOT_FOUND, if `project_dir`
            is no dbt project.
    """
    if why_no_project(project_dir):
        raise no_project(project_dir)
    if profiles_dir is not None:
        if not (profiles_dir / "profiles.yml").is_file():
            raise ConfigError(
                "PROFILES_NOT_FOUND",
                f"--profiles-dir {profiles_dir}: no profiles.yml",
                hint="name the folder that holds profiles.yml",
            )
        return profiles_dir.resolve()
    for folder in (project_dir / "profiles", project_dir):
        if (folder / "profiles.yml").is_file():
            return folder.resolve()
    if not any((folder / "profiles.yml").is_file() for folder in _folders_of_dbt()):
        looked_in = ", ".join(map(str, (project_dir / "profiles", project_dir, *_folders_of_dbt())))
        raise ConfigError(
            "PROFILES_NOT_FOUND",
            f"no profiles.yml in {looked_in}",
            hint=f"write {project_dir / 'profiles.yml'}, with the name after `profile:` in "
            f"dbt_project.yml in place of NAME:\n{_EXAMPLE}",
        )
    return None


def no_project(folder: Path) -> ConfigError:
    """Return the error of a folder without a dbt project, with the nearest project as next step."""
    return ConfigError(
        "DBT_PROJECT_NOT_FOUND",
        f"{folder}: {why_no_project(folder)}, so it holds no project",
        hint=ways_to_a_project(folder),
    )


def why_no_project(folder: Path) -> str | None:
    """Return why a folder holds no dbt project; None if it holds one."""
    if open_storage(folder).head(_PROJECT):
        return None
    return f"no {_PROJECT}" if folder.is_dir() else "no such folder"


def ways_to_a_project(folder: Path) -> str:
    """Return the next step in a folder without a dbt project; it names the nearest project."""
    below = (folder / name for name in open_storage(folder).folders())
    near = (*folder.absolute().parents, *below)
    nearest_project = next((it for it in near if open_storage(it).head(_PROJECT)), None)
    where = (
        "the folder of a dbt project"
        if nearest_project is None
        else f"its folder, such as {nearest_project},"
    )
    return (
        f"name {where} with --project-dir, write a new project: livemart init FOLDER, or check "
        "your own dbt project: livemart init --from-dbt FOLDER"
    )


def profiles_folder(project_dir: Path, profiles_dir: Path | None) -> Path:
    """Return the folder whose `profiles.yml` counts, wherever it is looked for.

    Raises:
        ConfigError: as `find_profiles`.
    """
    folder = find_profiles(project_dir, profiles_dir)
    if folder is not None:
        return folder
    return next(place for place in _folders_of_dbt() if (place / "profiles.yml").is_file())


def _folders_of_dbt() -> list[Path]:
    """Return where dbt itself looks for `profiles.yml`, given no folder."""
    if named := os.environ.get("DBT_PROFILES_DIR"):
        return [Path(named)]
    return [Path.cwd(), Path.home() / ".dbt"]
