"""A table takes wider types in one commit: its rows, its state and its readers stay."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.delta.log import read_entry
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from tests.bag_histories import weights_of

RELATION = "bronze.sales"
NARROW = pa.schema(
    [
        ("id", pa.int32()),
        ("amount", pa.decimal128(10, 2)),
        ("rates", pa.list_(pa.field("element", pa.struct([("rate", pa.float32())])))),
    ]
)
WIDE = pa.schema(
    [
        ("id", pa.int64()),
        ("amount", pa.decimal128(14, 4)),
        (
            "rates",
            pa.list_(pa.field("element", pa.struct([("rate", pa.float64()), ("n", pa.int8())]))),
        ),
    ]
)
ROWS = [
    {"id": 1, "amount": Decimal("1.50"), "rates": [{"rate": 0.5}]},
    {"id": 2, "amount": None, "rates": None},
]
TAG = Tag("epoch/bronze.sales/columns", 0)


def written(warehouse: Warehouse) -> int:
    """Make the table, with two files; return its version."""
    warehouse.create(RELATION, NARROW)
    for batch_id, row in enumerate(ROWS):
        change = pa.Table.from_pylist([row], NARROW)
        change = change.append_column("__livemart_old_count", pa.array([0]))
        change = change.append_column("__livemart_new_count", pa.array([1]))
        warehouse.commit(RELATION, change, Tag("epoch/bronze.sales/0", batch_id))
    return warehouse.version(RELATION)


def test_wider_types_keep_rows_identity_and_transactions(warehouse: Warehouse) -> None:
    before = written(warehouse)
    table_id, properties = (
        warehouse.table_id(RELATION),
        DeltaTable(str(warehouse.path(RELATION))).metadata().configuration,
    )

    warehouse.widen(RELATION, WIDE, TAG)

    assert warehouse.version(RELATION) == before + 1
    assert warehouse.arrow_schema(RELATION) == WIDE
    assert sorted(warehouse.read(RELATION).to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "amount": Decimal("1.5000"), "rates": [{"rate": 0.5, "n": None}]},
        {"id": 2, "amount": None, "rates": None},
    ]
    assert warehouse.table_id(RELATION) == table_id
    assert warehouse.is_tagged(RELATION, Tag("epoch/bronze.sales/0", 1))
    assert not warehouse.is_tagged(RELATION, Tag("epoch/bronze.sales/0", 2))
    assert warehouse.row_count(RELATION) == 2
    table = DeltaTable(str(warehouse.path(RELATION)))
    assert table.metadata().configuration == properties
    # As every other Delta reader does.
    assert table.to_pyarrow_table().num_rows == 2


def test_wider_types_are_no_change_of_rows(warehouse: Warehouse) -> None:
    before = written(warehouse)

    warehouse.widen(RELATION, WIDE, TAG)

    after = warehouse.version(RELATION)
    entry = read_entry(warehouse.storage(RELATION), after)
    assert entry is not None and not entry.changes_data
    assert weights_of(warehouse.changes(RELATION, before, after)) == {}
    assert warehouse.changes(RELATION, before - 1, after).to_pylist() == [
        {"id": 2, "amount": None, "rates": None, "__livemart_weight": 1}
    ]


def test_the_versions_before_wider_types_stay_as_they_were(warehouse: Warehouse) -> None:
    before = written(warehouse)

    warehouse.widen(RELATION, WIDE, TAG)

    assert warehouse.arrow_schema(RELATION, before) == NARROW
    assert warehouse.read(RELATION, before).schema == NARROW
    assert sorted(warehouse.read(RELATION, before).column("id").to_pylist()) == [1, 2]


def test_a_table_that_the_small_lane_cannot_write_takes_no_wider_types(
    warehouse: Warehouse,
) -> None:
    written(warehouse)
    table = DeltaTable(str(warehouse.path(RELATION)))
    table.alter.add_constraint({"positive": "id > 0"})

    with pytest.raises(RefreshError, match="TABLE_NOT_WRITABLE"):
        warehouse.widen(RELATION, WIDE, TAG)
