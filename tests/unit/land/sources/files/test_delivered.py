"""A delivery of files reads what it was planned with, or says what became of it."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from livemart.delta.warehouse import Commit
from livemart.errors import SourceError
from livemart.land.reasons import LetterReason
from livemart.land.sources.delivery import Delivery
from livemart.land.sources.files.delivered import (
    DeliveredFiles,
    change_delivery,
    changed_files_of,
    files_of,
)
from livemart.land.sources.files.folder import LandingFolder
from livemart.land.sources.files.parts import FilePart
from tests.deliveries import NOON, Shop, lines, order

NOON_S = 1_772_366_400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "landing"
    for number, name in enumerate(["orders/1.jsonl", "orders/2.jsonl", "menus/1.csv"]):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content {number}\n")
        os.utime(path, (NOON_S + number, NOON_S + number))
    return root


def delivered(folder: Path) -> DeliveredFiles:
    return DeliveredFiles(LandingFolder(folder))


def planned(folder: Path, *names: str) -> Delivery:
    (delivery,) = delivered(folder).plan({"bronze.orders": names})
    return delivery


def test_tables_that_read_the_same_files_share_one_delivery_of_them(folder: Path) -> None:
    orders = ("orders/1.jsonl", "orders/2.jsonl")

    deliveries = delivered(folder).plan(
        {"bronze.orders": orders, "bronze.menus": ("menus/1.csv",), "bronze.events": orders}
    )

    shown = [(each.relations, [it.path for it in files_of(each)]) for each in deliveries]
    assert shown == [
        (("bronze.orders", "bronze.events"), list(orders)),
        (("bronze.menus",), ["menus/1.csv"]),
    ]
    # A batch is as old as the oldest of its files.
    assert [each.delivered_at for each in deliveries] == [
        datetime.fromtimestamp(NOON_S + seconds, UTC) for seconds in (0, 2)
    ]


def test_a_replay_reads_a_receipt_that_went_through_json(folder: Path) -> None:
    first = planned(folder, "orders/1.jsonl")

    kept = Delivery(first.kind, first.relations, json.loads(json.dumps(first.receipt)))

    assert files_of(kept) == files_of(first)
    assert delivered(folder).check(kept, 3) == kept
    assert [part.path for part in delivered(folder).parts(kept, "json")] == [
        folder / "orders/1.jsonl"
    ]


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (
            ("orders/1.jsonl", "orders/9.jsonl"),
            r"SOURCE_FILE_CHANGED: orders/9\.jsonl: .*is missing",
        ),
        (("away/1.jsonl",), r"SOURCE_FILE_UNREADABLE: away/1\.jsonl: its folder"),
    ],
    ids=["file", "folder"],
)
def test_a_file_that_goes_while_its_batch_is_planned_stops_the_batch(
    folder: Path, names: tuple[str, ...], error: str
) -> None:
    with pytest.raises(SourceError, match=error):
        planned(folder, *names)


def test_a_replay_is_refused_if_a_file_holds_something_else(folder: Path) -> None:
    delivery = planned(folder, "orders/1.jsonl")
    path = folder / "orders/1.jsonl"
    content = path.read_bytes()

    path.write_bytes(content[::-1])
    with pytest.raises(SourceError, match=r"SOURCE_FILE_CHANGED: orders/1\.jsonl.*batch 3"):
        delivered(folder).check(delivery, 3)
    path.unlink()
    with pytest.raises(SourceError, match=r"SOURCE_FILE_CHANGED: orders/1\.jsonl"):
        delivered(folder).check(delivery, 3)
    # Put back from a copy it has another time, and that is all.
    path.write_bytes(content)
    assert delivered(folder).check(delivery, 3) is delivery


def test_a_file_that_was_emptied_gives_its_records_up_and_keeps_the_others(folder: Path) -> None:
    delivery = planned(folder, "orders/1.jsonl", "orders/2.jsonl")
    (folder / "orders/1.jsonl").write_bytes(b"")

    files = delivered(folder)

    assert files.check(delivery, 3) is delivery
    (problem,) = files.problems(delivery)
    assert (problem.origin, problem.reason) == ("orders/1.jsonl", LetterReason.SOURCE_FILE_CHANGED)
    assert problem.detail.startswith("had 10 bytes, is empty now")


def test_a_file_that_was_empty_from_the_start_is_no_problem(folder: Path) -> None:
    (folder / "orders/1.jsonl").write_bytes(b"")

    assert delivered(folder).problems(planned(folder, "orders/1.jsonl")) == []


@pytest.mark.parametrize("name", ["../secret.jsonl", "orders/link.jsonl", "/etc/hostname"])
def test_nothing_outside_of_the_folder_is_opened_and_a_letter_says_so(
    folder: Path, name: str
) -> None:
    secret = folder.parent / "secret.jsonl"
    secret.write_text("a secret")
    (folder / "orders/link.jsonl").symlink_to(secret)

    files, delivery = delivered(folder), planned(folder, name, "orders/1.jsonl")

    outside, inside = files_of(delivery)
    assert (outside.size, outside.digest) == (0, "")
    assert files.check(delivery, 3) is delivery
    assert [part.path for part in files.parts(delivery, "json")] == [folder / inside.path]
    (problem,) = files.problems(delivery)
    assert (problem.origin, problem.reason) == (name, LetterReason.MALFORMED_RECORD)


def test_a_file_that_has_changed_since_it_landed_is_told_and_not_read(folder: Path) -> None:
    now = files_of(planned(folder, "orders/1.jsonl"))[0]

    delivery, files = change_delivery(now, ("bronze.orders",)), delivered(folder)

    assert (files_of(delivery), changed_files_of(delivery)) == ([], [now])
    assert (files.size(delivery), list(files.parts(delivery, "json"))) == (0, [])
    (problem,) = files.problems(delivery)
    assert (problem.origin, problem.reason) == ("orders/1.jsonl", LetterReason.SOURCE_FILE_CHANGED)


def test_compressed_files_count_as_what_they_may_hold(folder: Path) -> None:
    packed = folder / "orders/3.jsonl.gz"
    packed.write_bytes(gzip.compress(b"x" * 10_000))
    files = delivered(folder)

    plain = files.size(planned(folder, "orders/1.jsonl", "orders/2.jsonl"))
    both = files.size(planned(folder, "orders/1.jsonl", "orders/3.jsonl.gz"))

    assert (plain, both) == (20, 10 + 8 * packed.stat().st_size)


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
    monkeypatch.setattr("livemart.land.sources.files.delivered._WATCHED_FILES", 3)
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
