"""Open tables notice what becomes of them."""

from __future__ import annotations

import shutil

import pyarrow as pa

from livemart.delta.warehouse import Warehouse
from tests.unit.delta.small_tables import RELATION, SMALL, tag


def test_a_table_made_anew_is_seen_as_another(warehouse: Warehouse) -> None:
    warehouse.overwrite(RELATION, pa.table({"id": [1], "name": ["a"]}, schema=SMALL), tag(1))
    first = warehouse.table_id(RELATION)
    shutil.rmtree(warehouse.path(RELATION))
    Warehouse(warehouse.root).overwrite(
        RELATION, pa.table({"id": [2], "name": ["b"]}, schema=SMALL), tag(1)
    )

    assert warehouse.table_id(RELATION) != first
    assert warehouse.read(RELATION, 1).to_pylist() == [{"id": 2, "name": "b"}]
