"""Carries running totals on from the last stored row before a change (plan/strategies/running).

Used in the small lane. Totals that cannot be carried on exactly are left to the region.

In memory, rows that leave their frame are subtracted. Totals are exact, or left to the region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import WEIGHT, difference, matching_rows, one_array, row_codes
from livemart.arrow.exact_numbers import (
    Whole,
    at_scale,
    cast_exactly,
    from_whole,
    to_whole,
    totals_so_far,
)
from livemart.arrow.sum_limits import SumLimits, SumStep, sum_limits
from livemart.arrow.times import micros_of
from livemart.delta.partitions import is_blank, without_blank_partitions
from livemart.delta.row_filter import Condition, RowFilter, time_condition, values_condition
from livemart.limits import FRESH, LOOK_BACK
from livemart.plan.sql.template import template
from livemart.plan.strategies.running import Plain, Running, Total, not_carried_on
from livemart.refresh.model_run import ModelRun
from livemart.refresh.pinned_table import PinnedTable
from livemart.spark.differences import typed_columns
from livemart.spark_sql import quoted

# Frames around times that are no farther from 1970, in microseconds, fit 64 bits.
_FAR = 2**62

_Micros = npt.NDArray[np.int64]
_Keys = tuple[pa.Array, ...]
# Every number of so many digits fits 64 bits.
_MOST_DIGITS = 18
_MOST_ROWS = 2**63

_Numbers = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Group:
    """Changed keys that are read together: `low` to `high` is where their rows may differ."""

    keys: _Keys
    low: _Micros
    high: _Micros


@dataclass(frozen=True, slots=True)
class _Part:
    """Input rows whose outputs may differ, and the totals of each, one array per total."""

    rows: pa.Table
    totals: tuple[pa.Array, ...]


def refresh_running(run: ModelRun, running: Running) -> pa.Table | None:
    """Return the changed rows of a model of running totals.

    Returns:
        Columns of the model plus `OLD_COUNT` and `NEW_COUNT`; None if nothing changed.

    Raises:
        Inapplicable: NOT_CARRIED_ON, in the large lane, or if a time is NULL. Also if a frame of
            days is not as long each time, or the table holds another key under the same name. Also
            if a sum is not exact or does not fit its type.
    """
    if run.views.is_large:
        raise not_carried_on("more rows changed than are held in memory")
    if running.longest > _FAR // 2 or not run.zone.counts_exactly(running.longest):
        raise not_carried_on("a frame of days is not as long each time")
    source = run.inputs[running.occurrence]
    running = _spelled(running, source.new.names)
    images = source.images.drop_columns([WEIGHT])
    if images.num_rows == 0:
        return None
    limits = _limits(run, running)
    for name, column in running.keys:
        if name in run.stored.blank_columns and pc.any(is_blank(images.column(column))).as_py():
            raise not_carried_on(f"texts of {name} are stored as NULL")
    parts: list[_Part] = []
    stored: list[pa.Table] = []
    for group in _groups(images, running):
        stored_rows = _stored_rows(run, running, group)
        starts, old_rows = _starts(running, group, stored_rows)
        newest = max(
            _largest(images, running.time[1]),
            _largest(stored_rows, running.time[0], int(group.low.min())),
        )
        parts.append(_part(run, running, limits, starts, newest))
        stored.append(old_rows)
    schema = run.stored.schema
    old_rows = pa.concat_tables(stored).combine_chunks().select(schema.names)
    return difference(_outputs(run, running, parts), old_rows.cast(schema))


def _spelled(running: Running, names: Mapping[str, str]) -> Running:
    """Return running totals with the input's columns as its table spells them."""
    return replace(
        running,
        keys=tuple((name, names[column]) for name, column in running.keys),
        time=(running.time[0], names[running.time[1]]),
        plain=tuple(replace(it, source=it.source and names[it.source]) for it in running.plain),
        totals=tuple(
            replace(it, argument=it.argument and names[it.argument]) for it in running.totals
        ),
    )


def _groups(images: pa.Table, running: Running) -> list[_Group]:
    """Split the changed keys into those that changed at the newest times and all others.

    One key that changed long ago would otherwise make every key's frames be read from there on.
    """
    times = _micros(images.column(running.time[1]))
    keys = _keys_of(images, [name for _, name in running.keys])
    codes = row_codes(keys, images.num_rows)
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    low = np.full(len(first), np.iinfo(np.int64).max)
    high = np.full(len(first), np.iinfo(np.int64).min)
    np.minimum.at(low, group, times)
    np.maximum.at(high, group, times)
    is_fresh = low >= high.max() - FRESH
    return [
        _Group(
            tuple(key.take(pa.array(first[mask])) for key in keys),
            low[mask],
            high[mask] + running.longest,
        )
        for mask in (is_fresh, ~is_fresh)
        if mask.any()
    ]


