"""Proofs: what shows, without looking at every row, that a data test that passed still passes.

Three kinds. The model's SQL itself makes a key unique. The new rows alone decide a test of single
rows, and a look-up of their keys one of uniqueness. A test whose SQL is linear is run over the new
rows instead of all. What none of them shows is run in full: a proof never says that a test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from livemart.engine.tables import WEIGHT, Warehouse
from livemart.errors import RefreshError
from livemart.plan.flatten import Flat, flatten
from livemart.plan.planner import Inputs, Plan, plan_query
from livemart.plan.project_plans import views_of
from livemart.plan.reasons import Unplannable
from livemart.project.graph import DataTest, Project

# Above this a test in full is cheaper than a look-up of the changed keys, or a view of new rows.
_MOST_KEYS = 20_000
_MOST_NEW_ROWS = 400_000
_COMBINATIONS = ("unique_combination", "unique_combination_of_columns")


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of all stored tables, by relation, at the frontier and now.

    `before` leaves out tables that are new or rebuilt: their tests run in full.
    """

    before: Mapping[str, int]
    now: Mapping[str, int]

    def is_unchanged(self, relation: str) -> bool:
        """True if the table is the one of the frontier."""
        return relation in self.now and self.before.get(relation) == self.now[relation]


class Prover:
    """Knows the tests of one project as planned; made once, used for every batch."""

    def __init__(self, project: Project, plans: Mapping[str, Plan]) -> None:
        self.project = project
        self._plans = plans
        self._views = views_of(project)
        self._flats: dict[str, Flat | None] = {}
        self._linear: dict[str, Plan | None] = {}
        self._keys: dict[str, tuple[str, ...]] = {}

    def flat(self, test: DataTest) -> Flat | None:
        """Return the test's SQL with its views inlined, None if it cannot be taken apart."""
        if test.unique_id not in self._flats:
            try:
                self._flats[test.unique_id] = flatten(test.compiled_code, self._views)
            except Unplannable:
                self._flats[test.unique_id] = None
        return self._flats[test.unique_id]

    def is_shown(self, test: DataTest, warehouse: Warehouse, versions: Versions) -> bool:
        """Return True if the tested model's SQL, or its new rows, show that the test passes."""
        has_filter = "dbt_subquery" in test.compiled_code
        if has_filter or test.warn_if != "!= 0" or test.error_if != "!= 0":
            return False
        if self._is_unique_by_sql(test, warehouse):
            return True
        show = _SHOWN_BY_NEW_ROWS.get(test.kind or "")
        node = self.project.models.get(test.attached_to or "") or self.project.sources.get(
            test.attached_to or ""
        )
        flat = self.flat(test)
        if show is None or node is None or flat is None or flat.relations != (node.relation,):
            return False
        new_rows = _new_rows(warehouse, versions, node.relation)
        if new_rows is None:
            return False
        here = _Place(warehouse, node.relation, versions.now[node.relation])
        return new_rows.num_rows == 0 or show(test, new_rows, here)

    def new_rows_to_test(
        self, test: DataTest, warehouse: Warehouse, versions: Versions
    ) -> Mapping[int, pa.Table] | None:
        """Return the rows, by occurrence, that are enough to run a test of linear SQL over.

        Occurrences that are left out are read whole. None: the test must see all rows.
        """
        plan = self._linear_plan(test, warehouse)
        if plan is None or plan.flat is None or plan.signed is None:
            return None
        anchors = set(plan.signed.anchors)
        rows: dict[int, pa.Table] = {}
        for occurrence in plan.flat.occurrences:
            if occurrence.index in anchors:
                found = _new_rows(warehouse, versions, occurrence.relation)
                if found is None or found.num_rows > _MOST_NEW_ROWS:
                    return None
                rows[occurrence.index] = found
            elif not versions.is_unchanged(occurrence.relation):
                return None
        return rows

    def _linear_plan(self, test: DataTest, warehouse: Warehouse) -> Plan | None:
        """Return the plan of a test in which each row found comes from one row of one table."""
        if test.unique_id not in self._linear:
            plan = plan_query(test.compiled_code, self._inputs(warehouse))
            is_linear = (
                plan.signed is not None
                and plan.signed.outputs is None
                and not plan.slices
                and not plan.is_volatile
                and test.limit is None
                and test.fail_calc == "count(*)"
                and test.warn_if == test.error_if == "!= 0"
            )
            self._linear[test.unique_id] = plan if is_linear else None
        return self._linear[test.unique_id]

    def _is_unique_by_sql(self, test: DataTest, warehouse: Warehouse) -> bool:
        columns = {name.lower() for name in _tested_columns(test)}
        key = {name.lower() for name in self._key_of(test.attached_to or "", warehouse)}
        return bool(key) and key <= columns

    def _key_of(self, unique_id: str, warehouse: Warehouse) -> tuple[str, ...]:
        """Return the columns that a node's SQL makes unique; landing keeps a source's keys so."""
        if unique_id not in self._keys:
            source, model = (
                self.project.sources.get(unique_id),
                self.project.models.get(unique_id),
            )
            key: tuple[str, ...] = ()
            if source is not None and source.stream is not None:
                key = source.stream.keys
            elif model is not None and model.materialized == "view" and model.compiled_code:
                key = plan_query(model.compiled_code, self._inputs(warehouse)).unique_key
            elif model is not None and model.is_stored:
                key = self._plans[unique_id].unique_key
            self._keys[unique_id] = key
        return self._keys[unique_id]

    def _inputs(self, warehouse: Warehouse) -> Inputs:
        columns: dict[str, tuple[str, ...]] = {}
        unique: dict[str, tuple[tuple[str, ...], ...]] = {}
        for source in self.project.sources.values():
            if warehouse.exists(source.relation):
                columns[source.relation] = tuple(warehouse.arrow_schema(source.relation).names)
            if source.stream is not None and source.stream.keys:
                unique[source.relation] = (source.stream.keys,)
        for unique_id, model in self.project.models.items():
            if model.is_stored and warehouse.exists(model.relation):
                columns[model.relation] = tuple(warehouse.arrow_schema(model.relation).names)
                if key := self._plans[unique_id].unique_key or model.primary_key:
                    unique[model.relation] = (key,)
        clock = self.project.clock
        clocks = frozenset({clock.relation} if clock else ())
        return Inputs(columns, unique, self._views, clocks)


