"""A look finds the files that an analyst writes, and those that wait to land."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.project.graph import Project, SourceTable
from livemart.run import input_files
from livemart.run.input_files import (
    ProjectFiles,
    has_few_rows,
    has_little_data,
    project_files,
    waiting_files,
)
from livemart.settings import Settings, load_settings
from livemart.state.project_graph import keep_graph


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

    names = [str(Path(path).relative_to(str(settings.landing))) for path, _, _ in files]
    assert names == ["3.csv", "orders/1.jsonl"]
    assert {size for _, size, _ in files} == {2}


def test_a_file_that_cannot_be_looked_at_hides_what_waits(settings: Settings) -> None:
    (Path(str(settings.landing)) / "orders" / "loop").symlink_to("loop")

    assert waiting_files(settings) is None


def test_many_files_are_not_looked_at(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "_MANY_FILES", 1)

    assert waiting_files(settings) is None


def test_what_lands_is_no_part_of_the_project(settings: Settings) -> None:
    inside = settings.model_copy(update={"landing": settings.project_dir / "landing"})

    names = {Path(path).name for path in project_files(inside).look()}
    assert names == {"dbt_project.yml", "profiles.yml", "a.sql"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (
        "dbt_project.yml",
        "models/orders.sql",
        "models/_orders.yml",
        "macros/money.sql",
        "seeds/shops.csv",
        "packages/tools/macros/tool.sql",
        "target/compiled/orders.sql",
        ".git/config.yml",
        "landing/orders/1.csv",
        "venv/pyvenv.cfg",
        "venv/lib/thing.py",
        "livemart.yml",
        "notes.txt",
    ):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one")
    return tmp_path / "project"


def files_of(project: Path, profiles: Path | None = None) -> ProjectFiles:
    return ProjectFiles(
        project, profiles or project / "profiles", (project / "landing", project / "warehouse")
    )


def test_what_the_analyst_writes_is_looked_at_and_nothing_else(project: Path) -> None:
    look = files_of(project).look()

    assert sorted(os.path.relpath(path, project) for path in look) == [
        "dbt_project.yml",
        "macros/money.sql",
        "models/_orders.yml",
        "models/orders.sql",
        "packages/tools/macros/tool.sql",
        "seeds/shops.csv",
    ]


def test_files_that_are_new_changed_or_gone_are_named(project: Path) -> None:
    files = files_of(project)
    before = files.look()
    (project / "models" / "orders.sql").write_text("other")
    (project / "models" / "dishes.sql").write_text("new")
    (project / "macros" / "money.sql").unlink()

    changed = files.changed(before, files.look())

    assert changed == ["macros/money.sql", "models/dishes.sql", "models/orders.sql"]
    assert files.changed(before, before) == []


def test_a_save_by_rename_within_the_same_tick_is_an_edit(project: Path) -> None:
    files, path = files_of(project), project / "models" / "orders.sql"
    before, seen = files.look(), path.stat()
    draft = path.with_suffix(".draft")
    draft.write_text("two")
    os.utime(draft, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    draft.rename(path)

    assert files.changed(before, files.look()) == ["models/orders.sql"]


def test_the_profile_belongs_to_the_project_wherever_it_is(project: Path, tmp_path: Path) -> None:
    profiles = tmp_path / "elsewhere"
    profiles.mkdir()
    files = files_of(project, profiles)
    before = files.look()
    (profiles / "profiles.yml").write_text("one")

    assert files.changed(before, files.look()) == ["../elsewhere/profiles.yml"]


def test_links_that_lead_in_a_circle_come_to_an_end(project: Path) -> None:
    (project / "models" / "again").symlink_to(project)

    assert len(files_of(project).look()) == 6


def test_a_project_that_is_gone_has_no_files(tmp_path: Path) -> None:
    assert files_of(tmp_path / "none").look() == {}


@pytest.fixture
def small_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(input_files, "_LITTLE_BYTES", 10)
    monkeypatch.setattr(input_files, "FEW_WAREHOUSE_ROWS", 5)
    for name in ("dbt_project.yml", "profiles.yml"):
        (tmp_path / name).touch()
    (tmp_path / "landing" / "orders").mkdir(parents=True)
    folders = {name: str(tmp_path / name) for name in ("warehouse", "landing")}
    return load_settings({"project_dir": str(tmp_path), **folders}, environ={})


def _landed(settings: Settings, relation: str, count: int) -> None:
    warehouse, rows = Warehouse(settings.warehouse), pa.table({"n": range(count)})
    if not warehouse.exists(relation):
        warehouse.create(relation, rows.schema)
    warehouse.overwrite(relation, rows, Tag(relation, warehouse.version(relation), {}))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"landing/orders/a.jsonl": 10}, True),
        ({"landing/orders/a.jsonl": 11}, False),
        ({"landing/orders/a.jsonl": 4, "seeds/shops.csv": 6}, True),
        ({"landing/orders/a.jsonl": 4, "seeds/shops.csv": 7}, False),
        # Its other rows are elsewhere, and nothing tells how many.
        ({"seeds/shops.csv": 1}, False),
    ],
)
def test_files_say_how_much_there_is_before_the_first_pass(
    small_limits: Settings, sizes: dict[str, int], expected: bool
) -> None:
    for file, size in sizes.items():
        path = small_limits.project_dir / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * size)

    assert has_little_data(small_limits, waiting_files(small_limits) or []) is expected


def test_tables_say_it_after_the_first_pass(small_limits: Settings) -> None:
    (Path(str(small_limits.landing)) / "orders" / "a.jsonl").write_text("{}")
    keep_graph(small_limits.warehouse, Project("shop", ".", "shop", {}, {}, {}, {}))
    _landed(small_limits, "raw.orders", 3)
    _landed(small_limits, "mart.totals", 2)
    assert has_little_data(small_limits, waiting_files(small_limits) or [])

    _landed(small_limits, "mart.totals", 3)
    assert not has_few_rows(Warehouse(small_limits.warehouse))
    assert not has_little_data(small_limits, waiting_files(small_limits) or [])


def test_a_source_that_is_no_table_of_the_warehouse_may_be_of_any_size(
    small_limits: Settings,
) -> None:
    (Path(str(small_limits.landing)) / "orders" / "a.jsonl").write_text("{}")
    source = SourceTable("s.raw.orders", "raw", "orders", "raw", "orders", (), None, None, None, "")
    project = Project("shop", ".", "shop", {source.unique_id: source}, {}, {}, {})
    keep_graph(small_limits.warehouse, project)
    assert not has_little_data(small_limits, waiting_files(small_limits) or [])

    _landed(small_limits, source.relation, 1)
    assert has_little_data(small_limits, waiting_files(small_limits) or [])
