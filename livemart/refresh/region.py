"""Recomputes the affected region of a model: T' = (T minus rows in A) + its SQL, restricted to A.

Used where a key or an interval of time confines a change (plan/strategies/region), and where a
signed change or running totals do not hold in a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException

from livemart.arrow.bags import difference, one_array, row_codes, with_both_zeros
from livemart.arrow.time_zone import TimeZone
from livemart.arrow.times import EVER, bounding_times, is_time, micros_of
from livemart.arrow.types import compared_as, compares_exactly
from livemart.arrow.variants import has_parts
from livemart.delta.partitions import BLANKS, is_blank
from livemart.limits import FEW_INPUT_ROWS, MOST_INTERVALS_OF_A_KEY, MOST_REGION_KEYS
from livemart.plan.reasons import Inapplicable, refusal
from livemart.plan.relations.key_query import KeyQuery, RowsOf
from livemart.plan.relations.relation import Restriction
from livemart.plan.sql.template import separated, template
from livemart.plan.strategies.region import Region, confined_by
from livemart.plan.strategies.slices import Windows
from livemart.refresh.inputs import Input
from livemart.refresh.model_run import ModelRun
from livemart.refresh.region_rows import (
    exact_restrictions,
    is_comparable,
    lies_in,
    needed_rows,
    rows_to_read,
)
from livemart.refresh.touched_rows import rows_in_windows, touched_rows
from livemart.refresh.views import Statement
from livemart.spark.differences import counted_difference, is_about_distinct, typed_columns
from livemart.spark_sql import quoted


def refresh_region(run: ModelRun, region: Region) -> pa.Table | None:
    """Recompute the affected region of a model.

    Returns:
        Columns of the model plus `OLD_COUNT` and `NEW_COUNT`; None if nothing is affected.

    Raises:
        Inapplicable: COST_GATE, if the region is too large; KEY_NOT_IN_OUTPUT or
            NONDETERMINISTIC_ORDER, if its keys are of types that do not confine a change.
    """
    region = _comparable(run, region)
    if run.plan.ties:
        _require_keys_of_one_type(run, region)
    affected = affected_region(run, region)
    if affected.num_rows == 0:
        return None
    time = _time_of(run, region)
    restricted = {
        occurrence: exact_restrictions(region, restrictions, affected, run.stored, run.zone)
        for occurrence, restrictions in region.restrictions.items()
        if occurrence not in run.plan.parameters
    }
    names = {
        occurrence: _view_of_needed(run, run.inputs[occurrence], restrictions, affected, time)
        for occurrence, restrictions in restricted.items()
    }
    schema = run.stored.schema
    columns = typed_columns(schema, run.stored.blank_columns)
    part = template(f"select {columns} from (", run.query("new", names), ") as q")
    stored_slice = rows_to_read(run.stored, [region.stored], affected, run.zone, time)
    if not run.views.is_large and is_comparable(region, affected, run.stored):
        stored = run.stored.read(stored_slice).select(schema.names)
        old = stored.filter(lies_in(region, affected, stored))
        if time is None and _is_narrowed(run, region, restricted):
            # Few rows come of other keys; Spark is spared a view, a broadcast and a join.
            new = run.views.query(part)
            return difference(new.filter(lies_in(region, affected, new)), old)
        new_rows = template(part, _semi_join(run, region, affected, "q"))
        return difference(run.views.query(new_rows), old)
    listed = ", ".join(f"t.{quoted(name)}" for name in schema.names)
    view = run.views.slice("stored", run.stored, stored_slice)
    new_rows = template(part, _semi_join(run, region, affected, "q"))
    of_region = _semi_join(run, region, affected, "t")
    old_rows = template(f"select {listed} from ", view, " as t", of_region)
    return run.views.query(counted_difference(schema, [(new_rows, 0, 1), (old_rows, 1, 0)]))


def _is_narrowed(
    run: ModelRun, region: Region, restricted: Mapping[int, Sequence[Restriction]]
) -> bool:
    """Return True if every input is read by all keys of the region."""
    return all(
        source.index in run.plan.parameters
        or all(
            len({index for index, *_ in restriction.keys}) == len(region.keys)
            for restriction in restricted.get(source.index) or [Restriction(())]
        )
        for source in run.inputs
    )


def _time_of(run: ModelRun, region: Region) -> pa.DataType | None:
    """Return the type of the region's time, None if it has none."""
    return None if region.time is None else run.stored.fields[region.time].type


