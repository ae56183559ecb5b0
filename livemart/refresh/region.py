"""Region recompute: T' = (T minus rows in A) + the analyst's SQL, restricted to A."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from livemart.arrow.bags import difference
from livemart.arrow.times import EVER, instant, micros
from livemart.delta.row_filter import RowFilter
from livemart.plan.reasons import Reason
from livemart.plan.relations.relation import Restriction
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.slices import Windows
from livemart.refresh.inputs import FallBack, stored_field
from livemart.refresh.model_run import ModelRun
from livemart.refresh.region_rows import is_comparable, lies_in, needed_rows
from livemart.refresh.touched_rows import rows_in_windows, touched_rows
from livemart.spark.differences import counted_difference, typed_columns
from livemart.spark_sql import quoted

_PRESENT = re.compile(r"__present_(\d+)__")
_KNOWN = re.compile(r"__known_(\d+)__")
_TOUCHED = re.compile(r"__touched_(\d+)__")
# A larger region costs more to join with than a full recompute.
_MOST_REGION_ROWS = 1_000_000
_MOST_ISLANDS = 8
# So many rows cost Spark less than it costs to leave some of them out.
_FEW_ROWS = 2_000


def refresh_region(run: ModelRun, region: Region) -> pa.Table | None:
    """Recompute the affected region of a model.

    Returns:
        Columns of the model plus `_old_count` and `_new_count`; None if nothing is affected.

    Raises:
        FallBack: if the region is too large.
    """
    affected = affected_region(run, region)
    if affected.num_rows == 0:
        return None
    names: dict[int, str] = {}
    for occurrence, restrictions in region.restrictions.items():
        if occurrence in run.plan.parameters:
            continue
        names[occurrence] = _input(run, occurrence, restrictions, affected)
    area = run.views.of_rows("area", _as_timestamps(affected) if region.time else affected)
    schema = run.stored_schema
    part = (
        f"select {typed_columns(schema, 'q')} from ({run.render('new', names)}) as q"
        f" {_semi_join(region, area, 'q')}"
    )
    relation, version, passing = run.model.relation, run.stored_version, _own(run, region, affected)
    if not run.views.is_large and is_comparable(region, affected, schema):
        stored = run.views.read(relation, version, passing).select(schema.names)
        kept = stored.filter(lies_in(region, affected, stored))
        return difference(run.views.query(part), kept)
    own = ", ".join(f"t.{quoted(name)}" for name in schema.names)
    view = run.views.slice("stored", relation, version, passing)
    known = f"select {own} from {view} as t {_semi_join(region, area, 't')}"
    sides = [(part, 0, 1), (known, 1, 0)]
    return run.views.query(counted_difference(schema, sides))


def _input(
    run: ModelRun, occurrence: int, restrictions: Sequence[Restriction], affected: pa.Table
) -> str:
    """Return the view of what the region needs of one input."""
    label, relation = f"new_{occurrence}", run.relation_of(occurrence)
    version, columns = run.version_of(occurrence, "new"), run.columns_of(occurrence)
    passing = run.filter_of(relation, restrictions, affected)
    if passing.is_whole or run.views.is_large:
        return run.views.slice(label, relation, version, passing, columns)
    rows = run.views.read(relation, version, passing, columns)
    if rows.num_rows > _FEW_ROWS:
        rows = needed_rows(restrictions, affected, rows)
    return run.views.padded(label, rows, run.warehouse.arrow_schema(relation, version))


def _own(run: ModelRun, region: Region, affected: pa.Table) -> RowFilter:
    """Return which of the model's own rows may lie in the region."""
    return run.filter_of(run.model.relation, [region.stored], affected)


def affected_region(run: ModelRun, region: Region) -> pa.Table:
    """Return the affected region of a batch.

    Returns:
        w0, w1, ... (the region's keys), distinct; with a time: also `low`, `high` (bigint,
        microseconds, both ends included) and `has_null`, disjoint intervals per key.
    """
    width = len(region.keys) + (1 if region.time is not None else 0)
    pieces: list[pa.Table] = []
    queries: list[str] = []
    touched = _Touched(run, region.windows)
    for item in region.affected:
        if item.occurrence in run.plan.parameters:
            continue
        rows = touched.rows(item.occurrence)
        if rows.num_rows == 0:
            continue
        if item.columns is not None:
            pieces.append(_plain(rows, item.columns))
            continue
        query = _TOUCHED.sub(lambda match: touched.view(int(match.group(1))), item.query)
        query = _KNOWN.sub(lambda match: touched.known(int(match.group(1))), query)
        queries.append(_PRESENT.sub(lambda match: _present(run, int(match.group(1))), query))
    if queries:
        pieces.append(run.views.query(" union ".join(queries)))
    names = [f"w{index}" for index in range(width)]
    if not pieces:
        return pa.table({name: pa.array([], pa.null()) for name in names})
    distinct = _distinct([piece.select(names) for piece in pieces])
    if distinct.num_rows > _MOST_REGION_ROWS:
        raise FallBack(Reason("COST_GATE", f"{distinct.num_rows} keys are affected", None))
    if region.time is None:
        return distinct.combine_chunks()
    return _islands(distinct, len(region.keys), region.before, region.after)


