"""A stop for drift writes letters with the reason, and removes them when the batch lands."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag, Tags
from livemart.delta.warehouse import Warehouse
from livemart.errors import SourceError
from livemart.land.letters.dead_letters import LETTERS
from livemart.land.letters.drift_stop import DriftStop
from livemart.land.letters.held_letters import Letters
from tests.deliveries import source
from tests.unit.land.letters.stored_letters import letter, table_of

TABLE = "bronze._dead_letters"
ORDERS = source("orders")
DRIFTED = letter(7, reason="SCHEMA_DRIFT", detail="field tip is not declared")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(tmp_path)
    warehouse.create(TABLE, LETTERS)
    return warehouse


def reasons(warehouse: Warehouse) -> list[str]:
    return sorted(warehouse.read(TABLE).column("reason").to_pylist())


def test_a_batch_without_drift_goes_on(warehouse: Warehouse) -> None:
    DriftStop(warehouse, Tags("e", 7)).check(ORDERS, Letters(table_of(letter(7))))

    assert reasons(warehouse) == []


def test_a_stop_leaves_the_letters_for_drift_once_and_names_a_record(warehouse: Warehouse) -> None:
    for _ in range(2):
        with pytest.raises(SourceError) as caught:
            DriftStop(warehouse, Tags("e", 7)).check(ORDERS, Letters(table_of(letter(7), DRIFTED)))

    assert caught.value.code == "SCHEMA_DRIFT"
    assert "bronze.orders: orders/1.jsonl:7: field tip is not declared" in str(caught.value)
    # The others come with the batch, when it lands.
    assert reasons(warehouse) == ["SCHEMA_DRIFT"]


def test_letters_of_this_stop_alone_are_taken_back(warehouse: Warehouse) -> None:
    earlier = letter(6, reason="SCHEMA_DRIFT")
    other = letter(7, reason="SCHEMA_DRIFT", source="bronze.order_events")
    warehouse.commit(TABLE, as_added(table_of(earlier, other, letter(7))), Tag("other", 1))
    stop = DriftStop(warehouse, Tags("e", 7))
    stop.withdraw([ORDERS])
    assert len(reasons(warehouse)) == 3
    with pytest.raises(SourceError):
        stop.check(ORDERS, Letters(table_of(DRIFTED)))

    for _ in range(2):
        stop.withdraw([ORDERS])

    rows = warehouse.read(TABLE).to_pylist()
    assert sorted((row["source"], row["reason"], row["batch_id"]) for row in rows) == [
        ("bronze.order_events", "SCHEMA_DRIFT", 7),
        ("bronze.orders", "SCHEMA_DRIFT", 6),
        ("bronze.orders", "TYPE_MISMATCH", 7),
    ]
