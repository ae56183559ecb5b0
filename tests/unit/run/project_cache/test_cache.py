"""A project is read from the cache only if its inputs are equal, and only livemart wrote it."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import pytest

from livemart.plan.project_plans import ProjectPlans
from livemart.plan.strategies.signed import Signed
from livemart.project.graph import Project
from livemart.run.input_files import project_files
from livemart.run.project_cache.cache import CachedProject, ProjectCache
from livemart.settings import Settings, load_settings
from livemart.state.places import LocalFolder
from tests.models import make_model

_COLUMNS = {"raw.orders": {"id": "number", "amount": "number"}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "dbt_project.yml").write_text("name: m\nprofile: m\n")
    (tmp_path / "project" / "profiles.yml").write_text("m: {}\n")
    (tmp_path / "project" / "totals.sql").write_text("select 1")
    flags = {"project_dir": tmp_path / "project", "warehouse": tmp_path / "warehouse"}
    loaded = load_settings(flags, environ={})
    LocalFolder(loaded.warehouse).path.mkdir(parents=True)
    return loaded


def _cache(settings: Settings) -> ProjectCache:
    return ProjectCache(settings, project_files(settings).look())


def _cached(settings: Settings) -> CachedProject:
    sql = "select id, sum(amount) as total from raw.orders group by id"
    model = make_model("model.m.totals", compiled_code=sql)
    project = Project("m", ".", "m", {}, {model.unique_id: model}, {}, {})
    read = frozenset({str(settings.project_dir / "totals.sql")})
    return CachedProject(project, read, b"{}", ProjectPlans(project, _COLUMNS.get))


def test_it_gives_the_project_and_its_plans_to_the_next_command(settings: Settings) -> None:
    written = _cached(settings)

    _cache(settings).write(written)
    read = _cache(settings).read()

    assert read is not None
    assert (read.project, read.files, read.artifact) == (
        *(written.project, written.files, written.artifact),
    )
    assert read.plans.resumed(_COLUMNS.get).models == written.plans.models
    assert read.plans.project is read.project


def test_plans_are_made_again_for_tables_with_other_columns(settings: Settings) -> None:
    _cache(settings).write(_cached(settings))
    read = _cache(settings).read()
    assert read is not None

    plans = read.plans.resumed({"model_of_another_kind": {}}.get)

    assert not isinstance(plans.models["model.m.totals"].strategy, Signed)


def test_an_edit_makes_it_another_project(settings: Settings) -> None:
    _cache(settings).write(_cached(settings))

    (settings.project_dir / "totals.sql").write_text("select 2")

    assert _cache(settings).read() is None


def test_what_was_read_is_written_anew_only_with_other_columns(settings: Settings) -> None:
    path = LocalFolder(settings.warehouse).compiled_project
    _cache(settings).write(_cached(settings))
    before, cache = path.stat().st_mtime_ns, _cache(settings)
    read = cache.read()
    assert read is not None

    cache.write(read)
    assert path.stat().st_mtime_ns == before

    read.plans.resumed(lambda relation: dict.fromkeys(("id", "amount", "at"), "string"))
    cache.write(read)
    assert path.stat().st_mtime_ns != before


def test_a_project_that_computes_names_of_variables_is_not_kept(settings: Settings) -> None:
    (settings.project_dir / "totals.sql").write_text("select '{{ env_var(name) }}'")

    _cache(settings).write(_cached(settings))

    assert not LocalFolder(settings.warehouse).compiled_project.exists()


def test_a_folder_that_cannot_be_written_stops_nothing(settings: Settings) -> None:
    LocalFolder(settings.warehouse).path.rmdir()
    LocalFolder(settings.warehouse).path.write_text("a file where the folder should be")

    _cache(settings).write(_cached(settings))

    assert _cache(settings).read() is None


@pytest.mark.parametrize("keeps", [0, 20, 500, -1])
def test_a_torn_file_is_no_project(settings: Settings, keeps: int) -> None:
    path = LocalFolder(settings.warehouse).compiled_project
    _cache(settings).write(_cached(settings))
    content = path.read_bytes()

    path.write_bytes(content[:keeps])
    assert _cache(settings).read() is None

    path.write_bytes(content)
    assert _cache(settings).read() is not None


class _Code:
    """An object that runs code while it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


class _Function:
    """An object that calls a function of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        return project_files, (None,)


@pytest.mark.parametrize("kind", ["code", "function", "data"])
def test_a_file_of_somebody_else_is_no_project_and_runs_nothing(
    settings: Settings, tmp_path: Path, kind: str
) -> None:
    foreign = {"code": _Code(tmp_path / "ran"), "function": _Function(), "data": 1}[kind]
    payload = pickle.dumps((_cache(settings)._inputs, foreign))
    path = LocalFolder(settings.warehouse).compiled_project
    path.write_bytes(hashlib.sha256(payload).digest() + payload)

    assert _cache(settings).read() is None
    assert not (tmp_path / "ran").exists()
