"""What waits is every file below the landing folder, as its name, size and time."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.run import input_files
from livemart.run.input_files import project_files, waiting_files
from livemart.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    project, landing = tmp_path / "project", tmp_path / "landing"
    for name in ("dbt_project.yml", "profiles.yml", "models/a.sql", "landing/b.sql"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    for name in ("orders/1.jsonl", "orders/.draft", "_done/2.jsonl", "3.csv"):
        path = landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    flags = {"project_dir": str(project), "landing": str(landing)}
    return load_settings(flags | {"warehouse": str(project / "warehouse")}, environ={})


def test_drafts_and_hidden_folders_do_not_wait(settings: Settings) -> None:
    files = waiting_files(settings) or []

    names = [str(Path(path).relative_to(settings.landing)) for path, _, _ in files]
    assert names == ["3.csv", "orders/1.jsonl"]
    assert {size for _, size, _ in files} == {2}


def test_a_file_that_cannot_be_looked_at_hides_what_waits(settings: Settings) -> None:
    (settings.landing / "orders" / "loop").symlink_to("loop")

    assert waiting_files(settings) is None


def test_many_files_are_not_looked_at(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "_MANY_FILES", 1)

    assert waiting_files(settings) is None


def test_what_lands_is_no_part_of_the_project(settings: Settings) -> None:
    inside = settings.model_copy(update={"landing": settings.project_dir / "landing"})

    names = {Path(path).name for path in project_files(inside).look()}
    assert names == {"dbt_project.yml", "profiles.yml", "a.sql"}
