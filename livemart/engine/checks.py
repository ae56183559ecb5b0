"""Checks: the project's data tests, run before a snapshot may be shown.

A test costs nothing if nothing it reads has changed. A test that passed at the frontier and looks
at single rows or at keys is proven on the change set alone; every other test runs in full, as dbt
compiled it, many in one statement. What the fast way cannot prove goes the full way, so that both
give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from livemart.engine.tables import Warehouse, to_view
from livemart.errors import RefreshError
from livemart.plan.flatten import Flat, flatten
from livemart.plan.reasons import Unplannable
from livemart.project.graph import DataTest, Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Status = Literal["pass", "warn", "fail", "error"]

_TESTS_A_STATEMENT = 20
# Above this a test in full is cheaper than a look-up of the changed keys.
_CHANGED_KEYS = 20_000
# Below this a table is handed to Spark as Arrow rows: its own read of a fresh commit costs more.
_ARROW_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class TestResult:
    """What became of a test. `how`: it was not run, proven on the change set, or run in full."""

    __test__ = False

    status: Status
    failures: int | None
    how: Literal["unchanged", "changes", "full"]
    message: str = ""

    @property
    def holds(self) -> bool:
        """True if the snapshot must be held back."""
        return self.status in ("fail", "error")


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


def run_checks(
    spark: SparkSession,
    warehouse: Warehouse,
    project: Project,
    versions: Versions,
    previous: Mapping[str, str],
) -> dict[str, TestResult]:
    """Return the result of every data test of `project`, by unique id.

    Args:
        versions: what the tests look at, and what they looked at last time.
        previous: status of each test at the frontier.
    """
    views = {
        model.relation: model.compiled_code
        for model in project.models.values()
        if model.materialized == "view" and model.compiled_code
    }
    results: dict[str, TestResult] = {}
    in_full: list[tuple[DataTest, Flat | None]] = []
    for test in project.tests.values():
        flat = _flat(test, views)
        before = previous.get(test.unique_id)
        if flat and before and all(map(versions.is_unchanged, flat.relations)):
            results[test.unique_id] = TestResult(_status(before), None, "unchanged")
        elif (
            flat
            and before == "pass"
            and _passes_on_changes(test, flat, warehouse, project, versions)
        ):
            results[test.unique_id] = TestResult("pass", 0, "changes")
        else:
            in_full.append((test, flat))
    results.update(_run_in_full(spark, warehouse, versions.now, in_full))
    return {unique_id: results[unique_id] for unique_id in project.tests}


def _flat(test: DataTest, views: Mapping[str, str]) -> Flat | None:
    try:
        return flatten(test.compiled_code, views)
    except Unplannable:
        return None


def _status(text: str) -> Status:
    return text if text in ("pass", "warn", "fail") else "error"  # type: ignore[return-value]


# --- on the change set ---------------------------------------------------------------------------


def _passes_on_changes(
    test: DataTest, flat: Flat, warehouse: Warehouse, project: Project, versions: Versions
) -> bool:
    """Return True if the changed rows prove that a test that passed still does."""
    proof = _PROOFS.get(test.kind or "")
    has_filter = "dbt_subquery" in test.compiled_code
    if proof is None or has_filter or test.warn_if != "!= 0" or test.error_if != "!= 0":
        return False
    node = project.models.get(test.attached_to or "") or project.sources.get(test.attached_to or "")
    if node is None or flat.relations != (node.relation,):
        return False
    relation = node.relation
    if (before := versions.before.get(relation)) is None:
        return False
    try:
        changed = warehouse.changes(relation, before, versions.now[relation])
    except RefreshError:
        return False
    new_rows = changed.filter(pc.greater(changed["_weight"], 0)).combine_chunks()
    if new_rows.num_rows == 0:
        return True
    return proof(test, new_rows, lambda: (warehouse, relation, versions.now[relation]))


Where = Callable[[], tuple[Warehouse, str, int]]


def _is_not_null(test: DataTest, new_rows: pa.Table, where: Where) -> bool:
    name = _column(test.column_name, new_rows)
    return name is not None and new_rows[name].null_count == 0


def _is_accepted(test: DataTest, new_rows: pa.Table, where: Where) -> bool:
    name = _column(test.column_name, new_rows)
    values = test.arguments.get("values")
    if name is None or not isinstance(values, list | tuple):
        return False
    found = pc.unique(new_rows[name]).drop_null()
    kind = found.type
    # Other types are compared as Spark casts them: leave that to Spark.
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        accepted = {str(value) for value in values}
    elif pa.types.is_integer(kind) and all(type(value) is int for value in values):
        accepted = set(values)
    else:
        return False
    return all(value in accepted for value in found.to_pylist())


def _is_unique(test: DataTest, new_rows: pa.Table, where: Where) -> bool:
    name = _column(test.column_name, new_rows)
    return name is not None and _are_keys_single(
        [name], new_rows.filter(pc.is_valid(new_rows[name])), where
    )


def _is_combination_unique(test: DataTest, new_rows: pa.Table, where: Where) -> bool:
    columns = next(
        (
            test.arguments[name]
            for name in ("columns", "combination_of_columns", "column_names")
            if isinstance(test.arguments.get(name), list | tuple)
        ),
        (),
    )
    names = [_column(str(name), new_rows) for name in columns]  # type: ignore[attr-defined]
    if not names or any(name is None for name in names):
        return False
    return _are_keys_single([name for name in names if name], new_rows, where)


def _are_keys_single(names: list[str], new_rows: pa.Table, where: Where) -> bool:
    """Return True if each key among the changed rows occurs once in the table as it is now."""
    if new_rows.num_rows == 0:
        return True
    if new_rows.num_rows > _CHANGED_KEYS or pc.max(new_rows["_weight"]).as_py() > 1:
        return False
    keys = new_rows.select(names).group_by(names).aggregate([])
    if keys.num_rows < new_rows.num_rows:
        return False
    warehouse, relation, version = where()
    try:
        stored = warehouse.read(relation, version, columns=names, filter=_among(keys))
        counts = stored.append_column("_one", pa.array([1] * stored.num_rows, pa.int64()))
        counted = counts.group_by(names).aggregate([("_one", "sum")])
        both = keys.append_column("_wanted", pa.array([True] * keys.num_rows)).join(
            counted, names, join_type="left outer"
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        # A key of a type that Arrow does not group or join by.
        return False
    if both.num_rows and any(keys[name].null_count for name in names):
        # Arrow never joins NULL keys: leave them to Spark.
        return False
    return both.num_rows == 0 or pc.max(both["_one_sum"]).as_py() == 1


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
        if values.null_count:
            condition = condition | field.is_null()
        expression = expression & condition
    return expression


def _column(name: str | None, table: pa.Table) -> str | None:
    """Return the table's spelling of a column that a test names, None if it is an expression."""
    bare = (name or "").strip("` ").lower()
    return next((own for own in table.column_names if own.lower() == bare), None)


