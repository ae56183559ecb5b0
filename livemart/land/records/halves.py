"""Halves a run of records until the fast reader gives the exact reader's rows.

Used by the readers of JSON and CSV. What the fast reader refuses is halved until the records that
need the exact one are few: so speed is the fast reader's and the meaning is the exact reader's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from livemart.land.records.judge import Chunk, Group, joined

_FEW_RECORDS = 24

Records = Sequence[tuple[int, bytes]]


def read_in_halves(
    group: Group,
    records: Records,
    fast: Callable[[Records], pa.Table | None] | None,
    exactly: Callable[[Records], Chunk],
) -> Chunk:
    """Return the rows of some records and what could not become one.

    Args:
        group: columns of the records.
        records: number and content of each.
        fast: returns the rows of a run, None if the exact reader could see them otherwise; None if
            no run can be read fast.
        exactly: reads the others.
    """
    pieces: list[Chunk] = []
    waiting = [records]
    while waiting:
        run = waiting.pop()
        rows = fast(run) if fast is not None and len(run) > 1 else None
        if rows is not None:
            pieces.append(Chunk(rows, [number for number, _ in run], [raw for _, raw in run], []))
        elif fast is None or len(run) <= _FEW_RECORDS:
            pieces.append(exactly(run))
        else:
            middle = len(run) // 2
            waiting += [run[middle:], run[:middle]]
    return joined(group, pieces)
