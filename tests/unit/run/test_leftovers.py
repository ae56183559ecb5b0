"""Leftovers of a killed first build are removed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.project.graph import Project
from livemart.run.leftovers import clear_leftovers
from livemart.storage.location import Location
from livemart.storage.opening import open_storage
from tests.models import make_model
from tests.storages import memory_place  # noqa: F401

MODEL = make_model("model.m.totals")
VIEW = make_model("model.m.seen", materialized="view")
PROJECT = Project("m", ".", "m", {}, {m.unique_id: m for m in (MODEL, VIEW)}, {}, {})


def write(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


@pytest.mark.parametrize(
    "names",
    [
        ("part-0.snappy.parquet", ".part-0.snappy.parquet.crc"),
        ("day=2026-03-01/city=a%2Fb/part-0.parquet", "_change_data/cdc-0.parquet"),
        ("_delta_log/.00000000000000000000.json.7.tmp", "part-0.parquet"),
        (),
    ],
)
def test_files_without_a_commit_are_cleared(tmp_path: Path, names: tuple[str, ...]) -> None:
    write(tmp_path / "m" / "totals", *names)
    (tmp_path / "m" / "totals" / "_delta_log").mkdir(exist_ok=True)

    assert clear_leftovers(tmp_path, PROJECT) == ["m.totals"]
    assert not (tmp_path / "m" / "totals").exists()
    assert clear_leftovers(tmp_path, PROJECT) == []


@pytest.mark.parametrize(
    "names",
    [
        ("_delta_log/00000000000000000000.json", "part-0.parquet"),
        # Entries before a checkpoint are cleaned away in time.
        ("_delta_log/00000000000000000010.checkpoint.parquet", "part-0.parquet"),
        ("_delta_log/00000000000000000010.checkpoint.0000000001.0000000002.parquet",),
        ("notes.txt", "part-0.parquet"),
        ("backup/part-0.parquet",),
    ],
)
def test_a_table_and_what_others_keep_are_left_alone(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    write(tmp_path / "m" / "totals", *names)

    assert clear_leftovers(tmp_path, PROJECT) == []
    assert all((tmp_path / "m" / "totals" / name).is_file() for name in names)


@pytest.mark.parametrize("name", ["seen", "another"])
def test_folders_that_are_no_models_tables_are_left_alone(tmp_path: Path, name: str) -> None:
    write(tmp_path / "m" / name, "part-0.parquet")

    assert clear_leftovers(tmp_path, PROJECT) == []
    assert (tmp_path / "m" / name / "part-0.parquet").is_file()


def test_a_link_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "part-0.parquet")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "totals").symlink_to(tmp_path / "elsewhere")

    assert clear_leftovers(tmp_path, PROJECT) == []
    assert (tmp_path / "elsewhere" / "part-0.parquet").is_file()


def test_those_of_a_stage_are_cleared_as_well(tmp_path: Path) -> None:
    stages = tmp_path / "_livemart_stages"
    write(stages / "totals__0a1b__1", "part-0.parquet")
    (stages / "totals__0a1b__1" / "_delta_log").mkdir()
    write(stages / "kept__0a1b__1", "_delta_log/00000000000000000000.json", "part-0.parquet")

    assert clear_leftovers(tmp_path, PROJECT) == ["_livemart_stages.totals__0a1b__1"]
    assert [path.name for path in stages.iterdir()] == ["kept__0a1b__1"]


@pytest.mark.parametrize(
    "names, is_cleared",
    [
        (("part-0.snappy.parquet",), True),
        (("day=2026-03-01/part-0.parquet", "_delta_log/.tmp/0.json"), True),
        (("_delta_log/00000000000000000000.json", "part-0.parquet"), False),
        (("notes.txt", "part-0.parquet"), False),
        (("backup/part-0.parquet",), False),
        ((), False),
    ],
)
def test_in_a_bucket_it_is_the_same(
    names: tuple[str, ...],
    is_cleared: bool,
    memory_place: Location,  # noqa: F811
) -> None:
    storage = open_storage(memory_place / "m" / "totals")
    for name in names:
        storage.put(name, b"x")

    assert clear_leftovers(memory_place, PROJECT) == ["m.totals"] * is_cleared
    assert storage.names() == ([] if is_cleared else sorted(names))
