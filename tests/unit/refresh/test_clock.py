"""`as_of` is the end of a pane, moves once per batch, and never goes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError
from livemart.project.graph import SourceTable
from livemart.refresh.clock import as_of_for, fix_as_of, read_clock, set_clock
from livemart.refresh.context import BatchContext
from livemart.settings import load_settings
from livemart.state.snapshots import Snapshot

PANE = timedelta(minutes=5)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (NOON, NOON + PANE),
        (NOON + timedelta(microseconds=1), NOON + PANE),
        (NOON + PANE - timedelta(microseconds=1), NOON + PANE),
        (NOON + PANE, NOON + 2 * PANE),
        (
            datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
        ),
    ],
)
def test_an_instant_on_a_boundary_belongs_to_the_pane_it_opens(
    moment: datetime, expected: datetime
) -> None:
    actual = as_of_for(PANE, moment)

    assert actual == expected


@pytest.mark.parametrize("pane", [timedelta(0), -PANE])
def test_a_pane_without_length_is_refused(pane: timedelta) -> None:
    with pytest.raises(ConfigError, match="PANE_NOT_POSITIVE"):
        as_of_for(pane, NOON)


def test_the_clock_is_one_row_that_never_goes_back(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first = set_clock(warehouse, NOON, Tag("e/livemart.clock/0", 1, {}))

    second = set_clock(warehouse, NOON - PANE, Tag("e/livemart.clock/0", 2, {}))

    assert second == first
    assert read_clock(warehouse) == NOON
    assert warehouse.row_count("livemart.clock", second) == 1


def test_a_replay_leaves_what_the_first_attempt_wrote(tmp_path: Path) -> None:
    warehouse, tag = Warehouse(tmp_path), Tag("e/livemart.clock/0", 1, {})
    set_clock(warehouse, NOON, tag)

    set_clock(warehouse, NOON + PANE, tag)

    assert read_clock(warehouse) == NOON


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
        context = BatchContext(None, self.warehouse, "e", batch_id, "auto", 10, 1)  # type: ignore[arg-type]
        return fix_as_of(
            context,
            self.settings,
            CLOCK,
            self.newest,
            newest_event_time=event_time,
            now=lambda: now,
        )

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
