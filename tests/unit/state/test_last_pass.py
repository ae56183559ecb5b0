"""The digest of a pass is kept until a write, together with its time."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from livemart.state.last_pass import LastPass, forget_pass, keep_pass, kept_pass, last_pass_at
from livemart.state.places import StateFolder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PASS = LastPass("e", 3, "d", {"mart.a": ("id", 4), "crm.b": None}, NOON, True)


def test_it_is_kept_as_it_was_until_it_is_forgotten(tmp_path: Path) -> None:
    StateFolder(tmp_path).path.mkdir()
    assert kept_pass(tmp_path) is None
    keep_pass(tmp_path, PASS)

    assert kept_pass(tmp_path) == PASS

    forget_pass(tmp_path)
    forget_pass(tmp_path)
    assert kept_pass(tmp_path) is None


def test_one_that_is_torn_or_of_another_version_is_none(tmp_path: Path) -> None:
    StateFolder(tmp_path).path.mkdir()
    for text in ('{"epoch": "e"', '{"epoch": "e"}', "[]"):
        StateFolder(tmp_path).last_pass.write_text(text)

        assert kept_pass(tmp_path) is None


def test_a_pass_ended_when_spark_said_so_or_when_it_was_kept(tmp_path: Path) -> None:
    assert last_pass_at(tmp_path) is None
    commits = StateFolder(tmp_path).checkpoint / "commits"
    commits.mkdir(parents=True)
    (commits / "3").touch()
    os.utime(commits / "3", (NOON.timestamp(), NOON.timestamp()))
    assert last_pass_at(tmp_path) == NOON

    keep_pass(tmp_path, PASS)

    assert (ended := last_pass_at(tmp_path)) is not None and ended > NOON
