"""A full disk is no bug and no wrong model: it is said as what it is, with the next step."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from livemart.cli.exits import as_full_disk, finish, reported_errors
from livemart.errors import RefreshError
from livemart.run.pipeline import RunOutcome
from livemart.state.snapshots import RELEASE
from tests.unit.observe.outcomes import make_held_outcome


def nested() -> Exception:
    """Spark's error after dbt and livemart passed it on."""
    error = RuntimeError("Job aborted.\n  java.io.IOException: No space left on device\n  at x")
    outer = RefreshError("MODEL_FAILED", "model.m.totals: job aborted", hint="mend the model")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "place", "words"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "/nowhere/3.json"),
            "/nowhere/3.json",
            "No space left on device",
        ),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "", "Disk quota exceeded"),
        # As Arrow and the table library raise it: a number, and no name.
        (OSError(28, "Error writing bytes to file. Detail: [errno 28]"), "", "Error writing bytes"),
        (nested(), "", "java.io.IOException: No space left on device"),
        (
            RefreshError("MODEL_FAILED", "m: No space left on device", hint="mend the model"),
            "",
            "MODEL_FAILED: m: No space left on device",
        ),
    ],
)
def test_a_command_that_a_full_disk_ends_says_so(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    place: str,
    words: str,
) -> None:
    flags = {"warehouse": str(tmp_path), "project_dir": str(tmp_path)}

    with pytest.raises(SystemExit) as ended, reported_errors(flags):
        raise error

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith(f"DISK_FULL: {place or tmp_path}: found ")
    assert " MiB free: " in said
    assert words in said
    assert "next: free space there" in said
    assert "nothing was published in part" in said
    assert "UNEXPECTED" not in said


def test_another_error_of_the_system_is_not_a_full_disk(tmp_path: Path) -> None:
    assert as_full_disk(OSError(errno.EIO, "Input/output error"), tmp_path) is None
    assert as_full_disk(ValueError("no space"), tmp_path) is None


OBEYED = "orders\x1b[2J.jsonl: found 'a\u202eb'"


@pytest.mark.parametrize("error", [RefreshError("X", OBEYED, hint="see it"), ValueError(OBEYED)])
def test_a_terminal_obeys_no_sign_of_an_error(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name of a file, or a value of a record, is in the text of an error."""
    with pytest.raises(SystemExit), reported_errors({"warehouse": tmp_path}):
        raise error

    said = capsys.readouterr().err.split("\n")
    assert all(line.isprintable() for line in said)
    assert r"orders\x1b[2J.jsonl: found 'a\u202eb'" in said[0] and said[1].startswith("  next: ")


def test_an_excerpt_of_sql_is_written_with_its_lines_and_indents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit), reported_errors({"warehouse": tmp_path}):
        raise RefreshError("X", "select a\r\n\tfrom b", hint="see it")

    assert capsys.readouterr().err.split("\n")[1] == "    from b"


def test_a_held_snapshot_ends_with_rows_their_test_and_how_to_see_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="1"):
        finish(RunOutcome([make_held_outcome()]))

    assert capsys.readouterr().err.splitlines() == [
        "held by test.livemart.unique_panes: 3 rows (models/panes.yml:9)",
        "  pane=7, n=2",
        "  pane=9, n=2",
        '  its rows: eval "$(livemart env)" && dbt show --select unique_panes --limit 100',
        RELEASE,
    ]
