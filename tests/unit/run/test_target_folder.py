"""Artifacts go where they are sent; a project that cannot be written is no reason to stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.run.target_folder import target_folder
from livemart.settings import Settings, load_settings


def _settings(root: Path, environ: dict[str, str] | None = None, **flags: str) -> Settings:
    """Return settings of a project below `root`, with the warehouse `root/warehouse`."""
    places = {"project_dir": str(root / "project"), "warehouse": str(root / "warehouse")}
    return load_settings(places | flags, environ=environ or {})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "dbt_project.yml").write_text("name: shop\n")
    return folder


def _make_unwritable(folder: Path) -> None:
    """Root may write into any folder, but no user may write below a file."""
    folder.write_text("a file")


def test_the_projects_own_is_the_default(project: Path, tmp_path: Path) -> None:
    assert target_folder(_settings(tmp_path)) == project / "target"
    assert list((project / "target").iterdir()) == []


def test_a_flag_and_dbts_variable_name_another(project: Path, tmp_path: Path) -> None:
    named = {"DBT_TARGET_PATH": "built"}

    by_variable = target_folder(_settings(tmp_path, named))
    by_flag = target_folder(_settings(tmp_path, named, target_path=str(tmp_path / "a" / "b")))

    assert by_variable == project / "built"
    assert by_flag == tmp_path / "a" / "b"
    assert by_flag.is_dir()


@pytest.mark.parametrize(
    "written", ["out", '\'{{ env_var("NOT_THERE", "out") }}\'', "'{{ var(\"place\") }}'"]
)
def test_the_project_names_another(written: str, project: Path, tmp_path: Path) -> None:
    (project / "dbt_project.yml").write_text(f"name: shop\ntarget-path: {written}\n")

    assert target_folder(_settings(tmp_path, vars="place: out")) == project / "out"


def test_a_projects_target_that_cannot_be_rendered_is_dbts_error(
    project: Path, tmp_path: Path
) -> None:
    (project / "dbt_project.yml").write_text("target-path: \"{{ env_var('NOT_THERE') }}\"\n")

    with pytest.raises(ConfigError, match=r"DBT_FAILED.*(.|\n)*NOT_THERE"):
        target_folder(_settings(tmp_path))


@pytest.mark.parametrize("text", ["", "name: [shop", "- a list", "target-path: 3"])
def test_what_else_is_wrong_with_the_project_is_left_to_dbt(
    text: str, project: Path, tmp_path: Path
) -> None:
    (project / "dbt_project.yml").write_text(text)

    assert target_folder(_settings(tmp_path)) == project / "target"


def test_a_named_folder_that_cannot_be_written_is_an_error(project: Path, tmp_path: Path) -> None:
    _make_unwritable(tmp_path / "named")

    with pytest.raises(ConfigError) as refused:
        target_folder(_settings(tmp_path, target_path=str(tmp_path / "named" / "out")))

    assert refused.value.code == "TARGET_NOT_WRITABLE"
    assert str(tmp_path / "named") in refused.value.message
    assert "--target-path DIR" in refused.value.hint


@pytest.mark.parametrize("written", ["target", "out"])
def test_a_project_that_cannot_be_written_has_them_in_the_warehouse(
    written: str, project: Path, tmp_path: Path
) -> None:
    (project / "dbt_project.yml").write_text(f"target-path: {written}\n")
    _make_unwritable(project / written)
    (tmp_path / "warehouse" / "_livemart").mkdir(parents=True)

    assert target_folder(_settings(tmp_path)) == tmp_path / "warehouse" / "_livemart" / "target"


def test_a_look_at_such_a_project_makes_no_warehouse(project: Path, tmp_path: Path) -> None:
    _make_unwritable(project / "target")

    folder = target_folder(_settings(tmp_path))

    assert folder.is_dir()
    assert not folder.is_relative_to(tmp_path / "warehouse")
    assert not (tmp_path / "warehouse").exists()


def test_a_warehouse_that_cannot_be_written_either_is_left_alone(
    project: Path, tmp_path: Path
) -> None:
    _make_unwritable(project / "target")
    (tmp_path / "warehouse" / "_livemart").mkdir(parents=True)
    _make_unwritable(tmp_path / "warehouse" / "_livemart" / "target")

    assert target_folder(_settings(tmp_path)).is_dir()
