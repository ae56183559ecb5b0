"""Makes change sets: the rows that one commit adds to a table and takes from it.

Used by landing for rows, remembered deletes and dead letters. The columns that count copies are
those of `bags`.
"""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT


def as_added(rows: pa.Table) -> pa.Table:
    """Return rows as a change set that adds each of them once."""
    return _counted(rows, 0, 1)


def as_removed(rows: pa.Table) -> pa.Table:
    """Return rows as a change set that takes each of them away."""
    return _counted(rows, 1, 0)


def _counted(rows: pa.Table, old: int, new: int) -> pa.Table:
    for name, count in ((OLD_COUNT, old), (NEW_COUNT, new)):
        rows = rows.append_column(name, pa.repeat(pa.scalar(count, pa.int64()), rows.num_rows))
    return rows
