"""Moves the totals of additive groups by their signed change, exactly.

Used by signed change. A total that the change alone does not tell is left to another strategy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, one_array, places_of, row_codes
from livemart.arrow.exact_numbers import Whole, add_by_group, from_whole, to_whole
from livemart.arrow.sum_limits import SumLimits
from livemart.delta.row_filter import equal_in
from livemart.plan.sql.template import template
from livemart.plan.strategies.signed import Output, not_additive
from livemart.refresh.model_run import ModelRun
from livemart.refresh.views import Statement
from livemart.spark.differences import typed_columns
from livemart.spark_sql import quoted

SIGN = "__livemart_sign"

_Mask = npt.NDArray[np.bool_]


def changed_groups(
    run: ModelRun,
    outputs: Sequence[Output],
    limits: Mapping[str, SumLimits],
    sides: Sequence[tuple[Statement, int]],
) -> pa.Table | None:
    """Return the change of an additive aggregate's groups.

    Args:
        run: of the model.
        outputs: the role of each column.
        limits: of each sum, by its name in lower case.
        sides: the model's query over touched rows with its sign, +1 as they are, -1 as they were.

    Returns:
        As `combine_groups`; None if no total moves.

    Raises:
        Inapplicable: NOT_ADDITIVE.
    """
    schema = run.stored.schema
    change = run.views.query(stacked_sides(schema, sides, run.stored.blank_columns))
    _require_no_blank(run, change.select(key_columns(change, outputs)))
    change = moved_groups(change, outputs, limits)
    if change.num_rows == 0:
        return None
    groups = change.select(key_columns(change, outputs))
    stored = run.stored.read(equal_in(schema, groups)).select(schema.names)
    return combine_groups(schema, outputs, limits, change, stored)


def _require_no_blank(run: ModelRun, keys: pa.Table) -> None:
    """Check that no group is one of those that the table holds under one key.

    Raises:
        Inapplicable: NOT_ADDITIVE.
    """
    merged = run.stored.blank_columns.intersection(keys.column_names)
    if any(keys.column(name).null_count for name in merged):
        raise not_additive(f"texts of {', '.join(sorted(merged))} are stored as NULL")


def stacked_sides(
    schema: pa.Schema,
    sides: Sequence[tuple[Statement, int]],
    blank_columns: frozenset[str] = frozenset(),
) -> Statement:
    """Return SQL for the groups of each side: columns of the model plus `SIGN`.

    Args:
        schema: columns of the model.
        sides: the model's query over touched rows with its sign, +1 as they are, -1 as they were.
        blank_columns: see `typed_columns`.
    """
    columns = typed_columns(schema, blank_columns)
    parts: list[str | Statement] = []
    for query, sign in sides:
        union = " union all " if parts else ""
        parts += [f"{union}select {columns}, {sign} as {quoted(SIGN)} from (", query, ") as q"]
    return template(*parts)


def moved_groups(
    change: pa.Table, outputs: Sequence[Output], limits: Mapping[str, SumLimits]
) -> pa.Table:
    """Return the rows of `change` whose group's totals move; the others cancel out.

    Args:
        change: columns of the model plus `SIGN`.
        outputs: the role of each column.
        limits: of each sum, by its name in lower case.

    Raises:
        Inapplicable: NOT_ADDITIVE, if a total of the touched rows may have been lost.
    """
    _require_known(change, outputs, limits)
    keys = _keys(change, outputs)
    _, group = np.unique(row_codes(keys, change.num_rows), return_inverse=True)
    size = int(group.max(initial=-1)) + 1
    moves = np.zeros(size, dtype=bool)
    for name, output in _measures(change, outputs):
        moved, gained, lost = _moved(change, name, group, size)
        moves |= (moved != 0).astype(bool)
        if output.role == "sum" and not output.is_never_null:
            moves |= gained != lost
    return change.filter(pa.array(moves[group]))


def combine_groups(
    schema: pa.Schema,
    outputs: Sequence[Output],
    limits: Mapping[str, SumLimits],
    change: pa.Table,
    stored: pa.Table,
) -> pa.Table:
    """Return how stored groups change.

    Args:
        schema: columns of the model.
        outputs: the role of each.
        limits: of each sum, by its name in lower case.
        change: columns of the model plus `SIGN`; one row for each group of each side.
        stored: rows of the model, at least those of every group in `change`; one for each group.

    Returns:
        Columns of the model plus `OLD_COUNT`, `NEW_COUNT`: one row for each row that leaves, with
        1 and 0, and for each that comes, with 0 and 1.

    Raises:
        Inapplicable: NOT_ADDITIVE, if a sum may have become NULL or been lost, a count fell below
            zero, or a total no longer fits its type.
    """
    codes = row_codes(
        [
            pa.concat_arrays([one_array(mine), one_array(theirs).cast(mine.type)])
            for mine, theirs in zip(_keys(change, outputs), _keys(stored, outputs), strict=True)
        ],
        change.num_rows + stored.num_rows,
    )
    moved_codes, stored_codes = codes[: change.num_rows], codes[change.num_rows :]
    distinct, first, group = np.unique(moved_codes, return_index=True, return_inverse=True)
    size = len(distinct)
    at, is_stored = places_of(distinct, stored_codes)
    before = stored.take(pa.array(at, pa.int64(), mask=~is_stored))
    _require_known(before.filter(pa.array(is_stored)), outputs, limits)

    measures = _measures(change, outputs)
    rows = _count_of_rows(measures)
    moves = {name: _moved(change, name, group, size) for name, _ in measures}
    count = to_whole(before.column(rows)) + moves[rows][0]
    if (count < 0).any() or (~is_stored & (count == 0)).any():
        raise not_additive("a group has less rows than went")
    if (count == 0).any() and not key_columns(change, outputs):
        # Without GROUP BY there is a row all the same, of what no row gives.
        raise not_additive("no row is left to add up")
    after: dict[str, pa.Array] = {}
    differs = np.zeros(size, dtype=bool)
    for name, output in measures:
        moved, gained, lost = moves[name]
        value = to_whole(before.column(name)) + moved
        is_null = np.zeros(size, dtype=bool)
        if output.role == "sum":
            limit = limits[output.name.lower()]
            if not limit.is_known(value, _units(count, schema.field(rows).type)).all():
                raise not_additive(f"{name} may have been lost in a group")
        if output.role == "sum" and not output.is_never_null:
            has_total = np.asarray(one_array(pc.is_valid(before.column(name))))
            may_be_null = lost & ~gained & (count > 0) & (value == 0).astype(bool)
            if may_be_null.any() or (lost & is_stored & ~has_total).any():
                raise not_additive(f"{name} may be NULL in a group")
            is_null = ~(has_total | gained)
            differs |= is_null != ~has_total
        differs |= ~is_null & (moved != 0).astype(bool)
        total = from_whole(value, schema.field(name).type, is_null)
        if total is None:
            raise not_additive(f"{name} does not fit its type")
        after[name] = total
    is_present = (count > 0).astype(bool)
    is_changed = differs | ~(is_stored & is_present)
    leaving = before.select(schema.names).filter(pa.array(is_changed & is_stored))
    picked = change.take(pa.array(first))
    coming = pa.table(
        [after[name] if name in after else one_array(picked.column(name)) for name in schema.names],
        names=schema.names,
    ).filter(pa.array(is_changed & is_present))
    both = pa.concat_tables([coming, leaving.cast(coming.schema)]).combine_chunks()
    counts = np.repeat([0, 1], [coming.num_rows, leaving.num_rows])
    return both.append_column(OLD_COUNT, pa.array(counts, pa.int64())).append_column(
        NEW_COUNT, pa.array(1 - counts, pa.int64())
    )


def _require_known(
    groups: pa.Table, outputs: Sequence[Output], limits: Mapping[str, SumLimits]
) -> None:
    """Check that no total of these groups was lost, and no count.

    Raises:
        Inapplicable: NOT_ADDITIVE.
    """
    measures = _measures(groups, outputs)
    counts = groups.column(_count_of_rows(measures))
    rows = _units(to_whole(counts), counts.type)
    for name, output in measures:
        column = one_array(groups.column(name))
        is_null = np.asarray(column.is_null())
        if output.role != "sum":
            if is_null.any():
                raise not_additive(f"{name} is NULL in a group")
            continue
        limit = limits[output.name.lower()]
        values = to_whole(column)
        is_nothing = is_null | ((values == 0).astype(bool) & output.is_never_null)
        if (is_nothing & limit.may_be_lost(rows)).any() or not limit.is_known(values, rows).all():
            raise not_additive(f"{name} may have been lost in a group")


def _count_of_rows(measures: Sequence[tuple[str, Output]]) -> str:
    return next(name for name, output in measures if output.role == "count_rows")


def _units(counts: Whole, kind: pa.DataType) -> Whole:
    """Return counts that are stored as decimals in units."""
    return counts // 10**kind.scale if pa.types.is_decimal(kind) else counts


def key_columns(table: pa.Table, outputs: Sequence[Output]) -> list[str]:
    """Return the names of the group's columns, as the table writes them."""
    return [name for name, output in _with_roles(table, outputs) if output.role == "key"]


