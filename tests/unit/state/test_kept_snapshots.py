"""A reader keeps a snapshot until a moment; others are kept beside it, each by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from livemart.state.kept_snapshots import forget_ended, keep_snapshot, kept_snapshots, let_go
from livemart.state.places import StateFolder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_snapshot_is_kept_until_its_end(tmp_path: Path) -> None:
    keep_snapshot(tmp_path, 7, NOON + HOUR)
    keep_snapshot(tmp_path, 12, NOON + 3 * HOUR)

    assert kept_snapshots(tmp_path, NOON) == {7: NOON + HOUR, 12: NOON + 3 * HOUR}
    assert kept_snapshots(tmp_path, NOON + HOUR) == {12: NOON + 3 * HOUR}


def test_the_time_that_was_said_last_counts(tmp_path: Path) -> None:
    keep_snapshot(tmp_path, 7, NOON + 2 * HOUR)
    keep_snapshot(tmp_path, 7, NOON + HOUR)

    assert kept_snapshots(tmp_path, NOON) == {7: NOON + HOUR}


def test_a_snapshot_that_is_let_go_is_kept_no_longer(tmp_path: Path) -> None:
    keep_snapshot(tmp_path, 7, NOON + HOUR)

    assert let_go(tmp_path, 7)
    assert not let_go(tmp_path, 7)
    assert kept_snapshots(tmp_path, NOON) == {}


def test_notes_go_once_their_time_has_passed(tmp_path: Path) -> None:
    for snapshot_id, hours in ((7, 1), (12, 3)):
        keep_snapshot(tmp_path, snapshot_id, NOON + hours * HOUR)

    forget_ended(tmp_path, NOON + 2 * HOUR)

    assert [it.stem for it in StateFolder(tmp_path).kept_snapshots.iterdir()] == ["12"]
