"""Deletes are remembered by key and sequence, each key once, beside the landed table."""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.land.upsert.deletes import deletes_relation, deletes_schema, remember
from tests.deliveries import source

ORDERS = source("orders", {"id": "string", "updated_at": "timestamp", "n": "int"}, keys=("id",))
LANDED = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("updated_at", pa.timestamp("us", tz="UTC")),
        pa.field("n", pa.int32()),
    ]
)


def test_a_remembered_delete_has_keys_and_sequence_and_says_where_it_came_from() -> None:
    schema = deletes_schema(ORDERS.row_rules, LANDED)

    assert deletes_relation(ORDERS) == "bronze._deletes_orders"
    assert schema.names == ["id", "updated_at", "_landed_at", "_batch_id", "_origin"]
    assert schema.field("updated_at") == LANDED.field("updated_at")


def test_a_key_that_is_deleted_once_more_is_remembered_once() -> None:
    deleting = pa.table({"id": ["a", "b"], "n": [1, 2], "batch": [2, 2]})
    forgotten = pa.table({"id": ["a"], "batch": [1]})

    change = remember(deleting, forgotten)

    assert change.column_names == ["id", "batch", OLD_COUNT, NEW_COUNT]
    assert [tuple(row.values()) for row in change.to_pylist()] == [
        ("a", 1, 1, 0),
        ("a", 2, 0, 1),
        ("b", 2, 0, 1),
    ]
