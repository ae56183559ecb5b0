"""The benchmark stays runnable: the same code on histories of a few thousand orders."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.processes
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_refresh_benchmark_runs_and_its_answers_are_equal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.refresh", "--folder", str(tmp_path)]
    command += ["--small=2000", "--large=6000", "--batch=100", "--warm-up=0", "--batches=2"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    figures = {line["figure"]: line["value"] for line in lines}
    assert done.returncode == 0, done.stderr[-4000:]
    assert figures["answers_equal"] == 1
    assert figures["refresh_growth_6k_2k"] > 0
    assert figures["model_6k_ms/restaurant_top_dishes"] > 0
    assert list(tmp_path.iterdir()) == []
