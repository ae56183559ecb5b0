from __future__ import annotations

import re
from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.project.profiles import find_profiles, profiles_folder


@pytest.fixture
def project_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "dbt_project.yml").touch()
    return folder


def _with_profiles(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "profiles.yml").touch()
    return folder


def test_profiles_are_looked_for_in_order(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = _with_profiles(tmp_path / "given")
    monkeypatch.setenv("DBT_PROFILES_DIR", str(given))

    assert find_profiles(project_dir, None) is None
    assert profiles_folder(project_dir, None) == given
    assert find_profiles(_with_profiles(project_dir), None) == project_dir
    inner = _with_profiles(project_dir / "profiles")
    assert find_profiles(project_dir, None) == inner
    assert find_profiles(project_dir, given) == given
    assert profiles_folder(project_dir, None) == inner


def test_a_folder_without_profiles_or_project_is_refused(project_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as without_profiles:
        find_profiles(project_dir, tmp_path)
    with pytest.raises(ConfigError) as without_project:
        find_profiles(tmp_path, None)

    assert without_profiles.value.code == "PROFILES_NOT_FOUND"
    assert without_project.value.code == "DBT_PROJECT_NOT_FOUND"


def test_the_hint_for_a_folder_without_a_project_names_the_nearest_one(
    project_dir: Path, tmp_path: Path
) -> None:
    inside, beside = project_dir / "models" / "marts", tmp_path / "notes"
    inside.mkdir(parents=True)
    beside.mkdir()

    with pytest.raises(ConfigError, match=re.escape(f"such as {project_dir}, with --project-dir")):
        find_profiles(inside, None)
    with pytest.raises(ConfigError, match=re.escape(f"such as {project_dir}, with --project-dir")):
        find_profiles(tmp_path, None)
    with pytest.raises(ConfigError, match="name the folder of a dbt project with --project-dir"):
        find_profiles(beside, None)
