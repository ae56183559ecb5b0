"""Makes dead letters: rejected records with reason, origin and content.

Used by both lanes of landing, and for whole files. One table holds the letters of all sources of a
schema, in the columns of `LETTERS`.
"""

from __future__ import annotations

import pyarrow as pa

from livemart.land.records.judge import RECORD, SIZE, verdict
from livemart.land.records.schema import TIMESTAMP, Stamp
from livemart.project.landing_columns import ORIGIN

TABLE = "_dead_letters"
LETTERS = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("origin", pa.string()),
        pa.field("reason", pa.string()),
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


def from_judged(rows: pa.Table, position: int, source: str, stamp: Stamp) -> pa.Table:
    """Return refused records (judged rows whose code is set for a source) as dead letters."""
    return of_records(
        rows,
        source,
        rows.column(verdict("code", position)),
        rows.column(verdict("detail", position)),
        stamp,
    )


def of_records(
    rows: pa.Table,
    source: str,
    reason: str | pa.ChunkedArray,
    detail: str | pa.ChunkedArray,
    stamp: Stamp,
) -> pa.Table:
    """Return refused records, with `_origin` and as they arrived, as dead letters of a source.

    Reason and detail are of all or of each.
    """
    origin, record, size = (rows.column(name) for name in (ORIGIN, RECORD, SIZE))
    values = [source, origin, reason, detail, record, size, stamp.batch_id, stamp.landed_at]
    columns = [
        value
        if isinstance(value, pa.ChunkedArray)
        else pa.array([value] * rows.num_rows, field.type)
        for value, field in zip(values, LETTERS, strict=True)
    ]
    return pa.table(columns, schema=LETTERS)


def of_file(source: str, name: str, reason: str, detail: str, stamp: Stamp) -> pa.Table:
    """Return one dead letter for a whole file."""
    rows = pa.table([pa.array([it]) for it in (name, None, None)], [ORIGIN, RECORD, SIZE])
    return of_records(rows, source, reason, detail, stamp)