def _view_of_needed(
    run: ModelRun,
    source: Input,
    restrictions: Sequence[Restriction],
    affected: pa.Table,
    time: pa.DataType | None,
) -> Statement:
    """Return the view of the rows that the region needs of one input."""
    label = f"new_{source.index}"
    passing = rows_to_read(source.new, restrictions, affected, run.zone, time)
    if passing.is_whole or run.views.is_large:
        return run.views.slice(label, source.new, passing, source.columns)
    rows = source.new.read(passing, source.columns)
    if rows.num_rows > FEW_INPUT_ROWS:
        rows = needed_rows(restrictions, affected, rows, run.zone)
    return run.views.padded(label, rows, source.new.schema)


def affected_region(run: ModelRun, region: Region) -> pa.Table:
    """Return the affected region of a batch.

    Returns:
        w0, w1, ... (the region's keys), distinct; with a time: also `low`, `high` (bigint,
        microseconds, both ends included) and `has_null`, disjoint intervals per key.
    """
    width = len(region.keys) + (1 if region.time is not None else 0)
    pieces: list[pa.Table] = []
    queries: list[KeyQuery] = []
    touched = _Touched(run, region.windows)
    for query in region.affected:
        if query.occurrence is None or query.occurrence in run.plan.parameters:
            continue
        rows = touched.rows(query.occurrence)
        if rows.num_rows == 0:
            continue
        if query.columns is not None:
            pieces.append(_plain(rows, query.columns, run.inputs[query.occurrence].new.names))
            continue
        queries.append(query)
    if queries:
        pieces.append(_keys(run, queries, touched))
    names = [f"w{index}" for index in range(width)]
    if not pieces:
        return pa.table({name: pa.array([], pa.null()) for name in names})
    distinct = _distinct([piece.select(names) for piece in pieces], run.zone)
    for index, name in enumerate(region.keys):
        if name in run.stored.blank_columns:
            distinct = _with_blanks(distinct, f"w{index}")
    if distinct.num_rows > MOST_REGION_KEYS:
        raise refusal("COST_GATE", f"{distinct.num_rows} keys are affected")
    if region.time is None:
        return distinct.combine_chunks()
    kinds = distinct.schema.field(names[-1]).type, run.stored.fields[region.time].type
    before, after = (run.zone.reach(distance, *kinds) for distance in (region.before, region.after))
    return _islands(distinct, len(region.keys), before, after)


def _comparable(run: ModelRun, region: Region) -> Region:
    """Return a region without the keys that Arrow cannot group by, such as structs and maps.

    Raises:
        Inapplicable: KEY_NOT_IN_OUTPUT, if nothing is left that confines a change.
    """
    types = [run.stored.fields[name].type for name in region.keys]
    places = [place for place, kind in enumerate(types) if not has_parts(kind)]
    if len(places) == len(types):
        return region
    if not places and region.time is None:
        names = ", ".join(region.keys)
        message = f"the keys of the affected rows ({names}) hold structs, arrays, maps or variants"
        raise refusal("KEY_NOT_IN_OUTPUT", message, suggestion="group by their fields")
    return confined_by(region, places)


def _require_keys_of_one_type(run: ModelRun, region: Region) -> None:
    """Fall back if a region key is joined to a column of a coarser type.

    One value of that column may equal several keys: 1 equals '1' and '01'. The rows that depend on
    a decision for 1 then have two keys.

    Raises:
        Inapplicable: NONDETERMINISTIC_ORDER.
    """
    for occurrence, restrictions in region.restrictions.items():
        for restriction in restrictions:
            for index, name, margin in restriction.keys:
                if margin:
                    # A time that was cut to the hour, not one that was compared.
                    continue
                mine = run.stored.fields[region.keys[index]].type
                theirs = run.inputs[occurrence].new.fields[name].type
                if mine != theirs and not compares_exactly(mine, theirs):
                    message = (
                        f"rows may tie, and {region.keys[index]} ({mine}) is compared with"
                        f" {name} ({theirs})"
                    )
                    raise refusal("NONDETERMINISTIC_ORDER", message)


