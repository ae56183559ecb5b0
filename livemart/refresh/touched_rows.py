"""Which rows of an input matter to a refresh: changed ones, and those that the clock moved."""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.bags import WEIGHT
from livemart.arrow.times import EVER, micros
from livemart.delta.row_filter import EVERY_ROW, NO_ROW, Condition, RowFilter, time_condition
from livemart.plan.strategies.slices import Slice, Windows
from livemart.refresh.inputs import stored_field
from livemart.refresh.model_run import ModelRun


def touched_rows(run: ModelRun, occurrence: int) -> pa.Table:
    """Return all rows that may matter differently: changed ones and those of the slices."""
    rows = run.images(occurrence).drop_columns([WEIGHT])
    names = run.columns_of(occurrence)
    if names is not None:
        rows = rows.select([name for name in rows.column_names if name.lower() in names])
    passing = moved_rows(run, occurrence)
    if not passing.alternatives:
        return rows
    sliced = run.views.read(
        run.relation_of(occurrence),
        run.version_of(occurrence, "new"),
        passing,
        run.columns_of(occurrence),
    )
    return pa.concat_tables([rows, sliced.select(rows.column_names)]).combine_chunks()


def moved_rows(run: ModelRun, occurrence: int) -> RowFilter:
    """Return which rows of an occurrence enter or leave a window because the clock moved."""
    found = NO_ROW
    for item in run.plan.slices:
        if item.occurrence != occurrence:
            continue
        if not run.inputs.has_changed(run.relation_of(item.clock_occurrence)):
            continue
        before, after = run.threshold(item, "old"), run.threshold(item, "new")
        if before == after:
            continue
        if before is None or after is None:
            # A threshold of NULL lets no row through; the other value may be anywhere.
            return EVERY_ROW
        low, high = sorted((micros(before) or 0, micros(after) or 0))
        # Both ends of a condition are included: the other one is left out to the microsecond.
        low, high = (low, high - 1) if item.has_lower_end else (low + 1, high)
        condition = _within(run, item, low, high)
        found = found.or_else(EVERY_ROW if condition is None else RowFilter(((condition,),)))
    return found


def rows_in_windows(run: ModelRun, occurrence: int, windows: Windows) -> RowFilter:
    """Return which rows of an occurrence lie in one of the windows, before or after the batch."""
    alternatives = []
    for window in windows:
        conditions = []
        for item in window:
            before, after = run.threshold(item, "old"), run.threshold(item, "new")
            if before is None or after is None:
                continue
            low, high = sorted((micros(before) or 0, micros(after) or 0))
            low, high = (low, EVER) if item.is_lower else (-EVER, high)
            condition = _within(run, item, low, high)
            if condition is not None:
                conditions.append(condition)
        alternatives.append(tuple(conditions))
    return RowFilter(tuple(alternatives))


def _within(run: ModelRun, item: Slice, low: int, high: int) -> Condition | None:
    schema: pa.Schema = run.warehouse.arrow_schema(run.relation_of(item.occurrence))
    field = stored_field(schema, item.column)
    return time_condition(
        field.name, field.type, low - item.margin, high + item.margin, has_null=False
    )