_PROOFS: Mapping[str, Callable[[DataTest, pa.Table, Where], bool]] = {
    "not_null": _is_not_null,
    "accepted_values": _is_accepted,
    "unique": _is_unique,
    "unique_combination": _is_combination_unique,
    "unique_combination_of_columns": _is_combination_unique,
}


# --- in full -------------------------------------------------------------------------------------


def _run_in_full(
    spark: SparkSession,
    warehouse: Warehouse,
    versions: Mapping[str, int],
    tests: Sequence[tuple[DataTest, Flat | None]],
) -> dict[str, TestResult]:
    results: dict[str, TestResult] = {}
    if not tests:
        return results
    relations = {name for _, flat in tests if flat for name in flat.relations}
    with _TablesAtVersions(spark, warehouse, versions, relations) as name_of:
        statements = [(test, _statement(test, flat, name_of)) for test, flat in tests]
        for start in range(0, len(statements), _TESTS_A_STATEMENT):
            results.update(_ask(spark, statements[start : start + _TESTS_A_STATEMENT]))
    return results


def _ask(spark: SparkSession, statements: Sequence[tuple[DataTest, str]]) -> dict[str, TestResult]:
    """Run several tests in one statement; if it fails, halve it to find out whose fault it is."""
    from pyspark.errors import PySparkException

    try:
        rows = spark.sql("\nunion all\n".join(sql for _, sql in statements)).collect()
    except PySparkException as error:
        if len(statements) > 1:
            middle = len(statements) // 2
            return _ask(spark, statements[:middle]) | _ask(spark, statements[middle:])
        message = str(error).strip().splitlines()[0]
        return {statements[0][0].unique_id: TestResult("error", None, "full", message)}
    by_id = {test.unique_id: test for test, _ in statements}
    return {
        row["test_id"]: _judge(by_id[row["test_id"]], row["failures"], row["warns"], row["fails"])
        for row in rows
    }


def _judge(
    test: DataTest, failures: int | None, warns: bool | None, fails: bool | None
) -> TestResult:
    """dbt's rule: severity warn never fails."""
    status: Status = "pass"
    if test.severity == "error" and fails:
        status = "fail"
    elif warns:
        status = "warn"
    return TestResult(status, failures or 0, "full")


def _statement(test: DataTest, flat: Flat | None, name_of: Mapping[str, str]) -> str:
    """Return dbt's own frame around a test: one row of failures and what they mean."""
    body = flat.render(lambda mention: name_of[mention.relation]) if flat else test.compiled_code
    limit = f"\nlimit {test.limit}" if test.limit is not None else ""
    unique_id = test.unique_id.replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"select '{unique_id}' as test_id, cast({test.fail_calc} as bigint) as failures, "
        f"coalesce({test.fail_calc}, 0) {test.warn_if} as warns, "
        f"coalesce({test.fail_calc}, 0) {test.error_if} as fails "
        f"from (\n{body}{limit}\n) dbt_internal_test"
    )


class _TablesAtVersions:
    """Give each relation a name in SQL that reads it at its version: a view or a subquery."""

    def __init__(
        self,
        spark: SparkSession,
        warehouse: Warehouse,
        versions: Mapping[str, int],
        relations: set[str],
    ) -> None:
        self._spark = spark
        self._views: list[str] = []
        self._names = dict(self._name(warehouse, versions, relations))

    def _name(
        self, warehouse: Warehouse, versions: Mapping[str, int], relations: set[str]
    ) -> Iterator[tuple[str, str]]:
        for number, relation in enumerate(sorted(relations)):
            version = versions.get(relation)
            if version is None:
                yield relation, ".".join(f"`{part}`" for part in relation.split("."))
            elif warehouse.row_count(relation, version) <= _ARROW_ROWS:
                name = f"livemart_check_{number}"
                to_view(self._spark, name, warehouse.read(relation, version))
                self._views.append(name)
                yield relation, name
            else:
                path = str(warehouse.path(relation)).replace("`", "``")
                yield relation, f"(select * from delta.`{path}` version as of {version})"

    def __enter__(self) -> Mapping[str, str]:
        return self._names

    def __exit__(self, *_: object) -> None:
        for name in self._views:
            self._spark.catalog.dropTempView(name)
