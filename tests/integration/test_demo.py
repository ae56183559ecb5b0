"""The demo, as somebody who has just cloned runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.project_run import ROOT, copy_project
from tests.services.fixtures import not_installed
from tests.waits import PATIENCE_S


@pytest.mark.processes
@pytest.mark.extended
@pytest.mark.parametrize("source, storage", [("files", "disk"), ("kafka", "disk"), ("files", "s3")])
def test_the_demo_shows_the_answers_and_ends_by_proving_them(
    tmp_path: Path, source: str, storage: str
) -> None:
    copy_project(ROOT, tmp_path / "project")
    command = [sys.executable, "-m", "demo", "--once", "--now", "2026-03-29T21:00:00"]
    command += ["--restaurants", "10", "--orders-per-day", "60", "--steps", "3"]
    command += ["--folder", str(tmp_path / "demo"), "--project", str(tmp_path / "project")]
    command += ["--source", source, "--storage", storage]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)

    if "no broker of its own" in done.stderr:
        not_installed(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "after the batch build" in done.stdout
    assert done.stdout.count("   delivered: ") >= 3
    for kind in ("late", "corrected", "cancelled", "redelivered", "broken"):
        assert done.stdout.count(f" {kind}") >= 3
    assert "the stream equals the batch" in done.stdout
    assert ("by the topic livemart-demo-" in done.stdout) == (source == "kafka")
    is_on_disk = source == "files" and storage == "disk"
    assert (tmp_path / "demo" / "landing" / "orders").exists() == is_on_disk
    assert (tmp_path / "demo" / "warehouse").exists() == (storage == "disk")
    assert ("in s3://livemart-demo" in done.stdout) == (storage == "s3")
