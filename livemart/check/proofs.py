"""Proofs: what shows, without looking at every row, that a data test that passed still passes.

Three kinds. The model's SQL itself makes a key unique. The new rows alone decide a test of single
rows, and a look-up of their keys one of uniqueness. A test whose SQL is linear is run over the new
rows instead of all; if some rows failed it before, then over the gone rows, too, and the difference
is how many fail now. What none of them shows is run in full.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import pyarrow as pa

from livemart.check.row_proofs import OF_VALUES, SHOWN_BY_NEW_ROWS, Place, tested_columns
from livemart.check.versions import Versions, new_rows, repeated_rows
from livemart.delta.warehouse import Warehouse
from livemart.plan.planner import Inputs, Plan, plan_query
from livemart.plan.project_plans import views_of
from livemart.plan.reasons import Unplannable
from livemart.plan.sql.flatten import Flat, flatten
from livemart.plan.strategies.signed import Signed
from livemart.project.graph import DataTest, Project

# Above this a test in full is cheaper than a view of the rows that changed.
_MOST_NEW_ROWS = 400_000


@dataclass(frozen=True, slots=True)
class RowTest:
    """A test over some rows: its SQL, and by occurrence what it reads instead of a whole table."""

    flat: Flat
    rows: Mapping[int, pa.Table]

    @property
    def is_empty(self) -> bool:
        """True if nothing came or went."""
        return not any(found.num_rows for found in self.rows.values())


@dataclass(frozen=True, slots=True)
class MovedTest:
    """A test that did not pass, of which so many rows failed before those came and these went."""

    test: DataTest
    known: int
    new: RowTest
    gone: RowTest

    def sides(self) -> list[tuple[DataTest, RowTest, int]]:
        """Return what is to be asked, each under a name of its own, and the sign of its answer."""
        return [
            (replace(self.test, unique_id=f"{self.test.unique_id} {name}"), rows, sign)
            for name, rows, sign in (("new", self.new, 1), ("gone", self.gone, -1))
            if not rows.is_empty
        ]

    def failures(self, answers: Mapping[str, int | None]) -> int | None:
        """Return how many rows fail now, None if an answer is lacking or contradicts it."""
        moved = self.known
        for side, _, sign in self.sides():
            count = answers.get(side.unique_id)
            if count is None:
                return None
            moved += sign * count
        return moved if moved >= 0 else None


class Prover:
    """Knows the tests of one project as planned; made once, used for every batch."""

    def __init__(self, project: Project, plans: Mapping[str, Plan]) -> None:
        self.project = project
        self._plans = plans
        self._views = views_of(project)
        self._flats: dict[str, Flat | None] = {}
        # By the text of the SQL.
        self._linear: dict[str, Plan] = {}
        # How many rows failed a test, and at which versions: as long as this process lives.
        self._failures: dict[str, tuple[int, Mapping[str, int]]] = {}
        self._keys: dict[str, tuple[str, ...]] = {}

    @cached_property
    def fingerprints(self) -> Mapping[str, str]:
        """The hash of each test's SQL, views inlined, and of what judges its failures."""
        return {unique_id: self._hash(test) for unique_id, test in self.project.tests.items()}

    def unedited(
        self, outcomes: Mapping[str, str], fingerprints: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the outcomes of those tests that are what they were when they had them.

        A test that was edited, or reads a view that was, proves nothing about its new self.
        """
        return {
            unique_id: status
            for unique_id, status in outcomes.items()
            if fingerprints.get(unique_id) == self.fingerprints.get(unique_id, "")
        }

    def _hash(self, test: DataTest) -> str:
        flat = self.flat(test)
        text = test.compiled_code if flat is None else flat.text
        read = () if flat is None else (each.relation for each in flat.occurrences)
        judged = (test.severity, test.warn_if, test.error_if, test.fail_calc, str(test.limit))
        return sha256("\n".join((text, *read, *judged)).encode()).hexdigest()

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
        if has_filter or not _fails_by_any_row(test):
            return False
        if self._is_unique_by_sql(test, warehouse):
            return True
        show = SHOWN_BY_NEW_ROWS.get(test.kind or "")
        flat = self.flat(test)
        if show is None or flat is None:
            return False
        is_shown = False
        for relation, column in self._origins(test, warehouse, versions):
            found = new_rows(warehouse, versions, relation)
            if found is None:
                return False
            here = Place(warehouse, relation, versions.now[relation])
            if found.num_rows and not show(replace(test, column_name=column), found, here):
                return False
            is_shown = True
        return is_shown

    def test_of_new_rows(
        self, test: DataTest, warehouse: Warehouse, versions: Versions
    ) -> RowTest | None:
        """Return the test over the rows that came, which are enough for a test that passed.

        None: the test must see all rows.
        """
        return self._over_changed_rows(test, warehouse, versions, _without_groups(test), 1)

    def moved_test(
        self, test: DataTest, warehouse: Warehouse, versions: Versions
    ) -> MovedTest | None:
        """Return what tells how many rows fail now, from how many failed at the frontier."""
        known = self._failures.get(test.unique_id)
        flat = self.flat(test)
        if known is None or flat is None:
            return None
        failures, seen = known
        if any(versions.before.get(name) != seen.get(name) for name in flat.relations):
            return None
        new, gone = (
            self._over_changed_rows(test, warehouse, versions, test.compiled_code, sign)
            for sign in (1, -1)
        )
        return None if new is None or gone is None else MovedTest(test, failures, new, gone)

    def remember(self, test: DataTest, failures: int | None, versions: Versions) -> None:
        """Note how many rows fail a test at these versions; what passes needs no note."""
        self._failures.pop(test.unique_id, None)
        if failures:
            self._failures[test.unique_id] = (failures, versions.now)

    def _over_changed_rows(
        self, test: DataTest, warehouse: Warehouse, versions: Versions, text: str, sign: int
    ) -> RowTest | None:
        if test.limit is not None or test.fail_calc != "count(*)" or not _fails_by_any_row(test):
            return None
        linear = self._linear_plan(text, warehouse)
        if linear is None:
            return None
        plan, signed = linear
        assert plan.flat is not None
        anchors = set(signed.anchors)
        rows: dict[int, pa.Table] = {}
        for occurrence in plan.flat.occurrences:
            if occurrence.index in anchors:
                found = repeated_rows(warehouse, versions, occurrence.relation, sign)
                if found is None or found.num_rows > _MOST_NEW_ROWS:
                    return None
                rows[occurrence.index] = found
            elif not versions.is_unchanged(occurrence.relation):
                return None
        return RowTest(plan.flat, rows)

    def _linear_plan(self, text: str, warehouse: Warehouse) -> tuple[Plan, Signed] | None:
        """Return the plan of SQL in which each row found comes from one row of one table."""
        if text not in self._linear:
            self._linear[text] = plan_query(text, self._inputs(warehouse))
        plan = self._linear[text]
        signed = plan.strategy
        if not isinstance(signed, Signed) or signed.outputs is not None or plan.slices:
            return None
        return plan, signed

    def _origins(
        self, test: DataTest, warehouse: Warehouse, versions: Versions
    ) -> Sequence[tuple[str, str | None]]:
        """Return the stored columns, by relation, that all values of a tested column are from.

        Of a test of several columns, only of a stored node. Empty: not known.
        """
        unique_id = test.attached_to or ""
        source, model = self.project.sources.get(unique_id), self.project.models.get(unique_id)
        node = source or model
        flat = self.flat(test)
        if node is None or flat is None:
            return ()
        if model is None or model.is_stored:
            return (
                ((node.relation, test.column_name),) if flat.relations == (node.relation,) else ()
            )
        if test.kind not in OF_VALUES or model.compiled_code is None:
            return ()
        linear = self._linear_plan(model.compiled_code, warehouse)
        if linear is None:
            return ()
        plan, signed = linear
        assert plan.flat is not None
        if set(plan.flat.relations) != set(flat.relations):
            return ()
        sites = signed.origins.get((test.column_name or "").strip("` ").lower(), ())
        names = {each.index: each.relation for each in plan.flat.occurrences}
        others = names.keys() - set(signed.anchors)
        if not all(versions.is_unchanged(names[occurrence]) for occurrence in others):
            # A row that a lookup newly lets through is none of the new rows.
            return ()
        return tuple((names[occurrence], column) for occurrence, column in sites)

    def _is_unique_by_sql(self, test: DataTest, warehouse: Warehouse) -> bool:
        columns = {name.lower() for name in tested_columns(test)}
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
            if (names := warehouse.column_names(source.relation)) is not None:
                columns[source.relation] = names
            if source.stream is not None and source.stream.keys:
                unique[source.relation] = (source.stream.keys,)
        for unique_id, model in self.project.models.items():
            if model.is_stored and (names := warehouse.column_names(model.relation)) is not None:
                columns[model.relation] = names
                if key := self._plans[unique_id].unique_key or model.primary_key:
                    unique[model.relation] = (key,)
        clock = self.project.clock
        clocks = frozenset({clock.relation} if clock else ())
        return Inputs(columns, unique, self._views, clocks)


def _fails_by_any_row(test: DataTest) -> bool:
    return test.warn_if == test.error_if == "!= 0"


_COUNTED = re.compile(r",\s*count\(\*\) as n_records\b")
_GROUPED = re.compile(r"\bgroup by [^()]*\)(?=\s*select \*\s+from all_values\b)")


def _without_groups(test: DataTest) -> str:
    """Return the SQL of a test; that of dbt's accepted_values without its GROUP BY.

    It looks at the keys of the groups alone: a group fails exactly if all of its rows do.
    """
    text = test.compiled_code
    found = [len(pattern.findall(text)) for pattern in (_COUNTED, _GROUPED)]
    if test.kind != "accepted_values" or found != [1, 1]:
        return text
    return _GROUPED.sub(")", _COUNTED.sub("", text))
