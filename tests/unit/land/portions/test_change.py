"""A delivery that is decided in portions lands the rows, deletes, letters and counts of one."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from livemart.delta.warehouse import Warehouse
from livemart.errors import SourceError
from livemart.land import micro_batch
from livemart.land.letters import dead_letters
from livemart.land.micro_batch import Limit
from livemart.land.portions import change
from tests.change_records import COLUMNS as CHANGED
from tests.change_records import Table, changes, framed
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

IN_PORTIONS = Limit(-1, most_cores=float("inf"))
DRIFTING = source("drifting", keys=("order_id",), schema_drift="evolve", event_time_is_fixed=True)
STRICT = source("strict", path="strict/*.jsonl", schema_drift="fail")


@pytest.fixture(autouse=True)
def _small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch, "_PORTION_BYTES", 60_000)
    monkeypatch.setattr("livemart.land.records.parse._RUN_RECORDS", 100)
    monkeypatch.setattr(change, "RANGE_ROWS", 300)


def _shop(root: Path, *sources: Any, limit: Limit = IN_PORTIONS, spark: Any = None) -> Shop:
    root.mkdir()
    return Shop(spark, root, sources, limit=limit)


def test_portions_and_whole_batches_land_the_same(tmp_path: Path) -> None:
    sources = (ORDERS, EVENTS, DRIFTING, changes("changed"))
    whole = _shop(tmp_path / "whole", *sources, limit=Limit())
    portions = _shop(tmp_path / "portions", *sources)
    for batch_id in range(2):
        names = [f"{folder}/{batch_id}.jsonl" for folder in ("orders", "cdc")]
        table = Table(random.Random(batch_id), "postgresql")
        table.run(300)
        content = [
            disordered_orders(random.Random(batch_id)),
            ["null", *(framed(it, 0) for it in table.log)],
        ]
        landed = [
            shop.land(batch_id, *map(shop.deliver, names, content)) for shop in (whole, portions)
        ]
        again = portions.land(batch_id, *(portions.folder / name for name in names))

        assert landed[1].counts == landed[0].counts
        assert landed[1].newest_event_time == landed[0].newest_event_time
        assert landed[1].drift == landed[0].drift != {}
        assert again == landed[1]
        for name in ("orders", "drifting", "changed"):
            assert _change(portions, name) == _change(whole, name)

    for name, columns in {
        "orders": [*COLUMNS, "_landed_at", "_batch_id", "_origin", "_rescued_data"],
        "order_events": [*COLUMNS, "_origin"],
        "drifting": [*COLUMNS, "tip", "_origin", "_rescued_data"],
        "changed": [*CHANGED, "_sequence", "_kept_values", "_landed_at", "_batch_id", "_origin"],
        "_deletes_orders": ["order_id", "updated_at", "_batch_id", "_origin"],
        "_dead_letters": dead_letters.LETTERS.names,
    }.items():
        assert portions.rows(name, *columns) == whole.rows(name, *columns), name
    assert not (portions.warehouse.root / "_livemart" / "staging").exists()


def _change(shop: Shop, name: str) -> list[str]:
    """Return the change that a reader finds in the last commit, without the memory of this one."""
    relation = f"bronze.{name}"
    version = shop.warehouse.version(relation)
    fresh = type(shop.warehouse)(shop.warehouse.root)
    rows: pa.Table = fresh.changes(relation, version - 1, version)
    return sorted(str(row) for row in rows.to_pylist())


def test_files_of_a_first_load_are_ranged_by_key(tmp_path: Path) -> None:
    shop = _shop(tmp_path / "shop", ORDERS)
    numbers = random.Random(1).sample(range(10_000, 90_000), 1_000)

    shop.land(0, shop.deliver("orders/0.jsonl", lines(order(f"o{n}") for n in numbers)))

    assert_ranged_by_key(shop, 3)


def test_a_batch_that_ends_early_leaves_no_file_behind(tmp_path: Path) -> None:
    shop = _shop(tmp_path / "shop", STRICT)
    path = shop.deliver("strict/1.jsonl", lines([order("a"), order("b", tip=1)]))

    with pytest.raises(SourceError, match="SCHEMA_DRIFT"):
        shop.land(0, path)

    assert list(shop.warehouse.path("bronze.strict").glob("*.parquet")) == []
    shop.sources = [source("strict", path="strict/*.jsonl")]
    shop.restart()
    assert shop.land(0, path).counts["bronze.strict"].landed == 2


def test_files_of_a_commit_that_fails_late_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = _shop(tmp_path / "shop", ORDERS)
    path = shop.deliver("orders/0.jsonl", lines(order(f"o{n}") for n in range(5)))

    with monkeypatch.context() as patched, pytest.raises(OSError, match="no disk"):
        patched.setattr(Warehouse, "_committed", Mock(side_effect=OSError("no disk")))
        shop.land(0, path)
    after = shop.land(0, path)

    assert len(shop.rows("orders", "order_id")) == after.counts["bronze.orders"].landed == 5


def test_more_replaced_rows_than_memory_should_hold_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    shop = _shop(tmp_path / "shop", ORDERS, spark=spark)
    shop.land(0, shop.deliver("orders/0.jsonl", lines(order(f"o{n}") for n in range(50))))
    files = set(shop.warehouse.path("bronze.orders").glob("*.parquet"))
    monkeypatch.setattr(change, "MOST_REPLACED", 40)

    def stage(*_: Any) -> None:
        raise RuntimeError("left to Spark")

    monkeypatch.setattr(micro_batch, "stage", stage)
    newer = lines(order(f"o{n}", 1, status="paid") for n in range(50))
    with pytest.raises(RuntimeError, match="left to Spark"):
        shop.land(1, shop.deliver("orders/1.jsonl", newer))

    assert set(shop.warehouse.path("bronze.orders").glob("*.parquet")) == files
