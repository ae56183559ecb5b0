"""Running totals carried on from the last stored row before a change: see plan/running.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.engine.bags import difference, one_array, row_codes
from livemart.engine.differences import quoted, typed_columns
from livemart.engine.model_run import ModelRun, stored_field
from livemart.engine.row_filter import Condition, RowFilter, time_condition, values_condition
from livemart.engine.tables import WEIGHT
from livemart.plan.running import Running

_HOUR = 3_600_000_000
# How far back the last row before a change is looked for; keys without one start from their frames.
_LOOK_BACK = 6 * _HOUR

_Micros = npt.NDArray[np.int64]


class NotRunning(Exception):
    """This batch's totals cannot be carried on exactly: the caller recomputes the region."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Changed keys that are read together: `low` to `high` is where their rows may differ."""

    keys: pa.Table
    low: _Micros
    high: _Micros


def refresh_running(run: ModelRun) -> pa.Table | None:
    """Return the changed rows of a model of running totals.

    Returns:
        Columns of the model plus `_old_count` and `_new_count`; None if nothing changed.

    Raises:
        NotRunning: a time is NULL, or a sum is or may have become NULL, or is not exact.
    """
    running = run.plan.running
    assert running is not None
    images = run.images(running.occurrence).drop_columns([WEIGHT])
    if images.num_rows == 0:
        return None
    _require_exact(run, running)
    longest = max(total.before for total in running.totals)
    groups = _groups(images, running, longest)
    starts: list[pa.Table] = []
    stored: list[pa.Table] = []
    wanted: list[tuple[Condition, ...]] = []
    for group in groups:
        own = _stored_rows(run, running, group)
        start, kept = _starts(run, running, group, own, longest)
        newest = max(
            _largest(images, running.time[1]), _largest(own, running.time[0], int(group.low.min()))
        )
        wanted.extend(_wanted(run, running, start, newest, longest))
        starts.append(start)
        stored.append(kept)
    start = pa.concat_tables(starts).combine_chunks()
    rows = run.views.read(
        run.relation_of(running.occurrence),
        run.version_of(running.occurrence, "new"),
        RowFilter(tuple(wanted)),
        run.columns_of(running.occurrence),
    )
    for total in running.totals:
        if total.argument is not None and _column(rows, total.argument).null_count:
            raise NotRunning
    part = _part(run, running, rows, start)
    schema = run.stored_schema
    kept = pa.concat_tables(stored).combine_chunks().select(schema.names)
    return difference(part.select(schema.names).cast(schema), kept.cast(schema))


def _groups(images: pa.Table, running: Running, longest: int) -> list[_Group]:
    """Split the changed keys into those that changed at the newest times and all others.

    One key that changed long ago would otherwise make every key's frames be read from there on.
    """
    times = _micros(_column(images, running.time[1]))
    keys = pa.table(
        [_column(images, name) for _, name in running.keys],
        names=[f"k{index}" for index in range(len(running.keys))],
    )
    codes = row_codes(keys.columns, keys.num_rows)
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    low = np.full(len(first), np.iinfo(np.int64).max)
    high = np.full(len(first), np.iinfo(np.int64).min)
    np.minimum.at(low, group, times)
    np.maximum.at(high, group, times)
    distinct = keys.take(pa.array(first)).combine_chunks()
    is_fresh = low >= high.max() - _HOUR
    return [
        _Group(distinct.filter(pa.array(mask)), low[mask], high[mask] + longest)
        for mask in (is_fresh, ~is_fresh)
        if mask.any()
    ]


def _stored_rows(run: ModelRun, running: Running, group: _Group) -> pa.Table:
    """Return the model's own rows of the changed keys, from the look-back on."""
    relation = run.model.relation
    schema = run.stored_schema
    conditions: list[Condition | None] = [
        values_condition(
            stored_field(schema, name).name,
            stored_field(schema, name).type,
            group.keys.column(f"k{index}"),
        )
        for index, (name, _) in enumerate(running.keys)
    ]
    field = stored_field(schema, running.time[0])
    low, high = int(group.low.min()) - _LOOK_BACK, int(group.high.max())
    conditions.append(time_condition(field.name, field.type, low, high, has_null=False))
    passing = RowFilter((tuple(found for found in conditions if found is not None),))
    return run.views.read(relation, run.stored_version, passing)