def _keys(table: pa.Table, outputs: Sequence[Output]) -> list[pa.ChunkedArray]:
    return [table.column(name) for name in key_columns(table, outputs)]


def _measures(table: pa.Table, outputs: Sequence[Output]) -> list[tuple[str, Output]]:
    return [named for named in _with_roles(table, outputs) if named[1].role != "key"]


def _with_roles(table: pa.Table, outputs: Sequence[Output]) -> list[tuple[str, Output]]:
    """Return the columns that have a role, as the table writes them."""
    roles = {output.name.lower(): output for output in outputs}
    return [(name, roles[name.lower()]) for name in table.column_names if name.lower() in roles]


def _moved(
    change: pa.Table, name: str, group: npt.NDArray[np.int64], size: int
) -> tuple[npt.NDArray[Any], _Mask, _Mask]:
    """Return by group: the signed sum, and whether a value came or went that is not NULL."""
    signs = np.asarray(one_array(change.column(SIGN)).cast(pa.int64()))
    column = change.column(name)
    is_valid = np.asarray(one_array(pc.is_valid(column)))
    gained, lost = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    gained[group[is_valid & (signs > 0)]] = True
    lost[group[is_valid & (signs < 0)]] = True
    return add_by_group(to_whole(column) * signs, group, size), gained, lost
