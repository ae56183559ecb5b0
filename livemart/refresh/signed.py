"""Moves a model by signed change: T' = T + Q(touched rows as they are) - Q(as they were).

Used for linear SQL and additive aggregates (plan/strategies/signed). A change that cannot be added
exactly is left to the region.

If one looked-up table changed, and each row of the model comes from one row of it, only changed
rows are joined. Q(new A, new B) - Q(old A, old B) is Q(change of A, new B) + Q(old A, change of B).
Source: Gupta, Mumick and Subrahmanian, "Maintaining views incrementally", SIGMOD 1993.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import (
    NEW_COUNT,
    OLD_COUNT,
    WEIGHT,
    copies_of,
    repeated,
    row_codes,
    without,
)
from livemart.arrow.sum_limits import SumLimits, SumStep, sum_limits, sum_type
from livemart.arrow.types import compares_exactly
from livemart.delta.row_filter import EVERY_ROW, NO_ROW, RowFilter, equal_in, values_condition
from livemart.limits import ROWS_IN_MEMORY
from livemart.plan.sql.template import template
from livemart.plan.strategies.signed import Link, Lookup, Output, Signed, not_additive
from livemart.refresh.inputs import Input, Side
from livemart.refresh.lane import key_of
from livemart.refresh.model_run import ModelRun
from livemart.refresh.signed_groups import SIGN, changed_groups, stacked_sides
from livemart.refresh.touched_rows import moved_rows, touched_rows
from livemart.refresh.views import Statement
from livemart.spark.differences import grouped_columns
from livemart.spark_sql import quoted

_SIDES: tuple[tuple[Side, int], ...] = (("new", 1), ("old", -1))


def refresh_signed(run: ModelRun, signed: Signed) -> pa.Table | None:
    """Move a model by the signed change of its inputs.

    Returns:
        Columns of the model plus `OLD_COUNT` and `NEW_COUNT`; None if nothing changed.

    Raises:
        Inapplicable: NOT_ADDITIVE, if a lookup changed that touches no known anchor rows, or if a
            sum is not exact or may have become NULL.
    """
    limits = _limits(run, signed.outputs or ())
    if limits is None:
        raise not_additive("a sum is rounded, or of another type than it is stored in")
    passing = {anchor: moved_rows(run, run.inputs[anchor]) for anchor in signed.anchors}
    changed = _changed_part(run, signed, passing)
    for lookup in signed.lookups:
        touched = touched_rows(run, run.inputs[lookup.occurrence])
        if touched.num_rows:
            _touch_anchors(run, signed, lookup, touched, passing)
    unchanged = {
        anchor: _unchanged_rows(run.inputs[anchor], rows)
        for anchor, rows in passing.items()
        if rows.alternatives and not run.views.is_large
    }
    sides: list[tuple[Statement, int]] = []
    if changed is not None and unchanged.keys() == set(signed.anchors):
        sides = _by_product_rule(run, signed, changed, unchanged)
    else:
        for side, sign in _SIDES:
            names = _side(run, signed, passing, unchanged, side)
            if names is not None:
                sides.append((run.query(side, names), sign))
    if not sides:
        return None
    if signed.outputs is None:
        return _rows(run, sides)
    return changed_groups(run, signed.outputs, limits, sides)


def _limits(run: ModelRun, outputs: Sequence[Output]) -> Mapping[str, SumLimits] | None:
    """Return how exact the totals of each sum are; None if one is not."""
    # Inputs whose columns took other types make other sums of the same SQL.
    key = (run.plan.fingerprint, run.stored.schema, *(source.new.schema for source in run.inputs))
    if key not in run.sum_limits:
        # Each question takes some milliseconds, and a wide model sums one type in a hundred ways.
        asked: dict[tuple[str, pa.DataType], list[pa.DataType]] = {}
        limits = {
            output.name.lower(): _limits_of(run, output, asked)
            for output in outputs
            if output.summed
        }
        exact = {name: limit for name, limit in limits.items() if limit is not None}
        run.sum_limits[key] = exact if len(exact) == len(limits) else None
    return run.sum_limits[key]


def _limits_of(
    run: ModelRun, output: Output, asked: dict[tuple[str, pa.DataType], list[pa.DataType]]
) -> SumLimits | None:
    """Return how exact the totals of a sum are, whichever branch of the query they are from.

    `asked`: the types of some steps, by their SQL and the type that is summed; more are added.
    """
    stored = SumStep(run.stored.fields[output.name].type)
    limits = []
    for summed in output.summed:
        for argument in summed.arguments:
            # Their types are asked for, so no row is read.
            names = {
                hole: f"(select * from {run.inputs[hole.occurrence].new.sql} where false)"
                for hole in argument.sql.holes
            }
            query = argument.sql.render(names.__getitem__)
            # Not in one statement: the steps group all rows.
            (kind,) = run.views.types("w0", query)
            taken = ", ".join(sql for sql, _ in summed.steps)
            if (taken, kind) not in asked:
                asked[taken, kind] = run.views.types(taken, query)
            total, *others = asked[taken, kind]
            if total != sum_type(kind):
                return None
            steps = [
                SumStep(other, wraps=not is_try)
                for other, (_, is_try) in zip(others, summed.steps[1:], strict=True)
            ]
            limits.append(sum_limits(kind, [*steps, stored]))
    first = limits[0]
    return first if all(limit == first for limit in limits) else None


def _touch_anchors(
    run: ModelRun,
    signed: Signed,
    lookup: Lookup,
    touched: pa.Table,
    passing: dict[int, RowFilter],
) -> None:
    """Add the anchor rows that find one of these rows of a lookup, by itself or through others.

    Raises:
        Inapplicable: NOT_ADDITIVE, if no key leads to these.
    """
    source = run.inputs[lookup.occurrence]
    if (link := lookup.link) is not None:
        finding = _finding(run, run.inputs[link.occurrence], link, touched, source)
        (other,) = (it for it in signed.lookups if it.occurrence == link.occurrence)
        if finding.num_rows:
            _touch_anchors(run, signed, other, finding, passing)
        return
    if not lookup.keys:
        raise not_additive(f"{source.new.relation} changed, and no key joins it to what is stored")
    name, sites = lookup.keys[0]
    keys = touched.column(source.new.names[name])
    fields = [(anchor, run.inputs[anchor].new.fields[column]) for anchor, column in sites]
    # Rows of a union meet in one type: as doubles, two bigints may be one.
    is_exact = all(
        compares_exactly(one.type, other.type, is_utc=run.zone.is_utc)
        for (_, one), (_, other) in combinations(fields, 2)
    )
    for anchor, field in fields:
        condition = None
        if is_exact:
            condition = values_condition(field.name, field.type, keys, is_utc=run.zone.is_utc)
        passing[anchor] = passing[anchor].or_else(
            EVERY_ROW if condition is None else RowFilter(((condition,),))
        )


def _finding(run: ModelRun, other: Input, link: Link, touched: pa.Table, source: Input) -> pa.Table:
    """Return the rows of a lookup, before and now, that find one of some rows of the linked one.

    Raises:
        Inapplicable: NOT_ADDITIVE, if they may be too many for memory.
    """
    field = other.new.fields[link.other]
    keys = touched.column(source.new.names[link.column])
    condition = values_condition(field.name, field.type, keys, is_utc=run.zone.is_utc)
    if condition is None or other.new.row_count > ROWS_IN_MEMORY:
        raise not_additive(f"{source.new.relation} changed, which {other.new.relation} joins")
    passing = RowFilter(((condition,),))
    images = other.images.select(other.columns)
    rows = other.new.read(passing, other.columns)
    return pa.concat_tables([rows, images.filter(passing.matches(images)).cast(rows.schema)])


def _unchanged_rows(anchor: Input, passing: RowFilter) -> pa.Table:
    """Return the rows of an anchor that pass the filter and are the same before and now.

    Each comes as often as it is there on both sides; columns as in `_changed_rows`.
    """
    coming = _changed_rows(anchor, "new", anchor.columns, passing=passing)
    rows = anchor.new.read(passing, anchor.columns)
    return without(rows, coming.cast(rows.schema))


def _side(
    run: ModelRun,
    signed: Signed,
    passing: Mapping[int, RowFilter],
    unchanged: Mapping[int, pa.Table],
    side: Side,
) -> dict[int, Statement] | None:
    """Return the views of one side; None if no anchor row is touched on it."""
    names: dict[int, Statement] = {}
    # By anchor, its rows; those that only Spark sees are missing.
    present: dict[int, pa.Table] = {}
    is_empty = True
    for anchor in signed.anchors:
        source, label = run.inputs[anchor], f"{side}_{anchor}"
        columns = source.new.schema.names if run.views.is_large else source.columns
        if anchor in unchanged:
            rows = _changed_rows(source, side, columns).cast(unchanged[anchor].schema)
            present[anchor] = pa.concat_tables([unchanged[anchor], rows]).combine_chunks()
        elif not passing[anchor].alternatives:
            present[anchor] = _changed_rows(source, side, columns)
        else:
            # How many rows a slice holds is for Spark to see.
            is_empty = False
            filtered = passing[anchor].bounded()
            rows = _changed_rows(source, side, columns, left_out=filtered)
            listed = ", ".join(quoted(name) for name in rows.column_names)
            changed = run.views.of_rows(label, rows)
            stored = run.views.stored(source.at(side), filtered)
            names[anchor] = template(
                f"(select {listed} from ", stored, f" union all select {listed} from ", changed, ")"
            )
        if anchor in present:
            is_empty &= present[anchor].num_rows == 0
            names[anchor] = run.views.padded(label, present[anchor], source.new.schema)
    if is_empty:
        return None
    return names | _lookup_views(run, signed, present, side, side)


def _changed_part(run: ModelRun, signed: Signed, passing: Mapping[int, RowFilter]) -> Lookup | None:
    """Return the one lookup that changed, if its changed rows show their effect.

    `passing`: by anchor, the rows that the clock moved.
    """
    if signed.outputs is not None or run.views.is_large:
        return None
    changed = [lookup for lookup in signed.lookups if run.inputs[lookup.occurrence].has_changed]
    moved = (*passing.values(), *(moved_rows(run, run.inputs[it.occurrence]) for it in changed))
    if any(rows.alternatives for rows in moved):
        return None
    if any(run.inputs[parameter].has_changed for parameter in run.plan.parameters):
        return None
    return changed[0] if len(changed) == 1 and changed[0].is_linear else None


def _by_product_rule(
    run: ModelRun, signed: Signed, changed: Lookup, unchanged: Mapping[int, pa.Table]
) -> list[tuple[Statement, int]]:
    """Return the queries whose rows, with their signs, are the change of the model.

    Args:
        run: of the model.
        signed: its strategy.
        changed: the one lookup that changed.
        unchanged: by anchor, its unchanged rows that share a key with changed rows.
    """
    before: dict[int, pa.Table] = {}
    terms: list[tuple[Statement, int]] = []
    for side, sign in _SIDES:
        anchors = {
            it: _changed_rows(run.inputs[it], side, run.inputs[it].columns) for it in unchanged
        }
        if side == "old":
            before = {
                anchor: pa.concat_tables([unchanged[anchor], rows.cast(unchanged[anchor].schema)])
                for anchor, rows in anchors.items()
            }
        if any(rows.num_rows for rows in anchors.values()):
            names = _lookup_views(run, signed, anchors, "new", f"with_{side}")
            names |= _anchor_views(run, anchors, side)
            terms.append((run.query("new", names), sign))
    names = _anchor_views(run, before, "before")
    names |= _lookup_views(run, signed, before, "new", "with_before", left_out=changed.occurrence)
    source = run.inputs[changed.occurrence]
    for side, sign in _SIDES:
        rows = _changed_rows(source, side, source.columns)
        if rows.num_rows:
            label = f"changed_{side}_{changed.occurrence}"
            view = run.views.padded(label, rows, source.new.schema)
            terms.append((run.query("new", {**names, changed.occurrence: view}), sign))
    return terms


def _anchor_views(run: ModelRun, rows: Mapping[int, pa.Table], label: str) -> dict[int, Statement]:
    return {
        anchor: run.views.padded(
            f"{label}_{anchor}", table.combine_chunks(), run.inputs[anchor].new.schema
        )
        for anchor, table in rows.items()
    }


def _lookup_views(
    run: ModelRun,
    signed: Signed,
    present: Mapping[int, pa.Table],
    side: Side,
    label: str,
    *,
    left_out: int | None = None,
) -> dict[int, Statement]:
    """Return the views of the lookups' rows that share a join key with the anchors' rows."""
    # One scan may be looked up at several places: a common table expression.
    joined: dict[int, RowFilter] = {}
    for lookup in signed.lookups:
        if lookup.occurrence != left_out:
            rows_of_keys = _joined(run, lookup, present)
            joined[lookup.occurrence] = rows_of_keys.or_else(joined.get(lookup.occurrence, NO_ROW))
    return {
        occurrence: run.views.matching(
            f"{label}_{occurrence}", run.inputs[occurrence].at(side), rows_of_keys
        )
        for occurrence, rows_of_keys in joined.items()
    }


def _joined(run: ModelRun, lookup: Lookup, present: Mapping[int, pa.Table]) -> RowFilter:
    """Return which rows of a lookup share a join key with the anchors' rows."""
    if not lookup.keys:
        return EVERY_ROW
    name, sites = lookup.keys[0]
    field = run.inputs[lookup.occurrence].new.fields[name]
    keys: list[pa.ChunkedArray] = []
    for anchor, column in sites:
        if anchor not in present:
            return EVERY_ROW
        keys.append(present[anchor].column(run.inputs[anchor].new.names[column]))
    if any(key.type != field.type for key in keys):
        # Which values are equal across types is for Spark to say.
        return EVERY_ROW
    chunks = [chunk for key in keys for chunk in key.chunks]
    condition = values_condition(field.name, field.type, pa.chunked_array(chunks, field.type))
    return EVERY_ROW if condition is None else RowFilter(((condition,),))


