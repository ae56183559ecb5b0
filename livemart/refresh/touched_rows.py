"""Tells which rows of an input matter to a refresh: changed ones, and those that the clock moved.

Used by the strategies that read slices of their inputs.
"""

from __future__ import annotations

import pyarrow as pa

from livemart.arrow.times import EVER
from livemart.delta.row_filter import EVERY_ROW, NO_ROW, Condition, RowFilter, time_condition
from livemart.plan.strategies.slices import Slice, Windows
from livemart.refresh.inputs import Input
from livemart.refresh.model_run import ModelRun

_INSTANT = pa.timestamp("us", tz="UTC")


def touched_rows(run: ModelRun, source: Input) -> pa.Table:
    """Return all rows that may matter differently: changed ones and those of the slices."""
    rows = source.images.select(source.columns)
    passing = moved_rows(run, source)
    if not passing.alternatives:
        return rows
    return pa.concat_tables([rows, source.new.read(passing, source.columns)]).combine_chunks()


def moved_rows(run: ModelRun, source: Input) -> RowFilter:
    """Return which rows of an input enter or leave a window because the clock moved."""
    moved = NO_ROW
    for item in run.plan.slices:
        if item.occurrence != source.index or not run.inputs[item.clock_occurrence].has_changed:
            continue
        before, after = run.threshold(item, "old"), run.threshold(item, "new")
        if before == after:
            continue
        if before is None or after is None:
            # A threshold of NULL lets no row through; the other value may be anywhere.
            return EVERY_ROW
        low, high = sorted((before, after))
        # Both ends of a condition are included: the other one is left out to the microsecond.
        low, high = (low, high - 1) if item.has_lower_end else (low + 1, high)
        condition = _within(run, source, item, low, high)
        moved = moved.or_else(EVERY_ROW if condition is None else RowFilter(((condition,),)))
    return moved


def rows_in_windows(run: ModelRun, source: Input, windows: Windows) -> RowFilter:
    """Return which rows of an input are in one of the windows, before or after the batch."""
    alternatives = []
    for window in windows:
        conditions = []
        for item in window:
            before, after = run.threshold(item, "old"), run.threshold(item, "new")
            if before is None or after is None:
                continue
            low, high = sorted((before, after))
            low, high = (low, EVER) if item.is_lower else (-EVER, high)
            condition = _within(run, source, item, low, high)
            if condition is not None:
                conditions.append(condition)
        alternatives.append(tuple(conditions))
    return RowFilter(tuple(alternatives))


def _within(run: ModelRun, source: Input, item: Slice, low: int, high: int) -> Condition | None:
    field = source.new.fields[item.column]
    margin = run.zone.reach(item.margin, field.type, _INSTANT)
    return time_condition(field.name, field.type, low - margin, high + margin, has_null=False)
