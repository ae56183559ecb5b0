"""README shows the plan of the reference mart as `plan` prints it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.commands import RUNNER, terminal_environ
from tests.project_run import ROOT, copy_project


@pytest.mark.extended
def test_the_plan_in_the_readme_is_an_excerpt_of_the_real_one(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"`plan` shows this for each model:\n\n```\n(.*?)```", text, re.DOTALL)
    copy_project(ROOT, tmp_path / "mart")
    command = [*RUNNER, "plan", "--project-dir", str(tmp_path / "mart")]

    done = subprocess.run(
        command, cwd=tmp_path, env=terminal_environ(), capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    place = 0
    for line in shown.splitlines():
        place = printed.index(line, place) + 1