def _distinct(pieces: Sequence[pa.Table]) -> pa.Table:
    """Return the distinct rows of all pieces.

    Raises:
        FallBack: KEY_NOT_IN_OUTPUT, for keys of types that have no common one, or that Arrow does
            not group by.
    """
    try:
        stacked = pa.concat_tables(pieces, promote_options="permissive").combine_chunks()
        names = stacked.column_names
        return stacked.group_by(names, use_threads=False).aggregate([]).select(names)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        message = f"the keys of the affected rows cannot be compared: {error}"
        raise FallBack(Reason("KEY_NOT_IN_OUTPUT", message.splitlines()[0], None)) from error


class _Touched:
    """The touched rows of a model's occurrences, read and named at most once."""

    def __init__(self, run: ModelRun, windows: Mapping[int, Windows]) -> None:
        self._run = run
        self._windows = windows
        self._all: dict[int, pa.Table] = {}
        self._rows: dict[int, pa.Table] = {}
        self._views: dict[tuple[str, int], str] = {}

    def rows(self, occurrence: int) -> pa.Table:
        """Return the touched rows that may affect something: in a window before or after."""
        if occurrence not in self._rows:
            rows = self._touched(occurrence)
            if occurrence in self._windows and rows.num_rows:
                within = rows_in_windows(self._run, occurrence, self._windows[occurrence])
                rows = rows if within.is_whole else rows.filter(within.matches(rows))
            self._rows[occurrence] = rows
        return self._rows[occurrence]

    def view(self, occurrence: int) -> str:
        return self._view("touched", occurrence, self.rows(occurrence))

    def known(self, occurrence: int) -> str:
        """Return the rows of an occurrence as they are, and those of its touched rows before."""
        present, rows = _present(self._run, occurrence), self._touched(occurrence)
        if rows.num_rows == 0:
            return present
        listed = ", ".join(map(quoted, rows.column_names))
        return (
            f"(select {listed} from {present} union all"
            f" select {listed} from {self._view('past', occurrence, rows)})"
        )

    def _touched(self, occurrence: int) -> pa.Table:
        if occurrence not in self._all:
            self._all[occurrence] = touched_rows(self._run, occurrence)
        return self._all[occurrence]

    def _view(self, kind: str, occurrence: int, rows: pa.Table) -> str:
        if (kind, occurrence) not in self._views:
            name = f"{kind}_{occurrence}"
            self._views[kind, occurrence] = self._run.views.of_rows(name, rows)
        return self._views[kind, occurrence]


def _present(run: ModelRun, occurrence: int) -> str:
    return run.views.whole(run.relation_of(occurrence), run.version_of(occurrence, "new"))


def _plain(rows: pa.Table, columns: Iterable[str | int]) -> pa.Table:
    arrays = []
    for found in columns:
        if isinstance(found, int):
            arrays.append(
                pa.chunked_array([pa.repeat(pa.scalar(found, pa.int32()), rows.num_rows)])
            )
        else:
            arrays.append(rows.column(stored_field(rows.schema, found).name))
    return pa.table(arrays, names=[f"w{index}" for index in range(len(arrays))])


def _islands(points: pa.Table, keys: int, before: int, after: int) -> pa.Table:
    """Merge the intervals [t - after, t + before] around each point, per key.

    Source: gaps and islands; a key with many islands is covered by one hull, which only widens.
    """
    names = points.column_names
    found: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    whole: set[tuple[object, ...]] = set()
    columns = [points.column(name).to_pylist() for name in names]
    for row in zip(*columns, strict=True):
        key, time = row[:keys], row[keys]
        at = micros(time)
        if at is None:
            # NULL times see each other in every frame: the key's whole partition is affected.
            whole.add(key)
        else:
            found.setdefault(key, []).append((at - after, at + before))
    rows: list[tuple[object, ...]] = [(*key, -EVER, EVER, True) for key in whole]
    for key, intervals in found.items():
        if key in whole:
            continue
        merged: list[list[int]] = []
        for low, high in sorted(intervals):
            if merged and low <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        if len(merged) > _MOST_ISLANDS:
            merged = [[merged[0][0], merged[-1][1]]]
        rows.extend((*key, low, high, False) for low, high in merged)
    schema = pa.schema(
        [
            *(points.schema.field(name) for name in names[:keys]),
            pa.field("low", pa.int64()),
            pa.field("high", pa.int64()),
            pa.field("has_null", pa.bool_()),
        ]
    )
    arrays: list[tuple[object, ...]] = list(zip(*rows, strict=True)) or [() for _ in schema]
    return pa.table(
        [pa.array(list(values), field.type) for values, field in zip(arrays, schema, strict=True)],
        schema=schema,
    )


def _as_timestamps(affected: pa.Table) -> pa.Table:
    """Return the region with its bounds as timestamps, for SQL."""
    for name in ("low", "high"):
        moments = [instant(value) for value in affected.column(name).to_pylist()]
        place = affected.column_names.index(name)
        affected = affected.set_column(place, name, pa.array(moments, pa.timestamp("us", tz="UTC")))
    return affected


def _semi_join(region: Region, area: str, qualifier: str) -> str:
    conditions = [
        f"a.w{index} <=> {qualifier}.{quoted(name)}" for index, name in enumerate(region.keys)
    ]
    if region.time is not None:
        time = f"{qualifier}.{quoted(region.time)}"
        conditions.append(f"({time} between a.low and a.high or (a.has_null and {time} is null))")
    condition = " and ".join(conditions) or "true"
    return f"left semi join (select /*+ broadcast(s) */ * from {area} as s) as a on {condition}"
