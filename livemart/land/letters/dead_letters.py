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
    return _letters(source, rows.column(ORIGIN), reason, detail, rows.select([RECORD, SIZE]), stamp)


def of_file(source: str, name: str, reason: str, detail: str, stamp: Stamp) -> pa.Table:
    """Return one dead letter that stands for a whole file."""
    record = pa.table([pa.array([None], pa.string()), pa.array([None], pa.int64())], [RECORD, SIZE])
    return _letters(source, pa.array([name], pa.string()), reason, detail, record, stamp)


def _letters(
    source: str,
    origin: pa.Array | pa.ChunkedArray,
    reason: str | pa.ChunkedArray,
    detail: str | pa.ChunkedArray,
    record: pa.Table,
    stamp: Stamp,
) -> pa.Table:
    values = [source, origin, reason, detail, *record.columns, stamp.batch_id, stamp.landed_at]
    columns = [
        value
        if isinstance(value, pa.Array | pa.ChunkedArray)
        else pa.array([value] * len(origin), field.type)
        for value, field in zip(values, LETTERS, strict=True)
    ]
    return pa.table(columns, schema=LETTERS)
