"""An audit is good only if every locked package was asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts import audit
from scripts.audit import Audit

SOUND = {"name": "a", "version": "1", "vulns": []}
UNKNOWN = {"name": "b", "skip_reason": "Dependency not found on PyPI"}
BROKEN = {"name": "c", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": []}]}


@pytest.mark.parametrize(
    ("packages", "alone", "in_test_all"),
    [
        ([SOUND], 0, 0),
        ([SOUND, BROKEN], 1, 1),
        ([UNKNOWN, BROKEN], 1, 1),
        # pip-audit itself ends with 0 here, and says "No known vulnerabilities found".
        ([UNKNOWN], 1, 0),
        ([SOUND, UNKNOWN], 1, 1),
    ],
)
def test_what_was_not_audited_is_not_good(
    packages: list[dict[str, Any]], alone: int, in_test_all: int
) -> None:
    found = Audit.of({"dependencies": packages})

    assert found.exit_code(may_be_away=False) == alone
    assert found.exit_code(may_be_away=True) == in_test_all


def test_a_tool_that_gives_no_report_is_said_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "bin" / "pip-audit"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho Traceback >&2\necho 'no route to PyPI' >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr(audit, "FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["audit"])

    assert audit.main() == 1
    assert "not done, no route to PyPI" in capsys.readouterr().err


def test_it_is_a_part_of_test_all() -> None:
    text = (Path(audit.__file__).parents[1] / "Makefile").read_text()

    (line,) = [line for line in text.splitlines() if line.startswith("test-all: flights-data")]
    assert "audit-if-there" in line.partition("##")[0].split()
