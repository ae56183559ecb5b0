"""Landing handles files that it has read before: replays, and removed or changed files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from livemart.delta.warehouse import Commit
from livemart.errors import SourceError
from livemart.land.sources.files.parts import FilePart
from tests.deliveries import NOON, Shop, lines, order


class PowerError(Exception):
    """A cut."""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(None, tmp_path)


@pytest.mark.parametrize("dies_before", ["_deletes_orders", "orders", "order_events", "nothing"])
def test_a_replay_after_a_crash_changes_nothing_twice(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, dies_before: str
) -> None:
    shop.land(0, shop.deliver("orders/0.jsonl", lines([order("a", 1), order("b", 1)])))
    records = [order("a", 2, op="d"), order("b", 2), order("c", 1), order("c", 1)]
    path = shop.deliver("orders/1.jsonl", [*lines(records), "{broken"])
    commit = shop.warehouse.commit

    def crash(relation: str, *args: Any, **named: Any) -> Any:
        if relation == f"bronze.{dies_before}":
            raise KeyboardInterrupt
        return commit(relation, *args, **named)

    monkeypatch.setattr(shop.warehouse, "commit", crash)
    try:
        first = shop.land(1, path)
    except KeyboardInterrupt:
        first = None
    monkeypatch.setattr(shop.warehouse, "commit", commit)
    shop.restart()
    shop.now = NOON.replace(hour=18)
    replay = shop.land(1, path)
    again = shop.land(1, path)

    assert shop.rows("orders", "order_id") == [("b",), ("c",)]
    assert len(shop.rows("order_events", "order_id")) == 6
    assert shop.rows("_deletes_orders", "order_id") == [("a",)]
    assert len(shop.rows("_dead_letters", "reason")) == 2
    assert replay == again
    assert first is None or first == replay
    assert replay.landed_at == NOON
    counts = replay.counts["bronze.orders"]
    assert (counts.produced, counts.landed, counts.superseded, counts.dead_letters) == (5, 3, 1, 1)


def test_a_file_that_vanished_before_its_replay_stops_landing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shop.deliver("orders/1.jsonl", lines([order("a")]))
    _crash_before_landing(shop, monkeypatch, path)
    content = path.read_bytes()

    path.unlink()
    with pytest.raises(SourceError, match=r"SOURCE_FILE_CHANGED: orders/1.jsonl"):
        shop.land(0, path)
    path.write_bytes(content[:-10])
    with pytest.raises(SourceError, match=r"SOURCE_FILE_CHANGED: orders/1.jsonl"):
        shop.land(0, path)
    path.write_bytes(content)
    shop.land(0, path)

    assert shop.rows("orders", "order_id") == [("a",)]


def test_records_that_are_given_up_become_a_dead_letter(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shop.deliver("orders/1.jsonl", lines([order("a")]))
    _crash_before_landing(shop, monkeypatch, path)

    path.write_bytes(b"")
    counts = shop.land(0, path).counts["bronze.orders"]

    assert (counts.produced, counts.dead_letters) == (1, 1)
    assert (
        shop.rows("_dead_letters", "reason", "origin")
        == [("SOURCE_FILE_CHANGED", "orders/1.jsonl")] * 2
    )


def test_each_file_that_is_given_up_has_a_letter_whatever_letters_were_there(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shop.deliver("orders/1.jsonl", [*lines([order("a")]), "{broken"])
    second = shop.deliver("orders/2.jsonl", lines([order("b"), order("c")]))
    letters = "bronze._dead_letters"
    commit = shop.warehouse.commit

    def crash(relation: str, *arguments: Any, **options: Any) -> Commit:
        if relation != letters:
            raise PowerError
        return commit(relation, *arguments, **options)

    # Each attempt commits its letters and dies; before the next one a file is emptied.
    for given_up in (None, first, second):
        if given_up:
            given_up.write_bytes(b"")
        monkeypatch.setattr(shop.warehouse, "commit", crash)
        with pytest.raises(PowerError):
            shop.land(0, first, second)
        monkeypatch.setattr(shop.warehouse, "commit", commit)
        shop.restart()
    counts = shop.land(0, first, second).counts["bronze.orders"]

    assert (counts.produced, counts.dead_letters) == (2, 2)
    assert shop.rows("_dead_letters", "source", "origin", "reason") == [
        (source, *letter)
        for source in ("bronze.order_events", "bronze.orders")
        for letter in (
            ("orders/1.jsonl", "SOURCE_FILE_CHANGED"),
            ("orders/1.jsonl:2", "MALFORMED_RECORD"),
            ("orders/2.jsonl", "SOURCE_FILE_CHANGED"),
        )
    ]


def test_a_file_changed_after_it_was_landed_is_noticed_once(shop: Shop) -> None:
    path = shop.deliver("orders/1.jsonl", lines([order("a")]))
    shop.land(0, path)

    path.write_text("\n".join(lines([order("a"), order("b")])))
    noticed = shop.land(1)
    shop.restart()
    quiet = shop.land(2)

    assert noticed.counts["bronze.orders"].dead_letters == 1
    assert quiet.counts["bronze.orders"].dead_letters == 0
    assert shop.rows("_dead_letters", "reason", "batch_id") == [("SOURCE_FILE_CHANGED", 1)] * 2
    assert shop.rows("orders", "order_id") == [("a",)]


def test_a_changed_file_is_noticed_after_idle_batches_and_a_restart(shop: Shop) -> None:
    path = shop.deliver("orders/1.jsonl", lines([order("a")]))
    shop.land(0, path)
    for batch_id in range(1, 203):
        shop.land(batch_id)
    notes = shop.warehouse.root / "_livemart" / "files" / shop.epoch
    assert [each.name for each in notes.iterdir()] == ["0.json"]
    shop.restart()

    path.write_text("\n".join(lines([order("a"), order("b")])))
    noticed = shop.land(203)

    assert noticed.counts["bronze.orders"].dead_letters == 1


def test_the_files_landed_last_are_watched_also_over_many_batches(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.land.sources.files.watched._WATCHED_FILES", 3)
    paths = [shop.deliver(f"orders/{n}.jsonl", lines([order(f"o{n}")])) for n in range(4)]
    for batch_id, path in enumerate(paths):
        shop.land(batch_id, path)

    # In the process that landed them, and in the next one.
    for batch_id in (10, 20):
        for path in paths:
            # With a different size each time: a clock may be too coarse to distinguish them.
            path.write_text("x" * batch_id)
        shop.land(batch_id)
        shop.restart()

    assert shop.rows("_dead_letters", "batch_id", "source", "origin") == [
        (batch_id, source, f"orders/{n}.jsonl")
        for batch_id in (10, 20)
        for source in ("bronze.order_events", "bronze.orders")
        for n in (1, 2, 3)
    ]


def _crash_before_landing(shop: Shop, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def crash(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FilePart, "read", crash)
        with pytest.raises(KeyboardInterrupt):
            shop.land(0, path)
    shop.restart()
