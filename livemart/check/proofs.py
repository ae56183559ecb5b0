"""Shows, without looking at every row, that a data test that passed still passes.

Used by the checks. There are three kinds of proof. The model's SQL itself makes a key unique. The
new rows alone decide a test of single rows, and a look-up of their keys one of uniqueness. A test
whose SQL is linear is run over the new rows instead of all.

If some rows failed such a test before, it is run over the gone rows, too, and the difference is how
many fail now (ADR-0017). All else is run in full.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import WEIGHT
from livemart.check.versions import CheckedVersions, repeated_rows, rows_of_sign
from livemart.delta.row_filter import equal_in, narrows
from livemart.delta.warehouse import Warehouse
from livemart.limits import MOST_NEW_ROWS
from livemart.own_faults import OwnFaults
from livemart.plan.project_plans import FIXED_RUNS, ProjectPlans, as_in_run, views_of
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import Flat, flatten
from livemart.project.graph import DataTest
from livemart.spark_sql import stored_name, unquoted

# Reads the table at the version that is tested, in part; see `Warehouse.read`.
Read = Callable[..., pa.Table]

# Above this a test in full is cheaper than a look-up of the changed keys.
_MOST_KEYS = 20_000
_ESCAPED = re.compile(r"[\\']")
_COMBINATIONS = ("unique_combination", "unique_combination_of_columns")


@dataclass(frozen=True, slots=True)
class RowTest:
    """A test over some rows: its SQL, and by occurrence the rows that replace a whole table."""

    flat: Flat
    rows: Mapping[int, pa.Table]

    @property
    def is_empty(self) -> bool:
        """True if nothing came or went."""
        return not any(rows.num_rows for rows in self.rows.values())


@dataclass(frozen=True, slots=True)
class ChangedTest:
    """A test over the rows that changed since it ran last."""

    test: DataTest
    new: RowTest
    failed: int = 0
    """The number of rows that failed then."""
    removed: RowTest | None = None
    """None for a test that passed, as none of the rows that went failed."""

    def sides(self) -> list[tuple[DataTest, RowTest, int]]:
        """Return the tests to run, each under a separate name, and the sign of each answer."""
        return [
            (replace(self.test, unique_id=f"{self.test.unique_id} {name}"), rows, sign)
            for name, rows, sign in (("new", self.new, 1), ("gone", self.removed, -1))
            if rows is not None and not rows.is_empty
        ]

    def failures(self, answers: Mapping[str, int | None]) -> int | None:
        """Return how many rows fail now, None if an answer is lacking or contradicts it.

        The new rows of a test that passed may be looked at without the groups that it counts.
        """
        moved = self.failed
        for side, _, sign in self.sides():
            count = answers.get(side.unique_id)
            if count is None:
                return None
            moved += sign * count
        return None if moved < 0 or (moved and not self.failed) else moved


class Prover:
    """Knows the tests of one project as planned; made once, used for every batch."""

    def __init__(self, plans: ProjectPlans, own_faults: OwnFaults | None = None) -> None:
        self.project = plans.project
        self._plans = plans
        self.own_faults = own_faults or OwnFaults()
        # How many rows failed a test, and at which versions: as long as this process lives.
        self._failures: dict[str, tuple[int, Mapping[str, int]]] = {}

    @cached_property
    def fingerprints(self) -> Mapping[str, str]:
        """The hash of each test's SQL, views inlined, and of its settings that judge failures."""
        return {unique_id: self._hash(test) for unique_id, test in self.project.tests.items()}

    def renewed(self, plans: ProjectPlans) -> Prover:
        """Return a prover for new plans that keeps the failures of tests whose SQL is the same."""
        prover = Prover(plans, self.own_faults)
        prover._failures = {
            unique_id: failures
            for unique_id, failures in self._failures.items()
            if (test := prover.project.tests.get(unique_id)) == self.project.tests[unique_id]
            and test is not None
            and prover.flat(test) == self.flat(test)
        }
        return prover

    def unedited(
        self, outcomes: Mapping[str, str], fingerprints: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the outcomes of the tests that have not changed since.

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
        if self.project.differs_with_run(test.unique_id):
            text = as_in_run(test, FIXED_RUNS[0]) or ""
            with suppress(Inapplicable):
                flat = flatten(text, views_of(self.project, test.session, FIXED_RUNS[0]))
                text = flat.text
        read = () if flat is None else (occurrence.relation for occurrence in flat.occurrences)
        judged = [test.severity, test.warn_if, test.error_if, test.fail_calc, str(test.limit)]
        if not test.session.is_plain:
            judged.append(test.session.text)
        return sha256("\n".join((text, *read, *judged)).encode()).hexdigest()

    def flat(self, test: DataTest) -> Flat | None:
        """Return the test's SQL with its views inlined, None if it cannot be taken apart."""
        return self._plans.flat(test)

    def is_shown(self, test: DataTest, warehouse: Warehouse, versions: CheckedVersions) -> bool:
        """Return True if the tested model's SQL, or its new rows, show that the test passes."""
        has_filter = "dbt_subquery" in test.compiled_code
        if has_filter or not (test.is_usual and _fails_by_any_row(test)):
            return False
        if self._is_unique_by_sql(test):
            return True
        show = SHOWN_BY_NEW_ROWS.get(test.kind or "")
        flat = self.flat(test)
        if show is None or flat is None:
            return False
        origins = self._origins(test, versions)
        for relation, column in origins:
            came = rows_of_sign(warehouse, versions, relation, 1)
            if came is None:
                return False
            read = partial(warehouse.read, relation, versions.now[relation])
            if came.num_rows and not show(replace(test, column_name=column), came, read):
                return False
        return bool(origins)

    def test_of_new_rows(
        self, test: DataTest, warehouse: Warehouse, versions: CheckedVersions
    ) -> ChangedTest | None:
        """Return the test over the rows that came, which are enough for a test that passed.

        None: the test must see all rows.
        """
        new = self._over_changed_rows(test, warehouse, versions, _without_groups(test), 1)
        return None if new is None else ChangedTest(test, new)

    def moved_test(
        self, test: DataTest, warehouse: Warehouse, versions: CheckedVersions
    ) -> ChangedTest | None:
        """Return the test of changed rows that corrects the count of failures at the frontier."""
        result = self._failures.get(test.unique_id)
        flat = self.flat(test)
        if result is None or flat is None:
            return None
        failures, at_versions = result
        if any(versions.before.get(name) != at_versions.get(name) for name in flat.relations):
            return None
        new, removed = (
            self._over_changed_rows(test, warehouse, versions, test.compiled_code, sign)
            for sign in (1, -1)
        )
        return None if new is None or removed is None else ChangedTest(test, new, failures, removed)

    def remember(self, test: DataTest, failures: int | None, versions: CheckedVersions) -> None:
        """Note how many rows fail a test at these versions; a test that passes needs no note."""
        self._failures.pop(test.unique_id, None)
        if failures:
            self._failures[test.unique_id] = (failures, versions.now)

    def _over_changed_rows(
        self, test: DataTest, warehouse: Warehouse, versions: CheckedVersions, text: str, sign: int
    ) -> RowTest | None:
        if test.limit is not None or test.fail_calc != "count(*)" or not _fails_by_any_row(test):
            return None
        if (query := self._plans.row_query(text, test.session)) is None:
            return None
        rows: dict[int, pa.Table] = {}
        for occurrence in query.flat.occurrences:
            if occurrence.index in query.signed.anchors:
                changed = repeated_rows(warehouse, versions, occurrence.relation, sign)
                if changed is None or changed.num_rows > MOST_NEW_ROWS:
                    return None
                rows[occurrence.index] = changed
            elif not versions.is_unchanged(occurrence.relation):
                return None
        return RowTest(query.flat, rows)

    def _origins(
        self, test: DataTest, versions: CheckedVersions
    ) -> Sequence[tuple[str, str | None]]:
        """Return the stored columns, by relation, that all values of a tested column are from.

        A test of several columns has origins only if it is of a stored node. Empty: not known.
        """
        unique_id = test.attached_to or ""
        source, model = self.project.sources.get(unique_id), self.project.models.get(unique_id)
        node = source or model
        flat = self.flat(test)
        if node is None or flat is None:
            return ()
        if model is None or model.is_stored:
            is_alone = flat.relations == (node.relation,)
            return ((node.relation, test.column_name),) if is_alone else ()
        if test.kind not in OF_VALUES or model.compiled_code is None:
            return ()
        query = self._plans.row_query(model.compiled_code, model.session)
        if query is None or set(query.flat.relations) != set(flat.relations):
            return ()
        sites = query.signed.origins.get(unquoted(test.column_name or "").lower(), ())
        names = {mention.index: mention.relation for mention in query.flat.occurrences}
        others = names.keys() - set(query.signed.anchors)
        if not all(versions.is_unchanged(names[occurrence]) for occurrence in others):
            # A row that a lookup newly lets through is none of the new rows.
            return ()
        return tuple((names[occurrence], column) for occurrence, column in sites)

    def _is_unique_by_sql(self, test: DataTest) -> bool:
        columns = {name.lower() for name in columns_unique_together(test)}
        key = {name.lower() for name in self._plans.unique_key(test.attached_to or "")}
        return bool(key) and key <= columns


def _fails_by_any_row(test: DataTest) -> bool:
    return test.warn_if == test.error_if == "!= 0"


_COUNTED = re.compile(r",\s*count\(\*\) as n_records\b")
_GROUPED = re.compile(r"\bgroup by [^()]*\)(?=\s*select \*\s+from all_values\b)")


def _without_groups(test: DataTest) -> str:
    """Return the SQL of a test; that of dbt's accepted_values without its GROUP BY.

    It looks at the keys of the groups alone: a group fails exactly if all of its rows do.
    """
    text = test.compiled_code
    counts = [len(pattern.findall(text)) for pattern in (_COUNTED, _GROUPED)]
    if test.kind != "accepted_values" or not test.is_usual or counts != [1, 1]:
        return text
    return _GROUPED.sub(")", _COUNTED.sub("", text))


def _is_not_null(test: DataTest, new_rows: pa.Table, read: Read) -> bool:
    name = _column(test.column_name, new_rows)
    return name is not None and new_rows[name].null_count == 0


def _is_accepted(test: DataTest, new_rows: pa.Table, read: Read) -> bool:
    name = _column(test.column_name, new_rows)
    values = test.arguments.get("values")
    if name is None or not isinstance(values, list | tuple):
        return False
    values_that_came = pc.unique(new_rows[name]).drop_null()
    # Other types are compared as Spark casts them: leave that to Spark.
    if pa.types.is_string(values_that_came.type) or pa.types.is_large_string(values_that_came.type):
        accepted = {str(value) for value in values}
        # dbt writes them into its SQL unchanged: without quotes they are expressions, and between
        # quotes Spark reads a backslash as the beginning of another character.
        if test.arguments.get("quote", True) is not True or any(map(_ESCAPED.search, accepted)):
            return False
    elif pa.types.is_integer(values_that_came.type) and all(type(value) is int for value in values):
        accepted = set(values)
    else:
        return False
    return all(value in accepted for value in values_that_came.to_pylist())


def _are_keys_single(test: DataTest, new_rows: pa.Table, read: Read) -> bool:
    """Return True if each key among the new rows occurs once in the table as it is now."""
    names = [_column(name, new_rows) for name in columns_unique_together(test)]
    if not names or None in names:
        return False
    keys = [name for name in names if name is not None]
    if test.kind == "unique":
        new_rows = new_rows.filter(pc.is_valid(new_rows[keys[0]]))
    if new_rows.num_rows == 0:
        return True
    if new_rows.num_rows > _MOST_KEYS or pc.max(new_rows[WEIGHT]).as_py() > 1:
        return False
    if any(new_rows[name].null_count or not narrows(new_rows[name].type) for name in keys):
        # Arrow never joins NULL keys, and tells -0.0 from 0.0: leave them to Spark.
        return False
    try:
        changed_keys = new_rows.select(keys).group_by(keys).aggregate([])
        if changed_keys.num_rows < new_rows.num_rows:
            return False
        passing = equal_in(changed_keys.schema, changed_keys).expression()
        stored = read(columns=keys, filter=passing)
        matching = stored.join(changed_keys, keys, join_type="left semi")
        return bool(matching.group_by(keys).aggregate([]).num_rows == matching.num_rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        # A key of a type that Arrow does not group or join by.
        return False


def columns_unique_together(test: DataTest) -> tuple[str, ...]:
    """Return the columns that a test requires to be unique together; none for another test."""
    if test.kind == "unique":
        return (unquoted(test.column_name or ""),)
    if test.kind in _COMBINATIONS:
        for name in ("columns", "combination_of_columns", "column_names"):
            columns = test.arguments.get(name)
            if isinstance(columns, list | tuple):
                return tuple(unquoted(str(column)) for column in columns)
    return ()


def _column(name: str | None, table: pa.Table) -> str | None:
    """Return the table's spelling of a column that a test names, None if it is an expression."""
    return stored_name(unquoted(name or ""), table.column_names)


SHOWN_BY_NEW_ROWS: Mapping[str, Callable[[DataTest, pa.Table, Read], bool]] = {
    "not_null": _is_not_null,
    "accepted_values": _is_accepted,
    "unique": _are_keys_single,
    "unique_combination": _are_keys_single,
    "unique_combination_of_columns": _are_keys_single,
}
# Tests of each value by itself: a copy of the column in another table is as good.
OF_VALUES = frozenset({"not_null", "accepted_values"})
