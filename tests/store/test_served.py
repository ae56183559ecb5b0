"""Two publications are distinguished by their content, never only by a clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from livemart.store.served import Published
from tests.store.stores import NOON

SEVENTH = Published(7, NOON, NOON, "epoch", NOON)
AGAIN = replace(SEVENTH, published_at=NOON + timedelta(hours=1))


@pytest.mark.parametrize(
    ("one", "other", "is_same", "is_later"),
    [
        (SEVENTH, SEVENTH, True, False),
        (replace(SEVENTH, checked_at=NOON + timedelta(hours=1)), SEVENTH, True, False),
        (replace(SEVENTH, set_aside={"a": (1, None)}), SEVENTH, True, False),
        # Neither of two publications of one snapshot is later.
        (AGAIN, SEVENTH, False, False),
        (SEVENTH, AGAIN, False, False),
        (replace(SEVENTH, snapshot_id=8), AGAIN, False, True),
        (AGAIN, replace(SEVENTH, snapshot_id=8), False, False),
        # Another epoch restarts the ids.
        (replace(SEVENTH, snapshot_id=8, epoch="another"), SEVENTH, False, False),
    ],
)
def test_publications_are_compared_by_epoch_snapshot_and_moment(
    one: Published, other: Published, is_same: bool, is_later: bool
) -> None:
    assert (one == other) is is_same
    assert one.is_later_than(other) is is_later
    assert one.is_same_or_later(other) is (is_same or is_later)


def test_a_model_that_is_set_aside_says_since_when_and_how_old_it_is() -> None:
    published = replace(SEVENTH, set_aside={"old": (3, NOON.isoformat()), "never": (5, None)})

    assert published.refreshed_at("old") == (3, NOON)
    assert published.refreshed_at("never") == (5, None)
    assert published.refreshed_at("other") is None is SEVENTH.refreshed_at("old")
