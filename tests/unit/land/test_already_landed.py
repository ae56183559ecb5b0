"""Records that an append-only table already holds are found once by `_origin`, and cached."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from livemart.errors import StateError
from livemart.land.already_landed import LANDED_FILE, note_landed_files
from tests.deliveries import Shop, lines, order

EVENTS, ORDERS = "bronze.order_events", "bronze.orders"
FIRST = {EVENTS: {"orders/1.jsonl", "orders/at 12:30.jsonl"}}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(None, tmp_path)
    shop.checkpoint.mkdir(parents=True)
    return shop


def land_two(shop: Shop) -> None:
    first = shop.deliver("orders/1.jsonl", lines([order("a"), order("b")]))
    second = shop.deliver("orders/at 12:30.jsonl", lines([order("c")]))
    shop.land(0, first, second)


def note(
    shop: Shop,
    *added: str,
    landing: Path | None = None,
    append_only: tuple[str, ...] = (EVENTS,),
    planned: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Mapping[str, frozenset[str]]:
    return note_landed_files(
        shop.checkpoint,
        landing or shop.folder,
        shop.warehouse,
        append_only=append_only,
        added=added,
        planned=planned,
    )


def test_a_source_that_is_placed_anew_passes_over_what_its_table_holds(shop: Shop) -> None:
    land_two(shop)

    assert note(shop, EVENTS, ORDERS) == FIRST
    shop.land(1, shop.deliver("orders/2.jsonl", lines([order("d")])))
    # Not looked up again: files of this stream are known to Spark.
    assert note(shop) == FIRST


def test_a_source_without_rows_reads_everything(shop: Shop) -> None:
    assert note(shop, EVENTS) == {}


def test_another_landing_folder_brings_all_files_again(shop: Shop, tmp_path: Path) -> None:
    note(shop, EVENTS)
    land_two(shop)

    assert note(shop) == {}
    assert note(shop, landing=tmp_path / "moved") == FIRST


def test_a_source_that_has_keys_now_absorbs_its_repeats(shop: Shop) -> None:
    land_two(shop)
    note(shop, EVENTS)

    assert note(shop, EVENTS, append_only=()) == {}


def test_what_a_replay_is_about_to_land_is_passed_over_as_well(shop: Shop) -> None:
    land_two(shop)

    found = note(shop, EVENTS, planned={EVENTS: ("orders/3.jsonl",)})

    assert found == {EVENTS: FIRST[EVENTS] | {"orders/3.jsonl"}}


def test_a_batch_that_is_committed_is_not_replayed(shop: Shop) -> None:
    land_two(shop)
    commits = shop.checkpoint / "commits"

    assert shop.landing._planned(shop.checkpoint)[EVENTS] == tuple(sorted(FIRST[EVENTS]))
    commits.mkdir()
    (commits / "0").touch()
    assert shop.landing._planned(shop.checkpoint) == {}


def test_a_torn_list_is_an_error_with_advice(shop: Shop) -> None:
    (shop.checkpoint / LANDED_FILE).write_text('{"landing": ')

    with pytest.raises(StateError, match="CHECKPOINT_TORN") as caught:
        note(shop, EVENTS)

    assert LANDED_FILE in caught.value.message
