"""A landing folder in a bucket: by name, by ETag, and never outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.errors import SourceError
from livemart.land.hand_over import hand_over, hand_over_below, hand_over_copy
from livemart.land.landing import Landing
from livemart.land.sources.files.bucket import LandingBucket, on_this_machine, open_landing
from livemart.land.sources.files.folder import LandingFolder
from livemart.land.sources.files.problems import disappeared
from livemart.storage.location import Location
from livemart.storage.opening import open_storage
from livemart.storage.storage import Missing
from tests.deliveries import NOON, Shop, lines, order


def test_a_place_says_which_folder_it_is(memory_place: Location, tmp_path: Path) -> None:
    assert isinstance(open_landing(memory_place), LandingBucket)
    assert isinstance(open_landing(Location.of(tmp_path)), LandingFolder)


def test_a_file_is_known_by_its_tag_and_found_by_the_pattern(memory_place: Location) -> None:
    storage, folder = open_storage(memory_place), open_landing(memory_place)
    for name in ("orders/a b%20#?.jsonl", "orders/_draft.jsonl", "orders/day=1/x", "menu/a.csv"):
        storage.put(name, b"{}")
    storage.put("orders-of-others/1.jsonl", b"{}")
    name = "orders/a b%20#?.jsonl"
    before = folder.identify(name)
    assert before is not None

    assert [it.place for it in folder.found("orders/*.jsonl")] == [memory_place / name]
    assert [it.place for it in folder.found("*/*.csv")] == [memory_place / "menu/a.csv"]
    assert [*folder.names()] == [
        *("menu/a.csv", "orders-of-others/1.jsonl", name, "orders/day=1/x"),
    ]
    assert folder.touched([before]) == []
    storage.put(name, b"[]")
    after = folder.identify(name)
    assert after is not None and not after.is_same_content(before)
    assert (folder.touched([before]), folder.touched([after])) == ([before], [])
    storage.delete([name])
    assert (folder.identify(name), folder.touched([before])) == (None, [])


def test_the_tag_of_a_large_file_is_of_all_of_it(memory_place: Location) -> None:
    storage, folder = open_storage(memory_place), open_landing(memory_place)
    storage.put("a", bytes(65 << 20))

    found = folder.identify("a")

    assert found is not None and not found.is_sampled


def test_nothing_outside_the_folder_is_located(memory_place: Location) -> None:
    folder = open_landing(memory_place)

    assert [folder.locate(name) for name in ("../a", "/a", "a/../../b", "")] == [None] * 4
    assert folder.relative(memory_place / "a/b") == "a/b"
    for other in (Location.parse(f"{memory_place}-of-others/a"), Path("/landing/a")):
        with pytest.raises(SourceError, match="LANDING_MOVED"):
            folder.relative(other)


def test_a_missing_file_is_named(memory_place: Location) -> None:
    folder = open_landing(memory_place)
    with pytest.raises(Missing) as caught, on_this_machine(memory_place / "orders/1"):
        pass

    assert folder.name_in(caught.value) == "orders/1"
    assert folder.name_in(FileNotFoundError(2, "no such file", "/elsewhere")) is None
    with pytest.raises(Missing):
        folder.size("orders/1")
    assert disappeared(folder, "orders/1").code == "SOURCE_FILE_CHANGED"


def test_a_name_is_handed_over_once(memory_place: Location, tmp_path: Path) -> None:
    (tmp_path / "copied").write_bytes(b"copied")
    hand_over(memory_place / "orders", "1", b"first")
    hand_over_below(memory_place, "2", b"second")
    assert hand_over_copy(memory_place, "orders/eu/3", tmp_path / "copied")
    assert not hand_over_copy(memory_place, "orders/1", tmp_path / "copied")

    storage = open_storage(memory_place)
    assert {name: storage.get(name) for name in storage.names()} == {
        **{"2": b"second", "orders/1": b"first", "orders/eu/3": b"copied"},
    }
    for name in ("1", "_1", ".1", "a/1"):
        with pytest.raises((FileExistsError, ValueError)):
            hand_over(memory_place / "orders", name, b"again")
    assert storage.get("orders/1") == b"first"


def test_a_batch_lands_once_and_what_was_changed_or_emptied_has_a_letter(
    memory_place: Location, tmp_path: Path
) -> None:
    shop, storage = Shop(None, tmp_path), open_storage(memory_place)
    storage.put("orders/1.jsonl", "\n".join(lines([order("a"), order("b")])).encode())
    storage.put("orders/2.jsonl", b"{broken")

    def landing() -> Landing:
        return Landing(None, shop.warehouse, memory_place, shop.sources, now=lambda: NOON)  # type: ignore[arg-type]

    files = {"bronze.orders": [memory_place / "orders/1.jsonl", memory_place / "orders/2.jsonl"]}
    first, again = landing().land_files(0, files), landing().land_files(0, files)
    assert first == again
    assert shop.rows("orders", "order_id", "_origin") == [
        ("a", "orders/1.jsonl:1"),
        ("b", "orders/1.jsonl:2"),
    ]
    storage.put("orders/1.jsonl", b"other")
    storage.put("orders/3.jsonl", b"")
    landing().land_files(1, {"bronze.orders": [memory_place / "orders/3.jsonl"]})

    letters = shop.rows("_dead_letters", "origin", "reason")
    assert letters == [
        ("orders/1.jsonl", "SOURCE_FILE_CHANGED"),
        ("orders/2.jsonl:1", "MALFORMED_RECORD"),
    ]


def test_a_file_that_is_replaced_before_it_is_read_stops_its_batch(
    memory_place: Location, tmp_path: Path
) -> None:
    storage, folder = open_storage(memory_place), open_landing(memory_place)
    storage.put("orders/1.jsonl", b"{}")
    seen = folder.identify("orders/1.jsonl")
    assert seen is not None
    storage.put("orders/1.jsonl", b"[]")

    with (
        pytest.raises(SourceError, match=r"SOURCE_FILE_CHANGED: s3://.*/orders/1\.jsonl: was"),
        on_this_machine(memory_place / "orders/1.jsonl", seen.digest),
    ):
        pass


def test_a_batch_whose_file_has_gone_stops(memory_place: Location, tmp_path: Path) -> None:
    shop = Shop(None, tmp_path)
    landing = Landing(None, shop.warehouse, memory_place, shop.sources)  # type: ignore[arg-type]

    with pytest.raises(SourceError, match=r"SOURCE_FILE_CHANGED: orders/1\.jsonl: was delivered"):
        landing.land_files(0, {"bronze.orders": [memory_place / "orders/1.jsonl"]})
