"""`maintain` says what has gone, table by table, and what would go."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from livemart.cli.commands import cli
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.inspect.upkeep_report import render_removed
from livemart.run.upkeep import RemovedFiles
from tests.aged_tables import age, parquet_files


def test_tables_without_old_files_are_counted_alone() -> None:
    removed = [
        RemovedFiles("mart.a", 1200, 2_345_678),
        RemovedFiles("mart.b"),
        RemovedFiles("mart.c", error="Permission denied"),
    ]

    assert render_removed(removed, is_trial=True).splitlines() == [
        "mart.a: would remove 1,200 files, 2.3 MB",
        "mart.c: could not remove its old files: Permission denied",
        "3 tables: would remove 1,200 files, 2.3 MB",
    ]


def test_the_command_removes_what_its_trial_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(2):
        tag = Tag("e/mart.a/0", number)
        Warehouse(tmp_path / "warehouse").overwrite("mart.a", pa.table({"n": [number]}), tag)
    age(tmp_path / "warehouse" / "mart" / "a", days=8)

    trial = CliRunner().invoke(cli, ["maintain", "--dry-run", "--output", "json"])
    (told,) = json.loads(trial.output)
    assert (told["table"], told["count"], told["error"]) == ("mart.a", 1, None)
    assert len(parquet_files(tmp_path)) == 2

    assert "1 table: removed 1 file, " in CliRunner().invoke(cli, ["maintain"]).output
    assert len(parquet_files(tmp_path)) == 1
    answer = CliRunner().invoke(cli, ["maintain"])
    told = "1 table: no file is old enough to be removed\n"
    assert (answer.exit_code, answer.output) == (0, told)


def test_where_no_tables_are_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    answer = CliRunner().invoke(cli, ["maintain"])

    assert (answer.exit_code, "livemart init" in answer.output) == (2, True)


def test_a_named_warehouse_without_tables_is_refused(tmp_path: Path) -> None:
    answer = CliRunner().invoke(cli, ["maintain", "--warehouse", str(tmp_path / "none")])

    assert (answer.exit_code, "holds no tables" in answer.output) == (2, True)
