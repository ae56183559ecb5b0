"""Resolves the inputs of a batch: each table at two versions, before and now.

Used by every refresh of a model, in several threads. Versions are pinned once per batch, before the
first model; each mention of a table in a model's SQL is resolved once, before a strategy begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import Literal

import pyarrow as pa

from livemart.arrow.bags import WEIGHT
from livemart.arrow.variants import nothing_of
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.plan.plan import Plan
from livemart.plan.project_plans import ProjectPlans, view_relations
from livemart.plan.reasons import Inapplicable, Reason, refusal
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.used_columns import open_names
from livemart.plan.stored_queries import is_stage_table
from livemart.refresh.frontier import Broken, Rebuild, Start
from livemart.refresh.pinned_table import PinnedTable
from livemart.state.snapshots import ModelState, Snapshot

Side = Literal["old", "new"]


@dataclass
class PinnedInputs:
    """The versions of every table before and in this batch, by relation.

    `states`: of each stored query at the frontier, by unique id.
    """

    warehouse: Warehouse
    old: Mapping[str, int]
    new: dict[str, int]
    states: Mapping[str, ModelState] = field(default_factory=dict)
    _empty: dict[str, bool] = field(default_factory=dict)
    _values: dict[tuple[PinnedTable, str], object] = field(default_factory=dict)
    _tables: dict[tuple[str, int], PinnedTable] = field(default_factory=dict)

    @cached_property
    def schemas(self) -> InputSchemas:
        """The changes of the inputs' columns."""
        return InputSchemas(self.warehouse, self.old, self.new)

    def at(self, relation: str, version: int) -> PinnedTable:
        """Return a table at a version; models share the opened tables."""
        if (relation, version) not in self._tables:
            self._tables[relation, version] = PinnedTable(self.warehouse, relation, version)
        return self._tables[relation, version]

    def newest(self, relation: str) -> PinnedTable | None:
        """Return a table at its newest version, None if there is none."""
        if not self.warehouse.exists(relation):
            return None
        return self.at(relation, self.warehouse.version(relation))

    def one_value(self, table: PinnedTable, name: str) -> pa.Scalar:
        """Return the value of a column of a table of one row; models share it.

        Raises:
            Inapplicable: CLOCK_NOT_ONE_ROW.
        """
        if (table, name) not in self._values:
            rows = self.warehouse.read(table.relation, table.version, columns=[name])
            if rows.num_rows != 1:
                message = f"{table.relation} has {rows.num_rows} rows"
                raise refusal("CLOCK_NOT_ONE_ROW", message)
            self._values[table, name] = rows.column(0)[0]
        return self._values[table, name]

    def has_news(self, plan: Plan, relations: Iterable[str]) -> bool:
        """Return True if something may be new since the frontier in the tables that a plan reads.

        Raises:
            Inapplicable: FINGERPRINT_CHANGED, if the model may have other columns by now.
        """
        reason = None if plan.flat is None else self.schemas.changed(plan.flat, plan.used)
        if reason is not None:
            raise Inapplicable(reason)
        return any(map(self.may_have_changed, relations))

    def has_changed(self, relation: str) -> bool:
        """Return True if the table's rows differ between the frontier and this batch."""
        if self.old.get(relation) == self.new[relation]:
            return False
        if relation not in self._empty:
            self._empty[relation] = self.changes(relation).num_rows == 0
        return not self._empty[relation]

    def may_have_changed(self, relation: str) -> bool:
        """Return True also of a table whose change is not known."""
        if relation not in self.new or relation not in self.old:
            # It is stored elsewhere, or is read for the first time.
            return True
        try:
            return self.has_changed(relation)
        except RefreshError as error:
            if error.code not in ("CDF_UNAVAILABLE", "TABLE_MISSING", "VERSION_GONE"):
                raise
            return True

    def changes(self, relation: str) -> pa.Table:
        """Return the net change since the frontier: columns of the table plus `WEIGHT`.

        Raises:
            RefreshError: CDF_UNAVAILABLE.
        """
        return self.warehouse.changes(relation, self.old[relation], self.new[relation])

    def resolve(self, plan: Plan, relation: str) -> tuple[PinnedTable, tuple[Input, ...]]:
        """Return a model's own table as of the frontier, and those that its SQL mentions, in order.

        Raises:
            Inapplicable: PARSE_UNSUPPORTED, if its own has columns that the analysis does not know;
                INPUT_NOT_IN_DELTA, NEW_MODEL or CDF_UNAVAILABLE, if another has no version to start
            from.
        """
        stored, inputs = self.at(relation, self.old[relation]), []
        _require_names(plan, stored)
        for occurrence in plan.flat.occurrences if plan.flat is not None else ():
            relation = occurrence.relation
            if relation not in self.new:
                message = f"{relation} is not a Delta table of the warehouse"
                raise refusal("INPUT_NOT_IN_DELTA", message)
            if relation not in self.old:
                if is_stage_table(relation):
                    raise refusal("NEW_MODEL", f"{relation} is new")
                raise refusal("CDF_UNAVAILABLE", f"{relation} was rebuilt")
            new = self.at(relation, self.new[relation])
            used = plan.used.get(occurrence.index)
            columns = [name for name in new.schema.names if used is None or name.lower() in used]
            has_changed = self.has_changed(relation)
            images = self.changes(relation) if has_changed else _no_images(new.schema)
            columns = columns or new.schema.names
            inputs.append(Input(self, occurrence.index, new, tuple(columns), images, has_changed))
        return stored, tuple(inputs)


