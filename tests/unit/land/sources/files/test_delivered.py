"""A delivery of files reads what it was planned with, or says what became of it."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

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
