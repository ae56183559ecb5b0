"""The one "now" of a snapshot: decided once, found again in a replay, never moved back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError
from livemart.project.graph import SourceTable
from livemart.refresh.context import BatchContext
from livemart.refresh.instant import fix_as_of
from livemart.settings import load_settings
from livemart.state.snapshots import Snapshot

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CLOCK = SourceTable(
    "source.m.livemart.clock",
    "livemart",
    "clock",
    "livemart",
    "clock",
    (),
    None,
    None,
    None,
    "",
    is_clock=True,
)


class Setting:
    """One warehouse whose batches fix their `as_of` one after the other."""

    def __init__(self, folder: Path, **flags: str) -> None:
        self.warehouse = Warehouse(folder)
        self.settings = load_settings(dict(flags), environ={}, directory=folder)
        self.newest: Snapshot | None = None

    def fix(
        self, batch_id: int, now: datetime, event_time: datetime | None = None
    ) -> tuple[datetime, int]:
        context = BatchContext(None, self.warehouse, self.settings, "e", batch_id)  # type: ignore[arg-type]
        return fix_as_of(context, CLOCK, self.newest, newest_event_time=event_time, now=lambda: now)

    def publish(self, batch_id: int, fixed: tuple[datetime, int]) -> None:
        self.newest = Snapshot(
            snapshot_id=batch_id,
            epoch="e",
            batch_id=batch_id,
            kind="refresh",
            as_of=fixed[0],
            sources={"livemart.clock": fixed[1]},
            models={},
            tests={},
            status="published",
            started_at=NOON,
            finished_at=NOON,
        )


def test_as_of_is_the_end_of_the_pane_that_holds_the_wall_clock(tmp_path: Path) -> None:
    as_of, _ = Setting(tmp_path).fix(0, NOON)

    assert as_of == NOON + timedelta(minutes=5)


def test_the_clock_is_not_written_within_a_pane(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    first = setting.fix(0, NOON)
    setting.publish(0, first)

    assert setting.fix(1, NOON + timedelta(minutes=4)) == first


def test_a_replay_finds_what_the_first_attempt_wrote(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    setting.publish(0, setting.fix(0, NOON))
    first = setting.fix(1, NOON + timedelta(minutes=7))

    assert setting.fix(1, NOON + timedelta(hours=9)) == first


def test_the_clock_never_goes_back(tmp_path: Path) -> None:
    setting = Setting(tmp_path)
    first = setting.fix(0, NOON)
    setting.publish(0, first)

    assert setting.fix(1, NOON - timedelta(hours=1)) == first


def test_a_given_instant_before_the_newest_snapshot_is_refused(tmp_path: Path) -> None:
    setting = Setting(tmp_path, as_of="2026-03-01T11:00:00")
    setting.publish(0, (NOON, 0))

    with pytest.raises(ConfigError, match="AS_OF_BACKWARDS"):
        setting.fix(1, NOON)


def test_history_moves_by_the_newest_event_time(tmp_path: Path) -> None:
    setting = Setting(tmp_path, clock="event_time")
    far = NOON + timedelta(days=400)
    before_all = setting.fix(0, far)
    setting.publish(0, before_all)
    moved = setting.fix(1, far, NOON)
    setting.publish(1, moved)

    assert before_all[0] == datetime(1970, 1, 1, tzinfo=UTC)
    assert moved[0] == NOON + timedelta(minutes=5)
    assert setting.fix(2, far, NOON - timedelta(days=1)) == moved