def _stored_rows(run: ModelRun, running: Running, group: _Group) -> pa.Table:
    """Return the model's own rows of the changed keys, from the look-back on."""
    names = [name for name, _ in running.keys]
    field = run.stored.fields[running.time[0]]
    low, high = int(group.low.min()) - LOOK_BACK, int(group.high.max())
    condition = time_condition(field.name, field.type, low, high, has_null=False)
    conditions = [*_key_conditions(run.stored, names, group.keys), condition]
    passing = RowFilter((tuple(condition for condition in conditions if condition is not None),))
    return run.stored.read(passing)


def _starts(running: Running, group: _Group, stored: pa.Table) -> tuple[Starts, pa.Table]:
    """Return where each changed key starts from, and the stored rows that may differ."""
    size = len(group.low)
    keys = _keys_of(stored, [name for name, _ in running.keys])
    keys = tuple(
        key.cast(changed_key.type) for key, changed_key in zip(keys, group.keys, strict=True)
    )
    key, is_own = matching_rows(group.keys, keys)
    times, is_null = micros_of(stored.column(running.time[0]))
    is_own &= ~is_null
    is_inside = is_own & (times >= group.low[key]) & (times <= group.high[key])
    before = np.flatnonzero(is_own & (times < group.low[key]))
    by_time = before[np.argsort(times[before], kind="stable")]
    last = np.full(size, -1, dtype=np.int64)
    last[key[by_time]] = by_time
    has_since = last >= 0
    since = np.zeros(size, dtype=np.int64)
    since[has_since] = times[last[has_since]]
    rows = pa.array(last, pa.int64(), mask=~has_since)
    carried = tuple(one_array(stored.column(total.name)).take(rows) for total in running.totals)
    for values in carried:
        # Nothing to add to: nothing but NULL was there, or more than the type holds.
        has_since &= np.asarray(values.is_valid())
    starts = Starts(group.keys, group.low, group.high, since, has_since, carried)
    return starts, stored.filter(pa.array(is_inside)).combine_chunks()


def _wanted(
    run: ModelRun, running: Running, starts: Starts, newest: int
) -> list[tuple[Condition, ...]]:
    """Return which input rows arrive after each key's start, and which leave its frames."""
    source = run.inputs[running.occurrence].new
    time = source.fields[running.time[1]]
    names = [name for _, name in running.keys]
    first = starts.first(running.longest)
    alternatives = []
    for mask, is_cold in ((starts.has_since, False), (~starts.has_since, True)):
        if not mask.any():
            continue
        keys = _key_conditions(
            source, names, tuple(key.filter(pa.array(mask)) for key in starts.keys)
        )
        low, high = int(first[mask].min()), min(int(starts.high[mask].max()), newest)
        spans = [(low, high)]
        if not is_cold:
            reaches = sorted({total.before for total in running.totals})
            spans += [(low - before, high - before) for before in reaches]
        for span in spans:
            condition = time_condition(time.name, time.type, *span, has_null=False)
            conditions = [*keys, condition]
            alternatives.append(tuple(item for item in conditions if item is not None))
    return alternatives


def _part(
    run: ModelRun,
    running: Running,
    limits: tuple[SumLimits, ...],
    starts: Starts,
    newest: int,
) -> _Part:
    """Compute the totals from each key's first change on."""
    source = run.inputs[running.occurrence]
    passing = RowFilter(tuple(_wanted(run, running, starts, newest)))
    rows = source.new.read(passing, source.columns)
    shown, totals, is_doubtful = running_rows(
        running.totals,
        tuple(run.stored.fields[total.name].type for total in running.totals),
        limits,
        starts,
        _keys_of(rows, [name for _, name in running.keys]),
        _micros(rows.column(running.time[1])),
        tuple(
            None if total.argument is None else one_array(rows.column(total.argument))
            for total in running.totals
        ),
    )
    if is_doubtful.any():
        return _part(run, running, limits, starts.without_past(is_doubtful), newest)
    return _Part(rows.filter(pa.array(shown)), totals)


def _outputs(run: ModelRun, running: Running, parts: Sequence[_Part]) -> pa.Table:
    """Return the model's rows, in its columns and types."""
    schema = run.stored.schema
    rows = pa.concat_tables([part.rows for part in parts]).combine_chunks()
    columns: dict[str, pa.Array] = {
        total.name: pa.concat_arrays([part.totals[index] for part in parts])
        for index, total in enumerate(running.totals)
    }
    computed: list[Plain] = []
    for plain in running.plain:
        field = run.stored.fields[plain.name]
        copied = _copied(plain, rows, field.type)
        if copied is None:
            computed.append(plain)
        else:
            columns[field.name] = copied
    if computed:
        columns |= _computed(run, computed, rows)
    outputs = pa.table([columns[name] for name in schema.names], schema=schema)
    return without_blank_partitions(outputs, sorted(run.stored.blank_columns))