def _keys(run: ModelRun, queries: Sequence[KeyQuery], touched: _Touched) -> pa.Table:
    """Return the keys that SQL finds."""
    try:
        distinct = [query.sql.over(touched.relation) for query in queries]
        return run.views.query(separated(" union ", distinct))
    except AnalysisException as error:
        if not is_about_distinct(error):
            raise
        # Spark has no DISTINCT of maps.
        repeating = [query.repeating.over(touched.relation) for query in queries]
        return run.views.query(separated(" union all ", repeating))


def _distinct(pieces: Sequence[pa.Table], zone: TimeZone) -> pa.Table:
    """Return the distinct rows of all pieces.

    Raises:
        Inapplicable: KEY_NOT_IN_OUTPUT, for keys of types that have no common one, or that Arrow
            does not group by.
    """
    names = pieces[0].column_names
    fields = [
        pa.field(name, _common_type([piece.schema.field(name).type for piece in pieces], zone))
        for name in names
    ]
    try:
        stacked = pa.concat_tables([_as_types(piece, fields) for piece in pieces])
        return stacked.combine_chunks().group_by(names, use_threads=False).aggregate([])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _not_comparable(str(error).splitlines()[0]) from error


def _as_types(rows: pa.Table, fields: Sequence[pa.Field]) -> pa.Table:
    """Return keys in their common types; pa.ArrowInvalid for a date that is no timestamp."""
    columns = [
        rows.column(field.name).cast(field.type, safe=is_time(field.type)) for field in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _with_blanks(keys: pa.Table, name: str) -> pa.Table:
    """Return keys in which NULL and the table's form of NULL go together."""
    place, column = keys.column_names.index(name), keys.column(name)
    if not pa.types.is_string(column.type):
        return keys
    rows = keys.filter(is_blank(column))
    both = [
        rows.set_column(place, name, pa.repeat(pa.scalar(value, pa.string()), rows.num_rows))
        for value in (None, *BLANKS)
    ]
    return pa.concat_tables([keys.filter(pc.invert(is_blank(column))), *both])


def _common_type(kinds: Sequence[pa.DataType], zone: TimeZone) -> pa.DataType:
    """Return the type in which Spark compares keys of any two of these types.

    Raises:
        Inapplicable: KEY_NOT_IN_OUTPUT, if there is none.
    """
    distinct = list(dict.fromkeys(kinds))
    common: pa.DataType | None = distinct[0]
    for kind in distinct[1:]:
        common = None if common is None else compared_as(common, kind, is_utc=zone.is_utc)
    for left, right in combinations(distinct, 2):
        if not compares_exactly(left, right) and compared_as(left, right) != common:
            common = None
    # Arrow rounds a decimal to a double otherwise than Spark.
    is_rounded = common is not None and pa.types.is_floating(common)
    if common is None or (is_rounded and any(map(pa.types.is_decimal, distinct))):
        raise _not_comparable(f"they are {', '.join(map(str, distinct))}")
    return common


def _not_comparable(why: str) -> Inapplicable:
    message = f"the keys of the affected rows cannot be compared: {why}"
    return refusal("KEY_NOT_IN_OUTPUT", message)


class _Touched:
    """The touched rows of a model's occurrences, read and named at most once."""

    def __init__(self, run: ModelRun, windows: Mapping[int, Windows]) -> None:
        self._run = run
        self._windows = windows
        self._touched = cache(lambda occurrence: touched_rows(run, run.inputs[occurrence]))
        self._rows: dict[int, pa.Table] = {}
        self._views: dict[tuple[str, int], Statement] = {}

    def rows(self, occurrence: int) -> pa.Table:
        """Return the touched rows that may affect something: in a window before or after."""
        if occurrence not in self._rows:
            rows = self._touched(occurrence)
            if occurrence in self._windows and rows.num_rows:
                source = self._run.inputs[occurrence]
                within = rows_in_windows(self._run, source, self._windows[occurrence])
                rows = rows if within.is_whole else rows.filter(within.matches(rows))
            self._rows[occurrence] = rows
        return self._rows[occurrence]

    def relation(self, asked: RowsOf) -> Statement:
        """Return the text by which a statement reads some rows of an occurrence."""
        occurrence = asked.occurrence
        if asked.kind == "touched":
            return self._view("touched", occurrence, with_both_zeros(self.rows(occurrence)))
        present = self._run.views.whole(self._run.inputs[occurrence].new)
        rows = self._touched(occurrence)
        if asked.kind == "present" or rows.num_rows == 0:
            return present
        listed = ", ".join(map(quoted, rows.column_names))
        past = self._view("past", occurrence, rows)
        return template(
            f"(select {listed} from ", present, f" union all select {listed} from ", past, ")"
        )

    def _view(self, kind: str, occurrence: int, rows: pa.Table) -> Statement:
        if (kind, occurrence) not in self._views:
            name = f"{kind}_{occurrence}"
            self._views[kind, occurrence] = self._run.views.of_rows(name, rows)
        return self._views[kind, occurrence]


def _plain(rows: pa.Table, columns: Iterable[str | int], names: Mapping[str, str]) -> pa.Table:
    arrays = []
    for column in columns:
        if isinstance(column, int):
            constant = pa.repeat(pa.scalar(column, pa.int32()), rows.num_rows)
            arrays.append(pa.chunked_array([constant]))
        else:
            arrays.append(rows.column(names[column]))
    return pa.table(arrays, names=[f"w{index}" for index in range(len(arrays))])


def _islands(points: pa.Table, keys: int, before: int, after: int) -> pa.Table:
    """Merge the intervals [t - after, t + before] around each point, per key.

    Source: gaps and islands; a key with many islands is covered by one hull, which only widens.
    """
    names = points.column_names
    # By numbers: neither a time of any year nor a key of any type is a value of Python's.
    codes = row_codes([points.column(name) for name in names[:keys]], points.num_rows).tolist()
    time = points.column(names[keys])
    if not is_time(time.type):
        time = pa.chunked_array([pa.nulls(points.num_rows, pa.timestamp("us"))])
    times, is_null = micros_of(time)
    place_of: dict[int, int] = {}
    intervals_of: dict[int, list[tuple[int, int]]] = {}
    # NULL times see each other in every frame: the key's whole partition is affected.
    whole = {codes[place] for place in np.flatnonzero(is_null).tolist()}
    for place, (key, at) in enumerate(zip(codes, times.tolist(), strict=True)):
        place_of.setdefault(key, place)
        if key not in whole:
            intervals_of.setdefault(key, []).append((at - after, at + before))
    rows = [(place_of[key], -EVER, EVER, True) for key in whole]
    for key, intervals in intervals_of.items():
        merged: list[list[int]] = []
        for low, high in sorted(intervals):
            if merged and low <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        if len(merged) > MOST_INTERVALS_OF_A_KEY:
            merged = [[merged[0][0], merged[-1][1]]]
        rows.extend((place_of[key], low, high, False) for low, high in merged)
    places, lows, highs, nulls = zip(*rows, strict=True) if rows else ((), (), (), ())
    of_keys = points.select(names[:keys]).take(pa.array(places, pa.int64()))
    bounds = [
        pa.array([min(max(value, -EVER), EVER) for value in values], pa.int64())
        for values in (lows, highs)
    ]
    return pa.table(
        [*of_keys.columns, *bounds, pa.array(nulls, pa.bool_())],
        names=[*names[:keys], "low", "high", "has_null"],
    )


def _with_bounds(affected: pa.Table, kind: pa.DataType) -> pa.Table:
    """Return the region with its bounds in the type of its time, for SQL.

    Else Spark would compare a date with an instant, by the clock of the session.
    """
    kind = kind if pa.types.is_date(kind) else pa.timestamp("us", tz=kind.tz and "UTC")
    for name in ("low", "high"):
        micros = one_array(affected.column(name)).to_numpy()
        bounds = bounding_times(micros, kind, rounds_up=name == "low")
        place = affected.column_names.index(name)
        affected = affected.set_column(place, name, bounds)
    return affected


def _semi_join(run: ModelRun, region: Region, affected: pa.Table, qualifier: str) -> Statement:
    """Return the join that leaves those rows of `qualifier` that are in the region."""
    time = _time_of(run, region)
    area = run.views.of_rows("area", affected if time is None else _with_bounds(affected, time))
    conditions = [
        f"a.w{index} <=> {qualifier}.{quoted(name)}" for index, name in enumerate(region.keys)
    ]
    if region.time is not None:
        at = f"{qualifier}.{quoted(region.time)}"
        conditions.append(f"({at} between a.low and a.high or (a.has_null and {at} is null))")
    condition = " and ".join(conditions) or "true"
    return template(
        " left semi join (select /*+ broadcast(s) */ * from ", area, f" as s) as a on {condition}"
    )
