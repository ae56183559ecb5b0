"""Splits a run of records until the fast reader gives the exact reader's rows.

Used by the readers of JSON and CSV. A run that the fast reader refuses is tried again in pieces,
and those that it refuses, too, are read exactly: so the meaning is always the exact reader's.
Pieces are long: read exactly, records take five times as long, but halves of halves took longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from livemart.land.records.columns import UnlikeError
from livemart.land.records.judge import MAX_RECORD_BYTES, Chunk, Group, joined, unrescued

_PIECE_RECORDS = 1_024

Records = Sequence[tuple[int, bytes]]
ReadColumns = Callable[[Sequence[bytes], bytes], Sequence[pa.Array]]


def read_in_pieces(
    group: Group,
    records: Records,
    fast: ReadColumns | None,
    exactly: Callable[[Records], Chunk],
) -> Chunk:
    """Return the rows of some records, and the records that could not become one.

    Args:
        group: columns of the records.
        records: number and content of each.
        fast: returns the declared columns of a run of records, which it is given one by one and
            joined by line feeds. None if no run can be read fast. It raises UnlikeError or
            pa.ArrowException if the exact reader could see the records otherwise.
        exactly: reads the others.
    """
    read: list[Chunk] = []
    waiting = [records]
    while waiting:
        run = waiting.pop()
        contents = [raw for _, raw in run]
        rows = _fast_rows(group, contents, fast) if fast is not None and len(run) > 1 else None
        if rows is not None:
            numbers = [number for number, _ in run]
            read.append(Chunk(rows, numbers, contents.__getitem__, []))
        elif fast is None or len(run) <= _PIECE_RECORDS:
            read.append(exactly(run))
        else:
            starts = range(0, len(run), _PIECE_RECORDS)
            waiting += [run[start : start + _PIECE_RECORDS] for start in reversed(starts)]
    return joined(group, read)


def _fast_rows(group: Group, contents: Sequence[bytes], fast: ReadColumns) -> pa.Table | None:
    """Return the rows of a run of records, None if the exact reader could see them otherwise."""
    data = b"\n".join(contents)
    if max(map(len, contents)) > MAX_RECORD_BYTES or b"\0" in data:
        return None
    try:
        data.decode("utf-8")
        return unrescued(group, fast(contents, data), len(contents))
    except (pa.ArrowException, UnlikeError, UnicodeDecodeError):
        return None
