"""Tells which rows in memory lie in an affected region, and which rows of an input it needs.

Used by region refreshes of the small lane. The answer is that of the region's semi join in SQL; a
RowFilter, which reads the rows, can only test one column at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import as_numpy, is_member, one_array, row_codes
from livemart.arrow.times import DAY, is_time, micros_of
from livemart.delta.row_filter import narrows
from livemart.plan.relations.relation import Restriction
from livemart.plan.strategies.region import Region
from livemart.refresh.inputs import stored_field


def is_comparable(region: Region, affected: pa.Table, schema: pa.Schema) -> bool:
    """Return True if keys and time compare in Arrow as in SQL: the same type on both sides."""
    for index, name in enumerate(region.keys):
        mine, theirs = stored_field(schema, name).type, affected.schema.field(f"w{index}").type
        both_whole = pa.types.is_integer(mine) and pa.types.is_integer(theirs)
        if mine != theirs and not both_whole:
            return False
    if region.time is None:
        return bool(region.keys)
    return is_time(stored_field(schema, region.time).type)


def lies_in(region: Region, affected: pa.Table, rows: pa.Table) -> pa.Array:
    """Return for each row whether it lies in the region (boolean, never NULL).

    Args:
        region: its keys and time, columns of `rows`.
        affected: w0, w1, ... and with a time: `low`, `high` (microseconds, both ends included;
            disjoint intervals per key) and `has_null`.
        rows: any rows of the model.
    """
    size = affected.num_rows
    columns = []
    for index, name in enumerate(region.keys):
        own = one_array(rows.column(stored_field(rows.schema, name).name))
        asked = one_array(affected.column(f"w{index}"))
        if own.type != asked.type:
            own, asked = own.cast(pa.int64()), asked.cast(pa.int64())
        columns.append(pa.concat_arrays([asked, own]))
    codes = row_codes(columns, size + rows.num_rows)
    asked_codes, own_codes = codes[:size], codes[size:]
    if region.time is None:
        return pa.array(np.isin(own_codes, asked_codes))
    low = as_numpy(one_array(affected.column("low")))
    order = np.lexsort((low, asked_codes))
    asked_codes, low = asked_codes[order], low[order]
    high = as_numpy(one_array(affected.column("high")))[order]
    has_null = as_numpy(one_array(affected.column("has_null")))[order]
    times, is_null = micros_of(rows.column(stored_field(rows.schema, region.time).name))
    start = np.searchsorted(asked_codes, own_codes, "left")
    end = np.searchsorted(asked_codes, own_codes, "right")
    found = np.zeros(rows.num_rows, dtype=bool)
    for step in range(int((end - start).max(initial=0))):
        place = np.minimum(start + step, max(size - 1, 0))
        is_inside = (low[place] <= times) & (times <= high[place])
        found |= (start + step < end) & np.where(is_null, has_null[place], is_inside)
    return pa.array(found)


def needed_rows(
    restrictions: Sequence[Restriction], affected: pa.Table, rows: pa.Table
) -> pa.Table:
    """Return at least those rows that meet a restriction for one of the region's keys.

    A change of ten restaurants, each in an hour of its own, needs ten hours of orders; a filter on
    restaurants and hours lets a hundred through.

    Args:
        restrictions: alternatives.
        affected: the region, w0, w1, ...
        rows: of one input, that passed its filter.
    """
    needed = np.zeros(rows.num_rows, dtype=bool)
    for restriction in restrictions:
        if restriction.time is not None:
            # An interval is the filter's.
            return rows
        own, asked = _compared(restriction, affected, rows)
        if len(own) < 2:
            # The filter has asked that much.
            return rows
        needed |= is_member(own, asked)
    return rows.filter(pa.array(needed)).combine_chunks()


def _compared(
    restriction: Restriction, affected: pa.Table, rows: pa.Table
) -> tuple[list[pa.Array], list[pa.Array]]:
    """Return the columns of the rows and of the region that are equal in a row that is needed."""
    own: list[pa.Array] = []
    asked: list[pa.Array] = []
    stored = {name.lower(): name for name in rows.column_names}
    times: list[tuple[int, str, pa.Array]] = []
    for index, key, margin in restriction.keys:
        if key.lower() not in stored:
            continue
        name = stored[key.lower()]
        found, wanted = one_array(rows.column(name)), one_array(affected.column(f"w{index}"))
        if margin == 0 and found.type == wanted.type and narrows(found.type):
            own.append(found)
            asked.append(wanted)
        elif pa.types.is_timestamp(found.type) and is_time(wanted.type) and not wanted.null_count:
            margin = max(margin, DAY if pa.types.is_date(wanted.type) else 1)
            times.append((margin, name, wanted))
    if not times:
        return own, asked
    margin, name, wanted = min(times, key=lambda one: one[0])
    # As far off as the margin is the next bucket at most.
    buckets = _buckets(wanted, margin)
    near = [pc.add(buckets, step) for step in (-1, 0, 1)]
    own.append(_buckets(rows.column(name), margin))
    asked = [pa.concat_arrays([each] * len(near)) for each in asked]
    return own, [*asked, pa.concat_arrays(near)]


def _buckets(column: pa.Array | pa.ChunkedArray, width: int) -> pa.Array:
    """Return the number of each time's bucket; NULL has none that is asked for."""
    times, is_null = micros_of(column)
    return pa.array(times // width, mask=is_null)
