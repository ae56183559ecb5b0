"""Dead letters as a warehouse holds them, for the tests of who finds, marks and reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters.dead_letters import LETTERS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def letter(number: int, **fields: Any) -> dict[str, Any]:
    """Return a letter; it was written so many minutes after noon."""
    record = f'{{"id": {number}}}'
    return {
        "source": "bronze.orders",
        "origin": f"orders/1.jsonl:{number}",
        "reason": "TYPE_MISMATCH",
        "detail": "amount: found 'x'",
        "record": record,
        "record_bytes": len(record),
        "batch_id": number,
        "landed_at": NOON + timedelta(minutes=number),
    } | fields


def table_of(*letters: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(letters), schema=LETTERS)


def store(warehouse: Warehouse, relation: str, *letters: dict[str, Any]) -> None:
    warehouse.create(relation, LETTERS)
    warehouse.commit(relation, as_added(table_of(*letters)), Tag(f"e/{relation}/0", 1))