def _changed_rows(
    anchor: Input,
    side: Side,
    columns: Sequence[str],
    *,
    left_out: RowFilter = NO_ROW,
    passing: RowFilter = EVERY_ROW,
) -> pa.Table:
    """Return the changed rows of an anchor as of one side, each as often as it is there.

    Args:
        anchor: the input.
        side: before or now.
        columns: names of those that are enough.
        left_out: rows that are read from the table at that side's version.
        passing: rows that are enough.
    """
    images = anchor.images
    weights = images.column(WEIGHT).combine_chunks().cast(pa.int64())
    counts = weights if side == "new" else pc.negate(weights)
    chosen = pc.greater(counts, 0)
    if left_out.alternatives:
        chosen = pc.and_(chosen, pc.invert(left_out.matches(images)))
    if not passing.is_whole:
        chosen = pc.and_(chosen, passing.matches(images))
    return repeated(images.filter(chosen).select(columns), counts.filter(chosen))


def _rows(run: ModelRun, sides: Sequence[tuple[Statement, int]]) -> pa.Table:
    """Return the change of a linear query's rows."""
    schema = run.stored.schema
    stacked = stacked_sides(schema, sides, run.stored.blank_columns)
    if any(sign < 0 for _, sign in sides):
        selected, groups = grouped_columns(schema)
        stacked = template(
            f"select {', '.join(selected)}, sum({SIGN}) as {SIGN} from (",
            stacked,
            f") group by {', '.join(groups)} having sum({SIGN}) <> 0",
        )
    change = run.views.query(stacked)
    weights = change.column(SIGN).combine_chunks().cast(pa.int64())
    rows = change.select(schema.names)
    if change.num_rows and pc.min(weights).as_py() < 0:
        old = _stored_counts(run, rows.filter(pc.less(weights, 0)))
        # A row that only appears is counted from zero: adding copies needs no old count.
        before = np.zeros(rows.num_rows, dtype=np.int64)
        before[pc.less(weights, 0).to_numpy(zero_copy_only=False)] = old
        after = before + weights.to_numpy(zero_copy_only=False)
        if (after < 0).any():
            raise not_additive("more rows go than are stored")
        old_counts, new_counts = pa.array(before), pa.array(after)
    else:
        old_counts, new_counts = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows), weights
    return rows.append_column(OLD_COUNT, old_counts).append_column(NEW_COUNT, new_counts)


def _stored_counts(run: ModelRun, rows: pa.Table) -> np.ndarray:
    """Return how often each of some distinct rows is in the model's table."""
    if key_of(run.plan, rows):
        return np.ones(rows.num_rows, dtype=np.int64)
    schema = run.stored.schema
    stored = run.stored.read(equal_in(schema, rows))
    aligned = rows.select(schema.names).cast(stored.schema)
    both = pa.concat_tables([aligned, stored]).combine_chunks()
    codes = row_codes(both.columns, both.num_rows, identical=True)
    return copies_of(codes[: rows.num_rows], codes[rows.num_rows :])
