"""An id says nothing without its history: a position of another one is known by its mark."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from livemart.store.positions import Position, mark_of, state_id
from livemart.store.served import Published
from tests.store.stores import NOON


def test_a_mark_tells_apart_what_its_parts_tell_apart() -> None:
    marks = {
        *(mark_of("a", "b"), mark_of("ab"), mark_of("ab", ""), mark_of("", "ab")),
        *(mark_of("epoch", "served_a"), mark_of("epoch", "served_a_2")),
        mark_of("other", "served_a"),
        # A tenant may be any text.
        mark_of("\udcff"),
    }

    assert len(marks) == 8 and {len(mark) for mark in marks} == {8}
    assert mark_of("epoch", "served_a") == mark_of("epoch", "served_a")


def test_a_snapshot_that_is_published_again_is_another_state() -> None:
    published = Published(7, NOON, NOON, "epoch", NOON)
    again = replace(published, published_at=NOON + timedelta(seconds=1))

    assert state_id(published) != state_id(again)
    assert state_id(replace(published, checked_at=NOON + timedelta(days=1))) == state_id(published)


@pytest.mark.parametrize(
    "position",
    [
        Position(7, mark_of("epoch", "served_a")),
        Position(7, mark_of("epoch", "served_a"), 8, 0),
        Position(2**63 - 1, "00000000", 2**63 - 1, 2**31 - 1),
    ],
)
def test_a_position_is_read_back_from_bytes_that_are_as_long_for_each(position: Position) -> None:
    assert Position.from_bytes(position.to_bytes()) == position
    assert len(position.to_bytes()) == 24
