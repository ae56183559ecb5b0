"""Landed tables are made once, gain columns that are declared later and keep their types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.errors import StateError
from livemart.land.tables import create_tables, record_schema
from livemart.project.graph import Column
from livemart.project.landing_columns import LANDING_COLUMNS
from tests.deliveries import EVENTS, ORDERS

DECLARED = [column.name for column in EVENTS.columns]


def test_only_a_source_with_keys_remembers_its_deletes(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)

    create_tables(warehouse, [ORDERS, EVENTS], "epoch")

    assert warehouse.exists("bronze._deletes_orders")
    assert not warehouse.exists("bronze._deletes_order_events")
    assert warehouse.exists("bronze._dead_letters")


def test_a_second_start_adds_only_what_was_declared_since(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    create_tables(warehouse, [EVENTS], "epoch")
    create_tables(warehouse, [EVENTS], "epoch")
    unchanged = warehouse.version(EVENTS.relation)
    wider = replace(EVENTS, columns=(*EVENTS.columns, Column("tip", "int")))

    create_tables(warehouse, [wider], "epoch")

    assert unchanged == 0
    assert warehouse.arrow_schema(EVENTS.relation).names == [*DECLARED, *LANDING_COLUMNS, "tip"]


def test_a_column_declared_with_another_type_is_refused(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    create_tables(warehouse, [EVENTS], "epoch")
    retyped = replace(EVENTS, columns=(Column("order_id", "int"), *EVENTS.columns[1:]))

    with pytest.raises(StateError, match="column order_id is declared as int, ") as caught:
        create_tables(warehouse, [retyped], "epoch")

    assert caught.value.code == "LANDED_COLUMN_CHANGED"


def test_a_column_declared_in_another_spelling_is_refused(tmp_path: Path) -> None:
    """Beside the one of before it would be a second one, and Spark could read neither."""
    warehouse = Warehouse(tmp_path)
    create_tables(warehouse, [EVENTS], "epoch")
    respelled = replace(EVENTS, columns=(Column("Order_Id", "string"), *EVENTS.columns[1:]))

    with pytest.raises(StateError, match="table calls it order_id") as caught:
        create_tables(warehouse, [respelled], "epoch")

    assert caught.value.code == "LANDED_COLUMN_CHANGED"
    assert "order_id" in warehouse.arrow_schema(EVENTS.relation).names


def test_columns_that_drift_brought_are_read_as_text_after_the_declared_ones(
    tmp_path: Path,
) -> None:
    warehouse = Warehouse(tmp_path)
    drifted = replace(EVENTS, columns=(Column("tip", "string"), *EVENTS.columns))
    create_tables(warehouse, [drifted], "epoch")

    schema = record_schema(warehouse, EVENTS)

    assert schema.names == [*DECLARED, "tip"]
    assert schema.columns[-1][1].name == "text"
