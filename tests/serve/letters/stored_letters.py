"""Dead letters in a warehouse, as hostile as records can be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from livemart.arrow.change_sets import as_added
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.land.letters.dead_letters import LETTERS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = "</pre><script>alert(1)</script>\x1b[2J\u202e\x00&amp;"


def letter(number: int, **fields: Any) -> dict[str, Any]:
    """Return the letter of a minute."""
    return {
        "source": "bronze.orders",
        "origin": f"orders/1.jsonl:{number}",
        "reason": "TYPE_MISMATCH",
        "detail": "amount: found 'x'",
        "record": f'{{"id":{number}}}',
        "record_bytes": len(f'{{"id":{number}}}'),
        "batch_id": number,
        "landed_at": NOON + timedelta(minutes=number),
    } | fields


def store_letters(root: Path, letters: Sequence[dict[str, Any]], batch: int = 0) -> Warehouse:
    """Commit letters of schema bronze to a warehouse."""
    warehouse, relation = Warehouse(root), "bronze._dead_letters"
    warehouse.create(relation, LETTERS)
    table = pa.Table.from_pylist(list(letters), schema=LETTERS)
    warehouse.commit(relation, as_added(table), Tag(f"e/{relation}/0", batch))
    return warehouse
