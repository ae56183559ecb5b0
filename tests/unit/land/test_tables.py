"""Landed tables are made once, gain columns that are declared later and keep their types."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.delta.warehouse import Warehouse
from livemart.errors import StateError
from livemart.land.tables import create_tables, record_schema
from livemart.project.graph import Column
from livemart.project.landing_columns import LANDING_COLUMNS
from livemart.project.spark_types import parse_type
from tests.deliveries import EVENTS, ORDERS, source
from tests.models import stream_spec

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


@pytest.mark.parametrize("is_removed", [False, True])
def test_another_order_than_that_of_the_remembered_deletes_is_refused(
    tmp_path: Path, is_removed: bool
) -> None:
    warehouse = Warehouse(tmp_path)
    create_tables(warehouse, [ORDERS], "epoch")
    if is_removed:
        shutil.rmtree(warehouse.path(ORDERS.relation))
    changed = replace(ORDERS, stream=stream_spec(ORDERS.stream, envelope="debezium"))
    reordered = replace(changed, stream=stream_spec(changed.stream, sequence_by=("_sequence",)))

    with pytest.raises(StateError, match="keys and sequence have _sequence, by") as caught:
        create_tables(warehouse, [reordered], "epoch")

    assert caught.value.code == "LANDED_COLUMN_CHANGED"


def test_dead_letters_in_other_columns_are_refused(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.create("bronze._dead_letters", pa.schema([("code", pa.string())]))

    with pytest.raises(StateError, match=r"with the columns code: move .*_dead_letters away"):
        create_tables(warehouse, [EVENTS], "epoch")


def test_a_column_declared_in_another_spelling_is_refused(tmp_path: Path) -> None:
    """Beside the one of before it would be a second one, and Spark could read neither."""
    warehouse = Warehouse(tmp_path)
    create_tables(warehouse, [EVENTS], "epoch")
    respelled = replace(EVENTS, columns=(Column("Order_Id", "string"), *EVENTS.columns[1:]))

    with pytest.raises(StateError, match="table calls it order_id") as caught:
        create_tables(warehouse, [respelled], "epoch")

    assert caught.value.code == "LANDED_COLUMN_CHANGED"
    assert "order_id" in warehouse.arrow_schema(EVENTS.relation).names


def test_a_wider_declared_type_widens_the_table_and_what_deletes_remember(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    columns = {
        "sale_id": "int",
        "updated_at": "smallint",
        "amount": "decimal(10,2)",
        "who": "struct<a:int>",
    }
    narrow = source("sales", columns, keys=("sale_id",))
    kinds = ("bigint", "int", "decimal(12,2)", "struct<a:bigint,b:string>")
    wide = replace(
        narrow,
        columns=tuple(
            Column(column.name, kind) for column, kind in zip(narrow.columns, kinds, strict=True)
        ),
    )
    first = create_tables(warehouse, [narrow], "epoch")

    has_changed = [create_tables(warehouse, [wide], "epoch") for _ in range(2)]

    assert (first, has_changed) == (False, [True, False])
    stored = warehouse.arrow_schema("bronze.sales")
    assert stored.types[:4] == [
        pa.int64(),
        pa.int32(),
        pa.decimal128(12, 2),
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
    ]
    assert warehouse.arrow_schema("bronze._deletes_sales").types[:2] == [pa.int64(), pa.int32()]


def test_columns_that_cannot_follow_are_refused_all_at_once_and_nothing_is_changed(
    tmp_path: Path,
) -> None:
    warehouse = Warehouse(tmp_path)
    columns = {"sale_id": "bigint", "amount": "decimal(10,2)", "count": "int"}
    first, second = source("first", columns), source("second", columns)
    create_tables(warehouse, [first, second], "epoch")
    edited = {"sale_id": "int", "amount": "decimal(10,3)", "count": "bigint"}

    with pytest.raises(StateError) as caught:
        create_tables(warehouse, [source("first", edited), source("second", edited)], "epoch")

    table = "models/sources.yml: bronze.{}: column {} is declared as {}, the landed table holds {}"
    assert caught.value.message.splitlines() == [
        line
        for name in ("first", "second")
        for line in (
            table.format(name, "sale_id", "int", "bigint, which is wider: declare bigint"),
            table.format(name, "amount", "decimal(10,3)", "decimal(10,2)"),
        )
    ]
    assert warehouse.version("bronze.first") == 0


def test_a_column_that_is_no_longer_declared_keeps_its_type(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    kept = Column("tips", "array<struct<`a b`:int>>")
    create_tables(warehouse, [replace(EVENTS, columns=(kept, *EVENTS.columns))], "epoch")

    schema = record_schema(warehouse, EVENTS)

    assert schema.names == [*DECLARED, "tips"]
    assert schema.columns[-1][1] == parse_type("array<struct<`a b`:int>>")


def test_columns_that_drift_brought_are_read_as_text_after_the_declared_ones(
    tmp_path: Path,
) -> None:
    warehouse = Warehouse(tmp_path)
    drifted = replace(EVENTS, columns=(Column("tip", "string"), *EVENTS.columns))
    create_tables(warehouse, [drifted], "epoch")

    schema = record_schema(warehouse, EVENTS)

    assert schema.names == [*DECLARED, "tip"]
    assert schema.columns[-1][1].name == "text"
