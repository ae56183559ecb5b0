"""Adds a table's stamps to the rows of a change set: columns that say which run wrote a row.

Used by refresh, which computes a change without them: no row changes because its stamp would be
another one now.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, difference, first_copies, repeated


def with_stamps(change: pa.Table, stored: pa.Table, stamps: pa.Table) -> pa.Table | None:
    """Return a change set with all columns of its table.

    Rows that come have the stamps of this run; rows that go have those that they were written with,
    some copies of them where several rows differ in nothing else.

    Args:
        change: the columns of the table but the stamps, plus `OLD_COUNT` and `NEW_COUNT`.
        stored: rows of the table, all columns; at least all copies of every row in `change`.
        stamps: one row, the stamps of this run.

    Returns:
        The columns of `stored` plus `OLD_COUNT` and `NEW_COUNT`; None if a row that goes is not
        stored.
    """
    names = [name for name in stored.column_names if name not in stamps.column_names]
    rows, added = change.select(names), pc.subtract(change[NEW_COUNT], change[OLD_COUNT])
    new_rows, removed_rows = (
        repeated(rows.filter(pc.greater(count, 0)), count.filter(pc.greater(count, 0)))
        for count in (added, pc.negate(added))
    )
    leaving = first_copies(stored.select(names), removed_rows.cast(stored.select(names).schema))
    if int(leaving.sum()) != removed_rows.num_rows:
        return None
    for name in stamps.column_names:
        new_rows = new_rows.append_column(
            name, pa.repeat(stamps[name][0], new_rows.num_rows).cast(stored.schema.field(name).type)
        )
    new_rows = new_rows.select(stored.column_names).cast(stored.schema)
    remaining = stored.filter(pa.array(~leaving))
    return difference(pa.concat_tables([remaining, new_rows]).combine_chunks(), stored)
