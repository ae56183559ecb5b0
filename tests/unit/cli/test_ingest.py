"""The command tells what it handed over, in words and as JSON, and exits as it should."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from livemart.cli.commands import cli
from tests.deliveries import source
from tests.integration.mini import PROJECT
from tests.project_run import copy_project
from tests.waits import wait_until

NOTES = source("notes", {"id": "bigint"}, path="notes/*.jsonl")


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of two records, of which one fits no column."""
    monkeypatch.setattr("livemart.land.ingest.read_project", lambda _: None)
    monkeypatch.setattr("livemart.land.ingest.source_called", lambda *_: NOTES)
    monkeypatch.setenv("LIVEMART_LANDING", str(tmp_path / "landing"))
    path = tmp_path / "notes.jsonl"
    path.write_text('{"id":1}\n{"id":"x"}\n')
    return path


def test_files_are_counted_in_words_and_as_json(notes: Path) -> None:
    done = CliRunner().invoke(cli, ["ingest", "notes", str(notes)])
    again = CliRunner().invoke(cli, ["ingest", "notes", str(notes), "--output", "json"])

    assert (done.exit_code, done.stdout) == (0, "bronze.notes: 2 records in 1 file handed over\n")
    assert json.loads(again.stdout) == {
        "source": "bronze.notes",
        "records": 0,
        "bytes": 0,
        "files": 0,
        "refused": {},
    }


def test_strict_fails_for_a_dead_letter_and_hands_it_over(notes: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["ingest", "notes", str(notes), "--strict"])

    assert done.exit_code == 1
    assert "; 1 will be dead letters: 1 TYPE_MISMATCH" in done.stdout
    assert len(list((tmp_path / "landing" / "notes").iterdir())) == 1


def test_an_interval_that_is_none_is_a_wrong_use(notes: Path) -> None:
    done = CliRunner().invoke(cli, ["ingest", "notes", "--every", "soon"])

    assert done.exit_code == 2
    assert "write 5s or 1 minute" in done.stderr


# 8 s.
def test_a_pipe_into_a_project_and_sigterm(tmp_path: Path) -> None:
    copy_project(PROJECT, tmp_path / "project")
    command = [sys.executable, "-m", "livemart", "ingest", "shop.sales", "--every", "1s"]
    command += ["--project-dir", str(tmp_path / "project"), "--landing", str(tmp_path / "landing")]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdin is not None
    process.stdin.write('{"sale_id":"1"}\n{"sale_id":"2"}\n{"sal')
    process.stdin.flush()
    folder = tmp_path / "landing" / "sales"
    wait_until(
        lambda: process.poll() is not None or (folder.exists() and any(folder.glob("*.jsonl")))
    )
    process.send_signal(signal.SIGTERM)
    # The pipe stays open: it is no end of its records.
    assert process.wait(timeout=30) == 143
    told, _ = process.communicate()

    assert "bronze.sales: 2 records in 1 file handed over" in told
    (path,) = folder.iterdir()
    assert path.read_text() == '{"sale_id":"1"}\n{"sale_id":"2"}\n'
