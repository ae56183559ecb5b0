"""A reader keeps a snapshot until a moment; others are kept beside it, each by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from livemart.state.atomic_files import numbers_of
from livemart.state.kept_snapshots import forget_ended, keep_snapshot, kept_snapshots, let_go
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_snapshot_is_kept_until_its_end(place: StoragePlace) -> None:
    keep_snapshot(place, 7, NOON + HOUR)
    keep_snapshot(place, 12, NOON + 3 * HOUR)

    assert kept_snapshots(place, NOON) == {7: NOON + HOUR, 12: NOON + 3 * HOUR}
    assert kept_snapshots(place, NOON + HOUR) == {12: NOON + 3 * HOUR}


def test_the_time_that_was_said_last_counts(place: StoragePlace) -> None:
    keep_snapshot(place, 7, NOON + 2 * HOUR)
    keep_snapshot(place, 7, NOON + HOUR)

    assert kept_snapshots(place, NOON) == {7: NOON + HOUR}


def test_a_snapshot_that_is_let_go_is_kept_no_longer(place: StoragePlace) -> None:
    keep_snapshot(place, 7, NOON + HOUR)

    assert let_go(place, 7)
    assert not let_go(place, 7)
    assert kept_snapshots(place, NOON) == {}


def test_notes_go_once_their_time_has_passed(place: StoragePlace) -> None:
    for snapshot_id, hours in ((7, 1), (12, 3)):
        keep_snapshot(place, snapshot_id, NOON + hours * HOUR)

    forget_ended(place, NOON + 2 * HOUR)

    assert numbers_of(StateFolder(place).kept_snapshots) == [12]
