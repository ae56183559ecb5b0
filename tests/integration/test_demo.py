"""The demo, as somebody who has just cloned runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.processes
def test_the_demo_shows_the_answers_and_ends_by_proving_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "demo", "--once", "--orders-per-day", "60"]

    done = subprocess.run(
        [*command, "--folder", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "after the batch build" in done.stdout
    assert done.stdout.count("   delivered: ") >= 6
    for kind in ("late", "corrected", "cancelled", "redelivered", "broken"):
        assert done.stdout.count(f" {kind}") >= 6
    assert "the stream equals the batch" in done.stdout
