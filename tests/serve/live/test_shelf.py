"""Results are kept of the newest snapshot and of the one that comes next, and of no other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from livemart.serve.live import shelf as shelf_module
from livemart.serve.live.shelf import Answer, Shelf
from livemart.store.served import Published

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def published(snapshot_id: int, *, epoch: str = "epoch", again: int = 0) -> Published:
    moment = NOON + timedelta(minutes=snapshot_id, seconds=again)
    return Published(snapshot_id, NOON, moment, epoch, moment)


ONE, TWO, THREE = (published(number) for number in (1, 2, 3))


def test_a_result_is_found_while_its_snapshot_is_the_newest() -> None:
    shelf, answer = Shelf(), Answer(ONE, "one")

    shelf.keep("key", answer, ONE)

    assert shelf.find("key", ONE) is answer
    assert shelf.find("other", ONE) is None
    assert shelf.find("key", TWO) is None


def test_a_result_of_the_next_snapshot_is_found_where_the_newest_has_none() -> None:
    shelf, before, after = Shelf(), Answer(ONE, "one"), Answer(TWO, "two")
    shelf.keep("both", before, ONE)
    shelf.keep("both", after, ONE)
    shelf.keep("next", after, ONE)

    assert shelf.find("both", ONE) is before
    assert shelf.find("both", TWO) is after
    assert shelf.find("next", ONE) is after


def test_results_of_a_snapshot_before_the_newest_are_forgotten() -> None:
    shelf = Shelf()
    shelf.keep("key", Answer(ONE, "one"), ONE)

    shelf.keep("other", Answer(TWO, "two"), TWO)
    shelf.keep("late", Answer(ONE, "one"), TWO)

    assert shelf.find("key", ONE) is None
    assert shelf.find("late", ONE) is None


def test_a_snapshot_that_is_published_again_replaces_its_results() -> None:
    shelf, mended = Shelf(), published(1, again=1)
    shelf.keep("key", Answer(ONE, "one"), ONE)

    shelf.keep("other", Answer(mended, "mended"), mended)

    assert shelf.find("key", ONE) is None
    assert shelf.find("key", mended) is None
    assert shelf.find("other", mended) is not None


def test_the_newest_keeps_its_results_while_it_is_published_again() -> None:
    shelf, mended = Shelf(), published(1, again=1)
    shelf.keep("key", Answer(ONE, "one"), ONE)

    shelf.keep("other", Answer(mended, "mended"), ONE)

    assert shelf.find("key", ONE) is not None
    assert shelf.find("other", mended) is not None


def test_of_two_epochs_the_last_that_came_is_kept() -> None:
    shelf, anew = Shelf(), published(1, epoch="another")
    shelf.keep("key", Answer(THREE, "three"), THREE)

    shelf.keep("key", Answer(anew, "anew"), THREE)

    assert shelf.find("key", THREE) is None
    assert shelf.find("key", anew) is not None


def test_the_oldest_results_of_a_snapshot_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf_module, "_MOST_KEPT", 2)
    shelf = Shelf()

    for key in ("a", "b", "c"):
        shelf.keep(key, Answer(ONE, key), ONE)

    assert [shelf.find(key, ONE) is not None for key in ("a", "b", "c")] == [False, True, True]