def _starts(
    run: ModelRun, running: Running, group: _Group, own: pa.Table, longest: int
) -> tuple[pa.Table, pa.Table]:
    """Return where each changed key starts from, and the stored rows that may differ.

    Returns:
        Start: `_k0`, ... (keys), `_low`, `_high`, `_start`, `_from` (microseconds; `_from` NULL if
        no row was found) and `_s0`, ... (the totals there). Stored rows: columns of the model.
    """
    size = group.keys.num_rows
    columns = [
        pa.concat_arrays(
            [
                one_array(group.keys.column(f"k{index}")),
                one_array(_column(own, name)).cast(group.keys.column(f"k{index}").type),
            ]
        )
        for index, (name, _) in enumerate(running.keys)
    ]
    codes = row_codes(columns, size + own.num_rows)
    order = np.argsort(codes[:size])
    place = np.searchsorted(codes[:size][order], codes[size:])
    place = np.minimum(place, size - 1)
    match = order[place]
    is_own = codes[:size][match] == codes[size:]
    times = _micros(_column(own, running.time[0]), allow_null=True)
    is_before = is_own & (times < group.low[match])
    is_inside = is_own & (times >= group.low[match]) & (times <= group.high[match])
    last = np.full(size, -1, dtype=np.int64)
    before = np.flatnonzero(is_before)
    by_time = before[np.argsort(times[before], kind="stable")]
    last[match[by_time]] = by_time
    found = last >= 0
    at = pa.array([int(times[row]) if row >= 0 else None for row in last], pa.int64())
    start = np.where(found, times[last] if len(times) else 0, group.low - longest - 1)
    rows = pa.array([int(row) if row >= 0 else None for row in last], pa.int64())
    arrays = [one_array(group.keys.column(f"k{index}")) for index in range(len(running.keys))]
    names = [f"_k{index}" for index in range(len(running.keys))]
    arrays += [pa.array(group.low), pa.array(group.high), pa.array(start), at]
    names += ["_low", "_high", "_start", "_from"]
    for index, total in enumerate(running.totals):
        values = one_array(_column(own, total.name)).take(rows)
        if values.null_count > int((~found).sum()):
            raise NotRunning
        arrays.append(values)
        names.append(f"_s{index}")
    return pa.table(arrays, names=names), own.filter(pa.array(is_inside)).combine_chunks()


def _wanted(
    run: ModelRun, running: Running, start: pa.Table, newest: int, longest: int
) -> list[tuple[Condition, ...]]:
    """Return which input rows arrive after each key's start, and which leave its frames."""
    schema = run.warehouse.arrow_schema(run.relation_of(running.occurrence))
    time = stored_field(schema, running.time[1])
    alternatives = []
    is_cold = pc.is_null(start.column("_from"))
    for part, cold in ((start.filter(pc.invert(is_cold)), False), (start.filter(is_cold), True)):
        if part.num_rows == 0:
            continue
        keys = [
            values_condition(
                stored_field(schema, name).name,
                stored_field(schema, name).type,
                part.column(f"_k{index}"),
            )
            for index, (_, name) in enumerate(running.keys)
        ]
        first = pc.min(part.column("_start")).as_py()
        last = min(pc.max(part.column("_high")).as_py(), newest)
        spans = [(first, last)]
        if not cold:
            spans += [
                (first - before, last - before)
                for before in sorted({total.before for total in running.totals})
            ]
        for low, high in spans:
            condition = time_condition(time.name, time.type, low, high, has_null=False)
            found = [*keys, condition]
            alternatives.append(tuple(item for item in found if item is not None))
    return alternatives


