"""Dead letters: rejected records with reason, origin and content, one table a source schema."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from livemart.engine.records.reader import RECORD, SIZE, verdict
from livemart.engine.records.schema import ORIGIN, TIMESTAMP
from livemart.engine.tables import NEW_COUNT, OLD_COUNT

TABLE = "_dead_letters"
SCHEMA = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("origin", pa.string()),
        pa.field("code", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("record", pa.string()),
        pa.field("record_bytes", pa.int64()),
        pa.field("batch_id", pa.int64()),
        pa.field("landed_at", TIMESTAMP),
    ]
)


def relation_of(schema: str) -> str:
    """Return the dead-letter table of a source schema.

    >>> relation_of("bronze")
    'bronze._dead_letters'
    """
    return f"{schema.lower()}.{TABLE}"


def from_judged(
    rows: pa.Table, position: int, source: str, batch_id: int, landed_at: datetime
) -> pa.Table:
    """Return refused records (judged rows whose code is set for a source) as dead letters."""
    count = rows.num_rows
    return pa.table(
        [
            pa.array([source] * count, pa.string()),
            rows.column(ORIGIN),
            rows.column(verdict("code", position)),
            rows.column(verdict("detail", position)),
            rows.column(RECORD),
            rows.column(SIZE),
            pa.array([batch_id] * count, pa.int64()),
            pa.array([landed_at] * count, TIMESTAMP),
        ],
        schema=SCHEMA,
    )


def of_file(
    source: str, origin: str, code: str, detail: str, batch_id: int, landed_at: datetime
) -> pa.Table:
    """Return one dead letter that stands for a whole file."""
    row = {
        "source": source,
        "origin": origin,
        "code": code,
        "detail": detail,
        "record": None,
        "record_bytes": None,
        "batch_id": batch_id,
        "landed_at": landed_at,
    }
    return pa.Table.from_pylist([row], schema=SCHEMA)


def as_added(rows: pa.Table) -> pa.Table:
    """Return rows as a change set that adds each of them once."""
    zeros = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
    ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
    return rows.append_column(OLD_COUNT, zeros).append_column(NEW_COUNT, ones)