def _copied(plain: Plain, rows: pa.Table, kind: pa.DataType) -> pa.Array | None:
    """Return a column that is one of the input's, perhaps cast without a loss; None if not."""
    if plain.source is None:
        return None
    column = one_array(rows.column(plain.source))
    if column.type == kind:
        return column
    if not (pa.types.is_decimal(column.type) and pa.types.is_decimal(kind)):
        return None
    try:
        return cast_exactly(column, kind)
    except pa.ArrowInvalid:
        # Spark says what becomes of a value that does not fit.
        return None


def _computed(run: ModelRun, plains: list[Plain], rows: pa.Table) -> dict[str, pa.Array]:
    """Return columns that only Spark can compute, by name."""
    place = "__livemart_place"
    numbered = rows.append_column(place, pa.array(np.arange(rows.num_rows)))
    view = run.views.of_rows("inputs", numbered)
    schema = pa.schema([run.stored.fields[plain.name] for plain in plains])
    listed = ", ".join(f"{plain.sql} as {quoted(plain.name)}" for plain in plains)
    query = template(
        f"select {typed_columns(schema)}, {place} from (select {listed}, {place} from ",
        view,
        ") as q",
    )
    computed = run.views.query(query).sort_by(place)
    return {field.name: one_array(computed.column(field.name).cast(field.type)) for field in schema}


def _limits(run: ModelRun, running: Running) -> tuple[SumLimits, ...]:
    """Return how exact each total is.

    Raises:
        Inapplicable: NOT_CARRIED_ON, if one is rounded, or no exact number.
    """
    source = run.inputs[running.occurrence].new
    limits = []
    for total in running.totals:
        # Rows are counted in 64 bits, as integers are added up.
        argument = pa.int64() if total.argument is None else source.fields[total.argument].type
        limit = sum_limits(argument, [SumStep(run.stored.fields[total.name].type)])
        if limit is None:
            raise not_carried_on(f"{total.name} is no exact sum")
        limits.append(limit)
    return tuple(limits)


def _keys_of(rows: pa.Table, names: list[str]) -> _Keys:
    """Return the key columns; without any, all rows have one key."""
    if not names:
        return (pa.repeat(pa.scalar(0), rows.num_rows),)
    return tuple(one_array(rows.column(name)) for name in names)


def _key_conditions(table: PinnedTable, names: list[str], keys: _Keys) -> list[Condition | None]:
    fields = [table.fields[name] for name in names]
    return [
        values_condition(field.name, field.type, key)
        for field, key in zip(fields, keys, strict=False)
    ]


def _micros(column: pa.ChunkedArray) -> _Micros:
    if not pa.types.is_timestamp(column.type) or column.null_count:
        raise not_carried_on("a time is NULL, or no timestamp")
    times = micros_of(column)[0]
    if len(times) and max(-int(times.min()), int(times.max())) > _FAR:
        raise not_carried_on("a time is more than 146,000 years from 1970")
    return times


def _largest(rows: pa.Table, name: str, default: int = 0) -> int:
    largest = pc.max(rows.column(name).cast(pa.int64())).as_py()
    return default if largest is None else int(largest)


@dataclass(frozen=True, slots=True)
class Starts:
    """Where each key's rows start to differ, and the row before.

    Arrays of one element per key; times in microseconds.

    Attributes:
        keys: distinct.
        low: the first time that differs.
        high: the last time that may differ.
        since: of the last row before `low`.
        has_since: False if none is known: the key's frames are added up from their beginning.
        carried: the totals of that row, one array per total; NULL where none was found.
    """

    keys: tuple[pa.Array, ...]
    low: _Numbers
    high: _Numbers
    since: _Numbers
    has_since: _Mask
    carried: tuple[pa.Array, ...]

    def without_past(self, keys: _Mask) -> Starts:
        """Return the starts, some of the keys without the row before."""
        return replace(self, has_since=self.has_since & ~keys)

    def first(self, longest: int) -> _Numbers:
        """Return the time after which rows arrive in the frames, `longest` the widest of them."""
        return np.where(self.has_since, self.since, self.low - longest - 1)


