"""A folder that holds neither a project nor a warehouse."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.settings import load_settings
from livemart.state.last_run import LastRun, keep_last_run
from livemart.state.wrong_folder import require_project_or_warehouse


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _require(**flags: str) -> None:
    require_project_or_warehouse(load_settings(flags, environ={}))


def test_the_message_names_both_places_and_the_nearest_project(here: Path) -> None:
    shop = here / "shop"
    shop.mkdir()
    (shop / "dbt_project.yml").touch()

    with pytest.raises(StateError) as caught:
        _require()

    assert caught.value.code == "NOTHING_PUBLISHED"
    assert f"{here / 'warehouse'}: " in caught.value.message
    assert f"{here} holds no project: no dbt_project.yml" in caught.value.message
    assert f"such as {shop}, with --project-dir" in caught.value.hint


def test_a_folder_that_is_not_there_is_named_as_such(here: Path) -> None:
    with pytest.raises(StateError, match="nowhere holds no project: no such folder"):
        _require(project_dir="nowhere")


def test_a_store_alone_makes_no_warehouse(here: Path) -> None:
    state = here / "warehouse" / "_livemart"
    state.mkdir(parents=True)
    (state / "serving.db").touch()

    with pytest.raises(StateError):
        _require()


def test_a_project_a_table_or_a_failed_first_run_is_enough(here: Path) -> None:
    (here / "dbt_project.yml").touch()
    _require()
    (here / "dbt_project.yml").unlink()

    began = datetime(2026, 3, 1, tzinfo=UTC)
    keep_last_run(here / "warehouse", LastRun("build", 1, began, began))
    _require()
    (here / "warehouse" / "_livemart" / "last_run.json").unlink()

    (here / "warehouse" / "bronze").mkdir()
    _require()


def test_a_warehouse_or_store_that_is_named_may_still_be_empty(here: Path) -> None:
    _require(warehouse=str(here / "elsewhere"))
    _require(store="sqlite:///elsewhere.db")
