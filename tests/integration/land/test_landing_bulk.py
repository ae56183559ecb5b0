"""Bulk landing by Spark gives the rows, deletes, dead letters and counts of small batches."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from livemart.errors import SourceError
from livemart.land.letters import dead_letters
from livemart.land.micro_batch import Limit, MicroBatch
from tests.change_records import COLUMNS as CHANGED
from tests.change_records import FRAMES, UNAVAILABLE, Table, change, changes, framed, row
from tests.deliveries import (
    COLUMNS,
    EVENTS,
    ORDERS,
    Shop,
    assert_ranged_by_key,
    disordered_orders,
    lines,
    order,
    source,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIFTING = source(
    "drifting", keys=("order_id",), schema_drift="evolve", event_time_is_fixed=True, horizon=None
)
STRICT = source("strict", path="strict/*.jsonl", schema_drift="fail")


def test_bulk_and_small_batches_land_the_same(spark: SparkSession, tmp_path: Path) -> None:
    evolving = changes("evolving", schema_drift="evolve")
    sources = [ORDERS, EVENTS, DRIFTING, changes("changed"), evolving]
    small, bulk = (
        _shop(spark, tmp_path / lane, sources, Limit.of(lane)) for lane in ("small", "large")
    )
    for batch_id in range(2):
        names = [f"{folder}/{batch_id}.jsonl" for folder in ("orders", "cdc")]
        content = [disordered_orders(random.Random(batch_id)), _changes(batch_id)]
        landed = [shop.land(batch_id, *map(shop.deliver, names, content)) for shop in (small, bulk)]
        again = bulk.land(batch_id, *(bulk.folder / name for name in names))

        assert landed[1].counts == landed[0].counts
        assert landed[1].newest_event_time == landed[0].newest_event_time
        assert landed[1].drift == landed[0].drift != {}
        assert again == landed[1]

    for name, columns in {
        "orders": [*COLUMNS, "_landed_at", "_batch_id", "_origin", "_rescued_data"],
        "order_events": [*COLUMNS, "_origin"],
        "drifting": [*COLUMNS, "tip", "_origin", "_rescued_data"],
        "_deletes_orders": ["order_id", "updated_at", "_batch_id", "_origin"],
        "changed": [*CHANGED, "_sequence", "_kept_values", "_landed_at", "_batch_id", "_origin"],
        "evolving": [*CHANGED, "tip", "_sequence", "_kept_values", "_batch_id", "_origin"],
        "_deletes_changed": ["id", "_sequence", "_batch_id", "_origin"],
        "_dead_letters": dead_letters.LETTERS.names,
    }.items():
        assert bulk.rows(name, *columns) == small.rows(name, *columns), name
    assert not (bulk.warehouse.root / "_livemart" / "staging").exists()


def test_a_stop_for_drift_leaves_dead_letters_until_the_batch_lands(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = _shop(spark, tmp_path / "shop", [STRICT], Limit.of("large"))
    records = [order("a"), order("b", tip=1), order("c", tip=2, to="me"), order("d", status={})]
    path = shop.deliver("strict/1.jsonl", lines(records))

    for _ in range(2):
        with pytest.raises(SourceError, match=r"SCHEMA_DRIFT: bronze.strict: strict/1.jsonl:"):
            shop.land(0, path)
    stopped = shop.rows("_dead_letters", "reason", "origin", "detail")
    shop.sources = [source("strict", path="strict/*.jsonl")]
    shop.restart()
    counts = shop.land(0, path).counts["bronze.strict"]

    assert stopped == [
        ("SCHEMA_DRIFT", "strict/1.jsonl:2", "found fields tip"),
        ("SCHEMA_DRIFT", "strict/1.jsonl:3", "found fields tip, to"),
    ]
    assert (counts.produced, counts.landed, counts.dead_letters) == (4, 3, 1)
    assert shop.rows("_dead_letters", "reason", "origin") == [("TYPE_MISMATCH", "strict/1.jsonl:4")]


def test_a_bulk_load_that_was_begun_with_narrower_types_is_replayed_with_wider_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    spec: dict[str, Any] = {"keys": ("id",), "path": "sales/*"}
    narrow = source("sales", {"id": "int", "updated_at": "int", "n": "decimal(4,2)"}, **spec)
    wide = source("sales", {"id": "bigint", "updated_at": "bigint", "n": "decimal(9,3)"}, **spec)
    shop = _shop(spark, tmp_path / "shop", [narrow], Limit.of("large"))
    old: dict[str, Any] = {"id": 1, "updated_at": 1, "n": "1.50"}
    shop.land(0, shop.deliver("sales/0", lines([old, {**old, "id": 3}])))
    new: list[dict[str, Any]] = [
        {"id": 1, "updated_at": 2, "n": "9.125"},
        {"id": 2**40, "updated_at": 2**40},
    ]
    path = shop.deliver("sales/1", lines(new))
    with pytest.MonkeyPatch.context() as patched, pytest.raises(OSError, match="no disk"):
        patched.setattr(MicroBatch, "land", Mock(side_effect=OSError("no disk")))
        shop.land(1, path)

    shop.sources = [wide]
    shop.restart()
    shop.land(1, path)

    assert shop.rows("sales", "id", "updated_at", "n") == [
        (1, 2, Decimal("9.125")),
        (2**40, 2**40, None),
        (3, 1, Decimal("1.500")),
    ]


def test_files_of_a_first_load_are_ranged_by_key(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.land.bulk.key_ranges.ROWS_PER_RANGE", 100)
    shop = _shop(spark, tmp_path / "shop", [ORDERS], Limit.of("large"))
    numbers = random.Random(1).sample(range(10_000, 90_000), 1_000)

    shop.land(0, shop.deliver("orders/0.jsonl", lines(order(f"o{n}") for n in numbers)))

    assert_ranged_by_key(shop, 5)


def _shop(spark: SparkSession, root: Path, sources: list[Any], limit: Limit) -> Shop:
    root.mkdir()
    return Shop(spark, root, sources, limit=limit)


def _changes(half: int) -> list[str]:
    """Half of a history in any order: the first half has values that only the second can give."""
    chance = random.Random(7)
    table = Table(chance, "postgresql")
    table.run(200)
    # A field that one of the sources takes up as a column, where it keeps its value.
    brings = [
        change("u", 9_030, row(900, tip=UNAVAILABLE)),
        change("c", 9_010, row(900, tip="1.50")),
        change("u", 9_020, row(900, tip="2")),
        change("u", 9_040, row(901, tip=UNAVAILABLE)),
        change("u", 9_030, row(901, tip="3")),
    ]
    records = [*chance.sample(table.log, len(table.log)), change("t", 1), *brings]
    taken = [framed(it, place % FRAMES) for place, it in enumerate(records)][half::2]
    return ["null", *taken]
