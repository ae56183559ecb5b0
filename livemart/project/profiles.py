"""Where `profiles.yml` of a dbt project is."""

from __future__ import annotations

from pathlib import Path

from livemart.errors import ConfigError


def find_profiles(project_dir: Path, profiles_dir: Path | None) -> Path | None:
    """Return the folder of `profiles.yml`, or None to leave the search to dbt.

    Raises:
        ConfigError: PROFILES_NOT_FOUND, if `profiles_dir` has none; DBT_PROJECT_NOT_FOUND, if
            `project_dir` is no dbt project.
    """
    if not (project_dir / "dbt_project.yml").is_file():
        raise ConfigError(
            "DBT_PROJECT_NOT_FOUND",
            f"{project_dir}: no dbt_project.yml",
            hint="name the folder of a dbt project with --project-dir",
        )
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
    return None
