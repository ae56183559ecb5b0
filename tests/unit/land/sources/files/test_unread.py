"""Delivered files that no source reads are reported, with the nearest source."""

from __future__ import annotations

import os
from pathlib import Path

from livemart.land.sources.files.folder import LandingFolder
from livemart.land.sources.files.stream import place_slots
from livemart.land.sources.files.unread import find_unread, unread_files
from livemart.state.places import StateFolder


def deliver(landing: Path, *names: str) -> LandingFolder:
    for name in names:
        path = landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return LandingFolder(landing)


def test_a_misspelled_path_is_told_with_the_source_that_was_meant(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    deliver(landing, "reviews/a.jsonl", "reviews/b.jsonl", "reviews/_draft", "orders/1.csv")
    checkpoint = StateFolder(tmp_path).checkpoint
    assert unread_files(tmp_path, landing) == ()
    checkpoint.mkdir(parents=True)
    place_slots(checkpoint, {"bronze.reviews": "rewiews/*.jsonl", "bronze.orders": "orders/*.csv"})

    assert [str(it) for it in unread_files(tmp_path, landing)] == [
        "unread reviews/a.jsonl and 1 more: no source reads it; bronze.reviews reads "
        "rewiews/*.jsonl: correct that `path`, or the name"
    ]


def test_a_name_that_is_no_text_is_told_and_does_not_wait(tmp_path: Path) -> None:
    # Java's own listing (17) has no name of such bytes: it finds no file of the name it made.
    folder = deliver(tmp_path, "orders/1.csv", os.fsdecode(b"orders/\xfcber.csv"))

    (found,) = find_unread(folder, {"bronze.orders": "orders/*.csv"})

    assert str(found) == (
        r"unread orders/\xfcber.csv: a name that is no UTF-8, which Spark cannot read: rename it"
    )
    assert [it.place for it in folder.found("orders/*.csv")] == [tmp_path / "orders/1.csv"]


def test_what_looks_like_no_source_is_told_in_few_lines(tmp_path: Path) -> None:
    names = [f"{folder}/{number}" for folder in "abcdefgh" for number in range(3)]
    folder = deliver(tmp_path, "zz/1", "zz/2", "zz/3", "zz/4", *names)

    found = find_unread(folder, {"bronze.orders": "orders/eu/*.jsonl"})

    assert [(it.folder, it.files, it.example) for it in found] == [
        ("zz", 4, "zz/1"),
        ("a", 3, "a/0"),
        ("b", 3, "b/0"),
        ("c", 3, "c/0"),
        ("d", 3, "d/0"),
    ]
    assert found[0].why.startswith("no source reads it: correct the `path`")
