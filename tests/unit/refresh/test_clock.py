"""`as_of` is the end of a pane, moves once per batch, and never goes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from livemart.delta.small_lane import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError
from livemart.refresh.clock import as_of_for, read_clock, set_clock

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
