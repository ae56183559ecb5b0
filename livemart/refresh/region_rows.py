"""Which rows in memory lie in an affected region: as the semi join of the region says it in SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from livemart.arrow.bags import as_numpy, one_array, row_codes
from livemart.arrow.times import is_time, micros_of
from livemart.plan.strategies.region import Region
from livemart.refresh.model_run import stored_field


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
