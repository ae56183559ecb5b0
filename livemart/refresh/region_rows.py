"""Tests rows in memory against an affected region: which are in it, which it needs of an input.

Used by region refreshes. A RowFilter, which reads the rows, can only test one column at a time. In
the small lane its rows are narrowed to those that the region's semi join in SQL would take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import is_member, one_array, row_codes
from livemart.arrow.time_zone import TimeZone
from livemart.arrow.times import DAY, is_time, micros_of
from livemart.arrow.types import compares_exactly
from livemart.delta.row_filter import (
    EVERY_ROW,
    Condition,
    RowFilter,
    narrows,
    time_condition,
    values_condition,
)
from livemart.plan.relations.relation import Restriction
from livemart.plan.strategies.region import Region
from livemart.refresh.pinned_table import PinnedTable


def rows_to_read(
    table: PinnedTable,
    restrictions: Sequence[Restriction],
    affected: pa.Table,
    zone: TimeZone,
    time: pa.DataType | None,
) -> RowFilter:
    """Return which rows of a table are enough for the affected region.

    Args:
        table: an input, or the model's own.
        restrictions: alternatives; one that does not narrow means the whole table.
        affected: the region, w0, w1, ... and with a time: `low`, `high` (microseconds) and
            `has_null`.
        zone: of the session.
        time: type of the region's time; None if it has none.
    """
    alternatives = []
    for restriction in restrictions:
        conditions = []
        for index, name, margin in restriction.keys:
            condition = _near(table.fields[name], margin, affected.column(f"w{index}"), zone)
            if condition is not None:
                conditions.append(condition)
        if restriction.time is not None:
            field = table.fields[restriction.time]
            before, after = (
                zone.reach(distance, field.type, field.type if time is None else time)
                for distance in (restriction.before, restriction.after)
            )
            low = pc.min(affected.column("low")).as_py() - before
            high = pc.max(affected.column("high")).as_py() + after
            has_null = bool(pc.any(affected.column("has_null")).as_py())
            condition = time_condition(field.name, field.type, low, high, has_null=has_null)
            if condition is not None:
                conditions.append(condition)
        if not conditions:
            return EVERY_ROW
        alternatives.append(tuple(conditions))
    return RowFilter(tuple(alternatives)) if alternatives else EVERY_ROW


def exact_restrictions(
    region: Region,
    restrictions: Sequence[Restriction],
    affected: pa.Table,
    stored: PinnedTable,
    zone: TimeZone,
) -> list[Restriction]:
    """Return restrictions without the keys that an input cannot be asked for by value.

    Rows of a union meet in the type of the model's key: as doubles, two bigints may be one.
    """
    exact = {
        index
        for index, name in enumerate(region.keys)
        if compares_exactly(
            stored.fields[name].type,
            affected.schema.field(f"w{index}").type,
            is_utc=zone.is_utc,
        )
    }
    return [
        replace(restriction, keys=tuple(key for key in restriction.keys if key[0] in exact))
        for restriction in restrictions
    ]


def _near(field: pa.Field, margin: int, keys: pa.ChunkedArray, zone: TimeZone) -> Condition | None:
    """Return the condition that a column is as close to one of the keys as `margin`."""
    if margin == 0 and (field.type == keys.type or not is_time(field.type)):
        return values_condition(field.name, field.type, keys)
    if not is_time(keys.type) or keys.null_count == len(keys):
        return None
    moments, is_null = micros_of(keys)
    low, high = int(moments[~is_null].min()), int(moments[~is_null].max())
    # A date stands for all of its day.
    margin = zone.reach(
        max(margin, DAY if pa.types.is_date(keys.type) else 0), field.type, keys.type
    )
    return time_condition(
        field.name, field.type, low - margin, high + margin, has_null=keys.null_count > 0
    )


def is_comparable(region: Region, affected: pa.Table, stored: PinnedTable) -> bool:
    """Return True if keys and time compare in Arrow as in SQL: the same type on both sides."""
    for index, name in enumerate(region.keys):
        mine, theirs = stored.fields[name].type, affected.schema.field(f"w{index}").type
        both_whole = pa.types.is_integer(mine) and pa.types.is_integer(theirs)
        if mine != theirs and not both_whole:
            return False
    if region.time is None:
        return bool(region.keys)
    return is_time(stored.fields[region.time].type)


def lies_in(region: Region, affected: pa.Table, rows: pa.Table) -> pa.Array:
    """Return for each row whether it is in the region (boolean, never NULL).

    Args:
        region: its keys and time, columns of `rows`.
        affected: w0, w1, ... and with a time: `low`, `high` (microseconds, both ends included;
            disjoint intervals per key) and `has_null`.
        rows: any rows of the model.
    """
    size = affected.num_rows
    columns = []
    for index, name in enumerate(region.keys):
        mine = one_array(rows.column(name))
        theirs = one_array(affected.column(f"w{index}"))
        if mine.type != theirs.type:
            mine, theirs = mine.cast(pa.int64()), theirs.cast(pa.int64())
        columns.append(pa.concat_arrays([theirs, mine]))
    codes = row_codes(columns, size + rows.num_rows)
    asked_codes, own_codes = codes[:size], codes[size:]
    if region.time is None:
        return pa.array(np.isin(own_codes, asked_codes))
    low = np.asarray(one_array(affected.column("low")))
    order = np.lexsort((low, asked_codes))
    asked_codes, low = asked_codes[order], low[order]
    high = np.asarray(one_array(affected.column("high")))[order]
    has_null = np.asarray(one_array(affected.column("has_null")))[order]
    times, is_null = micros_of(rows.column(region.time))
    start = np.searchsorted(asked_codes, own_codes, "left")
    end = np.searchsorted(asked_codes, own_codes, "right")
    is_in_region = np.zeros(rows.num_rows, dtype=bool)
    for step in range(int((end - start).max(initial=0))):
        place = np.minimum(start + step, max(size - 1, 0))
        is_inside = (low[place] <= times) & (times <= high[place])
        is_in_region |= (start + step < end) & np.where(is_null, has_null[place], is_inside)
    return pa.array(is_in_region)


def needed_rows(
    restrictions: Sequence[Restriction], affected: pa.Table, rows: pa.Table, zone: TimeZone
) -> pa.Table:
    """Return at least those rows that meet a restriction for one of the region's keys.

    A change of ten restaurants, each in another hour, needs ten hours of orders; a filter on
    restaurants and hours lets a hundred through.

    Args:
        restrictions: alternatives.
        affected: the region, w0, w1, ...
        rows: of one input, that passed its filter.
        zone: of the session.
    """
    needed = np.zeros(rows.num_rows, dtype=bool)
    for restriction in restrictions:
        if restriction.time is not None:
            # An interval is the filter's.
            return rows
        mine, theirs = _compared(restriction, affected, rows, zone)
        if len(mine) < 2:
            # The filter has asked that much.
            return rows
        needed |= is_member(mine, theirs)
    return rows.filter(pa.array(needed)).combine_chunks()


def _compared(
    restriction: Restriction, affected: pa.Table, rows: pa.Table, zone: TimeZone
) -> tuple[list[pa.Array], list[pa.Array]]:
    """Return the columns of the rows and of the region that are equal in a row that is needed."""
    mine: list[pa.Array] = []
    theirs: list[pa.Array] = []
    stored = {name.lower(): name for name in rows.column_names}
    times: list[tuple[int, str, pa.Array]] = []
    for index, key, margin in restriction.keys:
        if key.lower() not in stored:
            continue
        name = stored[key.lower()]
        column, keys = one_array(rows.column(name)), one_array(affected.column(f"w{index}"))
        if margin == 0 and column.type == keys.type and narrows(column.type):
            mine.append(column)
            theirs.append(keys)
        elif pa.types.is_timestamp(column.type) and is_time(keys.type) and not keys.null_count:
            margin = max(margin, DAY if pa.types.is_date(keys.type) else 1)
            times.append((zone.reach(margin, column.type, keys.type), name, keys))
    if not times:
        return mine, theirs
    margin, name, keys = min(times, key=lambda one: one[0])
    # As far off as the margin is the next bucket at most.
    buckets = _buckets(keys, margin)
    near = [pc.add(buckets, step) for step in (-1, 0, 1)]
    mine.append(_buckets(rows.column(name), margin))
    theirs = [pa.concat_arrays([keys_of_column] * len(near)) for keys_of_column in theirs]
    return mine, [*theirs, pa.concat_arrays(near)]


def _buckets(column: pa.Array | pa.ChunkedArray, width: int) -> pa.Array:
    """Return the number of each time's bucket; NULL has none that is asked for."""
    times, is_null = micros_of(column)
    return pa.array(times // width, mask=is_null)