def running_rows(
    totals: tuple[Total, ...],
    types: tuple[pa.DataType, ...],
    limits: tuple[SumLimits, ...],
    starts: Starts,
    keys: tuple[pa.Array, ...],
    times: _Numbers,
    arguments: tuple[pa.Array | None, ...],
) -> tuple[_Mask, tuple[pa.Array, ...], _Mask]:
    """Return the running totals of the rows that may differ.

    Rows are given by column: at least those that arrive in, or leave, a frame from each key's start
    on.

    Args:
        totals: the columns to compute.
        types: of each.
        limits: what each is worth.
        starts: by key.
        keys: of each row, in the types of the keys of `starts`.
        times: of each row, in microseconds.
        arguments: what each total sums; None for COUNT(*).

    Returns:
        Which rows may differ, each total of those, and which keys are in doubt. A key is in doubt
        if a frame adds up to zero without a value in its own row, and may hold nothing but NULL.
        Such keys must start with their frames.

    Raises:
        Inapplicable: a total does not fit its type, or Spark may have lost one on the way to it.
    """
    key, is_known = matching_rows(starts.keys, keys)
    high = starts.high[key]
    first = starts.first(max(total.before for total in totals))[key]
    arrives = is_known & (times > first) & (times <= high)
    shown = arrives & (times >= starts.low[key])
    shown_key = key[shown]
    is_doubtful = np.zeros(len(starts.low), dtype=bool)
    sums: dict[int, pa.Array] = {}
    for before in {total.before for total in totals}:
        lowest = np.where(starts.has_since[key], starts.since[key] - before, first + 1)
        leaves = is_known & (times >= lowest) & (times < high - before)
        moves = _Moves(
            np.concatenate([key[arrives], key[leaves], np.flatnonzero(starts.has_since)]),
            np.concatenate(
                [times[arrives], times[leaves] + before + 1, starts.since[starts.has_since]]
            ),
        )
        at = np.flatnonzero(shown[arrives])
        for index, total in enumerate(totals):
            if total.before != before:
                continue
            scale = types[index].scale if pa.types.is_decimal(types[index]) else 0
            values = _values(arguments[index], len(times), scale)
            carried = to_whole(starts.carried[index].filter(pa.array(starts.has_since)))
            moved = np.concatenate([values[arrives], -values[leaves], carried])
            summed = moves.sums(moved, at)
            if not (_is_known(limits[index], summed) and _is_known(limits[index], moved)):
                raise not_carried_on("a total may have been lost on the way to it")
            is_null = np.zeros(len(summed), dtype=bool)
            argument = arguments[index]
            if argument is not None:
                # A frame holds its own row: with a value there, its total is not NULL.
                is_missing = np.asarray(argument.is_null())
                is_null = is_missing[shown] & (summed == 0).astype(bool)
                is_doubtful[shown_key[is_null & starts.has_since[shown_key]]] = True
                if is_null.any():
                    ones = (~is_missing).astype(np.int64)
                    none = np.zeros(len(carried), dtype=np.int64)
                    counts = moves.sums(np.concatenate([ones[arrives], -ones[leaves], none]), at)
                    is_null &= (counts == 0).astype(bool)
            column = from_whole(summed, types[index], is_null)
            if column is None:
                raise not_carried_on("a total does not fit its type")
            sums[index] = column
    return shown, tuple(sums[index] for index in range(len(totals))), is_doubtful


def _is_known(limits: SumLimits, totals: Whole) -> bool:
    # How many rows a carried total is of, is not known.
    return bool(limits.is_known(totals, _MOST_ROWS).all())


class _Moves:
    """Rows that enter and leave, by key and time; moves of one instant count together."""

    def __init__(self, key: _Numbers, at: _Numbers) -> None:
        self._order = np.lexsort((at, key))
        key, at = key[self._order], at[self._order]
        size = len(key)
        is_next_key = np.ones(size, dtype=bool)
        is_next_key[1:] = key[1:] != key[:-1]
        is_next = is_next_key.copy()
        is_next[1:] |= at[1:] != at[:-1]
        places = np.arange(size)
        # By place in the order: where its key begins, and the last move of its instant.
        self._begin = np.flatnonzero(is_next_key)[np.cumsum(is_next_key) - 1]
        ends = np.append(np.flatnonzero(is_next)[1:], size) - 1
        self._end = ends[np.cumsum(is_next) - 1]
        self._place = np.empty(size, dtype=np.int64)
        self._place[self._order] = places

    def sums(self, values: Whole, moves: _Numbers) -> Whole:
        """Return, for some of the moves, the sum of their key's values until then."""
        so_far = np.concatenate([[0], totals_so_far(values[self._order])])
        place = self._place[moves]
        summed: Whole = so_far[self._end[place] + 1] - so_far[self._begin[place]]
        return summed


def _values(argument: pa.Array | None, size: int, scale: int) -> Whole:
    if argument is None:
        return np.full(size, 10**scale, dtype=object if scale > _MOST_DIGITS else np.int64)
    return at_scale(to_whole(argument), argument.type, scale)