def _part(run: ModelRun, running: Running, rows: pa.Table, start: pa.Table) -> pa.Table:
    """Compute the totals of the rows from each key's first change on, as one running sum.

    A row adds its value when it arrives and takes it away when it leaves the frame; the carried
    total is what was there before.
    """
    schema = run.stored_schema
    starts = run.views.of_rows("starts", start)
    inputs = run.views.of_rows("inputs", rows)
    time = f"unix_micros(n.{quoted(running.time[1])})"
    join = " and ".join(
        f"n.{quoted(name)} <=> c._k{index}" for index, (_, name) in enumerate(running.keys)
    )
    keys = [f"_k{index}" for index in range(len(running.keys))]
    totals = list(enumerate(running.totals))
    plain = ", ".join(f"{sql} as {quoted('out ' + name)}" for name, sql in running.plain)
    none = ", ".join(f"null as {quoted('out ' + name)}" for name, _ in running.plain)
    arriving = ", ".join(f"{_argument(total.argument)} as v{index}" for index, total in totals)
    pieces = [
        f"select {', '.join('c.' + key for key in keys)}, {time} as at, {arriving},"
        f" c._low as low, {plain} from {inputs} as n inner join {starts} as c on {join}"
        f" where {time} > c._start and {time} <= c._high"
    ]
    for before in sorted({total.before for total in running.totals}):
        leaving = ", ".join(
            f"{'-' + _argument(total.argument) if total.before == before else '0'} as v{index}"
            for index, total in totals
        )
        pieces.append(
            f"select {', '.join('c.' + key for key in keys)}, {time} + {before + 1}L as at,"
            f" {leaving}, null as low, {none}"
            f" from {inputs} as n inner join {starts} as c on {join}"
            f" where {time} <= c._high - {before + 1}L"
            f" and {time} >= coalesce(c._from - {before}L, c._start + 1)"
        )
    carried = ", ".join(f"c._s{index} as v{index}" for index, _ in totals)
    pieces.append(
        f"select {', '.join(keys)}, _from as at, {carried}, null as low, {none}"
        f" from {starts} as c where _from is not null"
    )
    partition = ", ".join(keys)
    over = f"over (partition by {partition} order by at)"
    sums = ", ".join(
        f"sum(v{index}) {over} as {quoted('out ' + total.name)}" for index, total in totals
    )
    events = " union all ".join(pieces)
    outputs = ", ".join(quoted("out " + name) for name, _ in running.plain)
    summed = f"select at, low, {outputs}, {sums} from ({events})"
    renamed = ", ".join(
        f"{quoted('out ' + name.lower())} as {quoted(name)}" for name in schema.names
    )
    query = (
        f"select {typed_columns(schema, 'q')} from"
        f" (select {renamed} from ({summed}) where low is not null and at >= low) as q"
    )
    part = run.views.query(query)
    for total in running.totals:
        values = _column(part, total.name)
        if total.argument is not None and (
            values.null_count or pc.any(pc.equal(values.cast(pa.float64()), 0.0)).as_py()
        ):
            # Zero, or nothing but NULL in the frame: the carried total does not tell.
            raise NotRunning
    return part


def _require_exact(run: ModelRun, running: Running) -> None:
    """Raise NotRunning unless totals are integers or decimals that hold every sum unrounded."""
    known = run.views.shared.exact
    name = f"running {run.plan.fingerprint}"
    if name not in known:
        source = run.warehouse.arrow_schema(run.relation_of(running.occurrence))
        known[name] = all(
            _is_exact(
                stored_field(run.stored_schema, total.name).type,
                None if total.argument is None else stored_field(source, total.argument).type,
            )
            for total in running.totals
        )
    if not known[name]:
        raise NotRunning


def _is_exact(total: pa.DataType, argument: pa.DataType | None) -> bool:
    if argument is None or pa.types.is_integer(argument):
        return bool(pa.types.is_integer(total) or pa.types.is_decimal(total))
    if pa.types.is_decimal(argument):
        return bool(pa.types.is_decimal(total) and total.scale >= argument.scale)
    return False


def _argument(name: str | None) -> str:
    return "1" if name is None else f"n.{quoted(name)}"


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return rows.column(stored_field(rows.schema, name).name)


def _micros(column: pa.ChunkedArray, *, allow_null: bool = False) -> _Micros:
    if not pa.types.is_timestamp(column.type) or (column.null_count and not allow_null):
        raise NotRunning
    filled = pc.fill_null(column.cast(pa.int64()), np.iinfo(np.int64).max)
    return np.asarray(one_array(filled).to_numpy(zero_copy_only=False), dtype=np.int64)


def _largest(rows: pa.Table, name: str, default: int = 0) -> int:
    found = pc.max(_column(rows, name).cast(pa.int64())).as_py()
    return default if found is None else int(found)


__all__ = ["NotRunning", "refresh_running"]