def _require_names(plan: Plan, stored: PinnedTable) -> None:
    """Refuse a table with columns that the analysis does not know.

    An expression without a name gets one from Spark, and some generators make several columns.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED.
    """
    names = {name.lower() for name in plan.names}
    unknown = [it for it in stored.schema.names if it.lower() not in names]
    if names and unknown:
        message = f"column {unknown[0]} comes from an expression without a name"
        raise refusal("PARSE_UNSUPPORTED", message, suggestion="name it in the select list")


def _no_images(schema: pa.Schema) -> pa.Table:
    return nothing_of(schema.append(pa.field(WEIGHT, pa.int64())))


def pin_inputs(
    warehouse: Warehouse,
    plans: ProjectPlans,
    frontier: Snapshot,
    sources: Mapping[str, int],
    starts: Mapping[str, Start],
) -> PinnedInputs:
    """Return the versions that this batch starts from and reads; models add theirs as they end.

    Args:
        warehouse: holds the tables.
        plans: of the project.
        frontier: the newest snapshot, where every change set starts.
        sources: version of each source table in this batch, the clock included.
        starts: of the stored queries, by unique id.
    """
    old = dict(frontier.sources)
    for unique_id, state in frontier.stored.items():
        if (query := plans.stored.get(unique_id)) is None:
            continue
        if query.is_stage and unique_id in frontier.aside:
            # Its owner has gone on without it.
            continue
        # A table written from outside and rebuilt in place still has its net change in the log; a
        # table that was created again has not.
        if not isinstance(starts.get(unique_id), Rebuild | Broken) or (
            warehouse.exists(query.relation)
            and warehouse.table_id(query.relation) == state.table_id
        ):
            old[query.relation] = state.version
    new = dict(sources)
    # The snapshot log does not know tables that models name and the project does not declare: a
    # model that reads one is recomputed in every batch. A view is read by its name, whatever table
    # once had that name.
    of_project = {query.relation for query in plans.stored.values()}
    of_project |= view_relations(plans.project)
    for query in plans.stored.values():
        for relation in query.reads:
            if relation not in of_project and relation not in new and warehouse.exists(relation):
                new[relation] = warehouse.version(relation)
    return PinnedInputs(warehouse, old, new, frontier.stored)


@dataclass(frozen=True)
class Input:
    """A mention of a table in a model's SQL, with all that a strategy asks of it in a batch.

    `new`: the table as of the batch. `columns`: the stored ones that the query needs, or all if it
    needs none. `images`: old and new images of the changed rows, with `WEIGHT` and every column.
    """

    pinned: PinnedInputs
    index: int
    new: PinnedTable
    columns: tuple[str, ...]
    images: pa.Table
    has_changed: bool

    @cached_property
    def old(self) -> PinnedTable:
        """The table as of the frontier; few strategies read it, and it may be gone by now."""
        return self.pinned.at(self.new.relation, self.pinned.old[self.new.relation])

    def at(self, side: Side) -> PinnedTable:
        return self.new if side == "new" else self.old

    def value(self, name: str, side: Side) -> pa.Scalar:
        """Return a column of a table of one row as of `side`.

        Raises:
            Inapplicable: CLOCK_NOT_ONE_ROW.
        """
        table = self.at(side)
        return self.pinned.one_value(table, table.names[name])


class InputSchemas:
    """The columns of every input, then and now; compared once per relation.

    A new column, or a changed type, is no change of rows: added to every row as NULL, or cast, it
    nets to nothing. So the schemas of the frontier's version and of the new one are compared,
    wherever a commit between them could have changed them.
    """

    def __init__(
        self, warehouse: Warehouse, old: Mapping[str, int], new: Mapping[str, int]
    ) -> None:
        self._warehouse = warehouse
        self._old, self._new = old, new
        self._differing, self._open_names = cache(self._compare), cache(open_names)

    def changed(
        self, flat: Flat, used: Mapping[int, frozenset[str]] = MappingProxyType({})
    ) -> Reason | None:
        """Return why a query may yield other columns than at the frontier, None if it cannot.

        `used`: stored columns that it needs, in lower case, by occurrence; those left out: all.
        """
        for occurrence in flat.occurrences:
            relation, needed = occurrence.relation, used.get(occurrence.index)
            retyped, named, moved = self._differing(relation)
            if needed is not None:
                retyped = frozenset(name for name in retyped if name.lower() in needed)
            if retyped:
                return _reason(relation, retyped)
            if named or moved:
                names = self._open_names(flat)
                if names is None or not names.isdisjoint(map(str.lower, named)):
                    return _reason(relation, named or moved)
        return None

    def _compare(self, relation: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """Return the columns with another type, those that came or went, and those that moved."""
        old, new = self._old.get(relation), self._new.get(relation)
        same = frozenset[str](), frozenset[str](), frozenset[str]()
        if old is None or new is None or old >= new:
            return same
        try:
            commits = self._warehouse.data_changed_between(relation, old, new)
            if not any(commit is None or commit.table_id is not None for commit in commits):
                return same
            before, now = (
                self._warehouse.arrow_schema(relation, version) for version in (old, new)
            )
        except RefreshError as error:
            if error.code not in ("TABLE_MISSING", "VERSION_GONE"):
                raise
            # The change of its rows cannot be read either: its readers are recomputed anyway.
            return same
        old_types, types = (
            {field.name: field.type for field in schema} for schema in (before, now)
        )
        common = types.keys() & old_types.keys()
        retyped = {name for name in common if types[name] != old_types[name]}
        came, moved = types.keys() ^ old_types.keys(), set[str]()
        if not came:
            moved = {name for name, other in zip(types, old_types, strict=True) if name != other}
        return frozenset(retyped), frozenset(came), frozenset(moved)


def _reason(relation: str, names: frozenset[str]) -> Reason:
    listed = ", ".join(sorted(names))
    return Reason("FINGERPRINT_CHANGED", f"columns of {relation} changed: {listed}", None)