@dataclass(frozen=True, slots=True)
class _Place:
    """A table at the version that is tested."""

    warehouse: Warehouse
    relation: str
    version: int


def _new_rows(warehouse: Warehouse, versions: Versions, relation: str) -> pa.Table | None:
    """Return the rows that are there now and were not before, with `_weight`; None if unknown."""
    before, now = versions.before.get(relation), versions.now.get(relation)
    if before is None or now is None:
        return None
    try:
        changed = warehouse.changes(relation, before, now)
    except RefreshError:
        return None
    return changed.filter(pc.greater(changed[WEIGHT], 0)).combine_chunks()


def _is_not_null(test: DataTest, new_rows: pa.Table, here: _Place) -> bool:
    name = _column(test.column_name, new_rows)
    return name is not None and new_rows[name].null_count == 0


def _is_accepted(test: DataTest, new_rows: pa.Table, here: _Place) -> bool:
    name = _column(test.column_name, new_rows)
    values = test.arguments.get("values")
    if name is None or not isinstance(values, list | tuple):
        return False
    found = pc.unique(new_rows[name]).drop_null()
    # Other types are compared as Spark casts them: leave that to Spark.
    if pa.types.is_string(found.type) or pa.types.is_large_string(found.type):
        accepted = {str(value) for value in values}
    elif pa.types.is_integer(found.type) and all(type(value) is int for value in values):
        accepted = set(values)
    else:
        return False
    return all(value in accepted for value in found.to_pylist())


def _are_keys_single(test: DataTest, new_rows: pa.Table, here: _Place) -> bool:
    """Return True if each key among the new rows occurs once in the table as it is now."""
    names = [_column(name, new_rows) for name in _tested_columns(test)]
    if not names or None in names:
        return False
    keys = [name for name in names if name is not None]
    if test.kind == "unique":
        new_rows = new_rows.filter(pc.is_valid(new_rows[keys[0]]))
    if new_rows.num_rows == 0:
        return True
    if new_rows.num_rows > _MOST_KEYS or pc.max(new_rows[WEIGHT]).as_py() > 1:
        return False
    if any(new_rows[name].null_count for name in keys):
        # Arrow never joins NULL keys: leave them to Spark.
        return False
    try:
        wanted = new_rows.select(keys).group_by(keys).aggregate([])
        if wanted.num_rows < new_rows.num_rows:
            return False
        stored = here.warehouse.read(
            here.relation, here.version, columns=keys, filter=_among(wanted)
        )
        found = stored.join(wanted, keys, join_type="left semi")
        return bool(found.group_by(keys).aggregate([]).num_rows == found.num_rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        # A key of a type that Arrow does not group or join by.
        return False


def _among(keys: pa.Table) -> ds.Expression:
    """Return a filter that holds for all rows with one of `keys`, and for some others.

    Bounds come first: file statistics prune by them.
    """
    expression = ds.scalar(True)
    for name in keys.column_names:
        values = pc.unique(keys[name])
        field = ds.field(name)
        condition = field.isin(values)
        if not (pa.types.is_nested(values.type) or pa.types.is_boolean(values.type)):
            bounds = pc.min_max(values)
            condition = (field >= bounds["min"]) & (field <= bounds["max"]) & condition
        expression = expression & condition
    return expression


def _tested_columns(test: DataTest) -> tuple[str, ...]:
    """Return the columns that a test wants unique together, none if it is another test."""
    if test.kind == "unique":
        return ((test.column_name or "").strip("` "),)
    if test.kind in _COMBINATIONS:
        for name in ("columns", "combination_of_columns", "column_names"):
            found = test.arguments.get(name)
            if isinstance(found, list | tuple):
                return tuple(str(each).strip("` ") for each in found)
    return ()


def _column(name: str | None, table: pa.Table) -> str | None:
    """Return the table's spelling of a column that a test names, None if it is an expression."""
    bare = (name or "").strip("` ").lower()
    return next((own for own in table.column_names if own.lower() == bare), None)


_SHOWN_BY_NEW_ROWS: Mapping[str, Callable[[DataTest, pa.Table, _Place], bool]] = {
    "not_null": _is_not_null,
    "accepted_values": _is_accepted,
    "unique": _are_keys_single,
    "unique_combination": _are_keys_single,
    "unique_combination_of_columns": _are_keys_single,
}
