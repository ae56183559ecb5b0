"""Runs the project's data tests, before a snapshot may be shown.

Used by run as the last step of a batch. A test costs nothing if none of its tables has changed. It
costs little if the new rows prove that it still passes, or if new and gone rows show how many rows
now fail. Every other test runs in full, as dbt compiled it, many in one statement. A test without
a proof goes the full way, so that all ways give the same answer.

Rows that fail a test that holds a snapshot back are written as short lines: who mends it sees a few
of them at once. Values are cut and signs that a terminal would obey are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from livemart.check.proofs import ChangedTest, Prover
from livemart.check.versions import CheckedVersions
from livemart.delta.warehouse import Warehouse
from livemart.errors import first_lines
from livemart.intervals import ms_since
from livemart.limits import FEW_TESTED_ROWS
from livemart.own_faults import is_own_fault
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.project.graph import DataTest
from livemart.project.session_spec import SessionSpec
from livemart.project.sessions import session_of
from livemart.project.test_places import place_of_test
from livemart.spark.arrow_views import ArrowViews

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CheckStatus = Literal["pass", "warn", "fail", "error", "waits"]

_TESTS_A_STATEMENT = 20
# Rows are read again for each, and a stream that is held does so with each batch.
_MOST_SHOWN = 5
_WAITS = "a model that it reads is set aside"
MOST_ROWS = 3
_MOST_COLUMNS = 12
_MOST_SIGNS = 60
_MORE = "\u2026"


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a test."""

    __test__ = False

    status: CheckStatus
    failures: int | None
    how: Literal["unchanged", "changes", "full"]
    """It was not run, was proven on the change set, or was run in full."""
    message: str = ""
    took_ms: int = 0
    """Its share of the statement that ran it with others."""
    place: str = ""
    """File and line, if it holds the snapshot back."""
    rows: tuple[str, ...] = ()
    """Some of the rows that fail, each as one line, if it holds the snapshot back."""

    @property
    def holds(self) -> bool:
        """True if the snapshot must be held back."""
        return self.status in ("fail", "error")


CheckReport = Callable[[str, TestResult], None]


def run_checks(
    spark: SparkSession,
    warehouse: Warehouse,
    prover: Prover,
    versions: CheckedVersions,
    previous: Mapping[str, str],
    *,
    waiting: Collection[str] = (),
    report: CheckReport = lambda unique_id, result: None,
) -> dict[str, TestResult]:
    """Return the result of every data test of the project, by unique id.

    Args:
        spark: runs what is not proven.
        warehouse: holds the tables.
        prover: knows the project's tests.
        versions: what the tests look at, and what they looked at last time.
        previous: status of each test at the frontier.
        waiting: models that are set aside, by unique id. A test that reads one and something newer
            is not run: it says nothing about either.
        report: is called with each test as it ends.
    """
    tests = prover.project.tests
    results: dict[str, TestResult] = {}

    def end(unique_id: str, result: TestResult, readers: _Readers | None = None) -> None:
        if result.holds:
            test = tests[unique_id]
            result = replace(result, place=place_of_test(prover.project, test))
            shown = sum(bool(other.rows) for other in results.values())
            if readers is not None and result.status == "fail" and shown < _MOST_SHOWN:
                rows = _failing_rows(test, readers, prover.flat(test))
                result = replace(result, rows=rows)
        results[unique_id] = result
        report(unique_id, result)

    over_changes: list[ChangedTest] = []
    in_full: list[DataTest] = []
    aside = {prover.project.models[unique_id].relation for unique_id in waiting}
    for test in tests.values():
        flat, before = prover.flat(test), previous.get(test.unique_id)
        if before in ("waits", "error"):
            # Neither says anything of the rows.
            before = None
        if flat and before and all(map(versions.is_unchanged, flat.relations)):
            end(test.unique_id, TestResult(_status(before), None, "unchanged"))
        elif _reads(test, flat, aside, waiting):
            end(test.unique_id, TestResult("waits", None, "unchanged", _WAITS))
        elif test.uncompiled:
            end(test.unique_id, TestResult("error", None, "full", test.uncompiled))
        else:
            started = perf_counter()
            way = _shortest_way(test, before, prover, warehouse, versions)
            if isinstance(way, ChangedTest):
                over_changes.append(way)
            elif way is None:
                in_full.append(test)
            else:
                end(test.unique_id, replace(way, took_ms=ms_since(started)))
    with _Readers(spark, warehouse, versions.now) as readers:
        questions = [
            (side, _statement(side, readers, rows.flat, rows.rows))
            for change in over_changes
            for side, rows, _ in change.sides()
        ]
        questions += [(test, _statement(test, readers, prover.flat(test))) for test in in_full]
        again: list[DataTest] = []
        answers: dict[str, TestResult] = {}
        for unique_id, answer in _ask_all(readers, questions):
            answers[unique_id] = answer
            # One side of a test over changes is no result yet.
            if unique_id in tests:
                end(unique_id, answer, readers)
        counts = {name: answer.failures for name, answer in answers.items()}
        for change in over_changes:
            failures = change.failures(counts)
            if failures is None:
                again.append(change.test)
            else:
                result = _judge(change.test, failures, failures != 0, failures != 0)
                took_ms = sum(answers[side.unique_id].took_ms for side, _, _ in change.sides())
                result = replace(result, how="changes", took_ms=took_ms)
                end(change.test.unique_id, result, readers)
        full = [(test, _statement(test, readers, prover.flat(test))) for test in again]
        for unique_id, answer in _ask_all(readers, full):
            end(unique_id, answer, readers)
    for unique_id, result in results.items():
        if result.how != "unchanged":
            prover.remember(tests[unique_id], result.failures, versions)
    return {unique_id: results[unique_id] for unique_id in tests}


def _shortest_way(
    test: DataTest,
    before: str | None,
    prover: Prover,
    warehouse: Warehouse,
    versions: CheckedVersions,
) -> ChangedTest | TestResult | None:
    """Return a test over changes, or its result; None if it must run in full."""
    try:
        if before != "pass":
            return prover.moved_test(test, warehouse, versions)
        if prover.is_shown(test, warehouse, versions):
            return TestResult("pass", 0, "changes")
        return prover.test_of_new_rows(test, warehouse, versions)
    except Exception as error:
        if not is_own_fault(error):
            raise
        prover.own_faults.report("proof_failed", error, test=test.unique_id)
        return None


def _reads(
    test: DataTest, flat: Flat | None, relations: Collection[str], models: Collection[str]
) -> bool:
    """Return True if a test reads one of the models, by name or through a view."""
    read = () if flat is None else flat.relations
    return any(name in relations for name in read) or any(key in models for key in test.depends_on)


def _status(text: str) -> CheckStatus:
    return text if text in ("pass", "warn", "fail") else "error"  # type: ignore[return-value]


def _ask_all(
    readers: _Readers, statements: Sequence[tuple[DataTest, str]]
) -> Iterator[tuple[str, TestResult]]:
    """Yield unique id and result of each test, as it ends."""
    by_session: dict[SessionSpec, list[tuple[DataTest, str]]] = {}
    for test, sql in statements:
        by_session.setdefault(test.session, []).append((test, sql))
    for spec, questions in by_session.items():
        try:
            spark = readers.of(spec).session([sql for _, sql in questions])
        except Exception as error:
            if not is_own_fault(error):
                raise
            # A statement of a hook fails.
            failed = TestResult("error", None, "full", first_lines(error))
            yield from ((test.unique_id, failed) for test, _ in questions)
            continue
        for start in range(0, len(questions), _TESTS_A_STATEMENT):
            yield from _ask(spark, questions[start : start + _TESTS_A_STATEMENT]).items()


def _ask(spark: SparkSession, statements: Sequence[tuple[DataTest, str]]) -> dict[str, TestResult]:
    """Run several tests in one statement; if it fails, halve it to find out whose fault it is."""
    started = perf_counter()
    try:
        rows = spark.sql("\nunion all\n".join(sql for _, sql in statements)).collect()
    except Exception as error:
        # Some errors of a query come as those of the JVM, and not as PySpark's own.
        if not is_own_fault(error):
            raise
        if len(statements) > 1:
            middle = len(statements) // 2
            return _ask(spark, statements[:middle]) | _ask(spark, statements[middle:])
        failed = TestResult("error", None, "full", first_lines(error), ms_since(started))
        return {statements[0][0].unique_id: failed}
    took_ms = ms_since(started) // len(statements)
    by_id = {test.unique_id: test for test, _ in statements}
    return {
        row["test_id"]: replace(
            _judge(by_id[row["test_id"]], row["failures"], row["warns"], row["fails"]),
            took_ms=took_ms,
        )
        for row in rows
    }


def _judge(
    test: DataTest, failures: int | None, warns: bool | None, fails: bool | None
) -> TestResult:
    """dbt's rule: severity warn never fails."""
    status: CheckStatus = "pass"
    if test.severity == "error" and fails:
        status = "fail"
    elif warns:
        status = "warn"
    return TestResult(status, failures or 0, "full")


def _statement(
    test: DataTest, readers: _Readers, flat: Flat | None, rows: Mapping[int, pa.Table] | None = None
) -> str:
    """Return dbt's own frame around a test: one row of failures and their meaning."""
    reader = readers.of(test.session)
    body = reader.own_text(test) if flat is None else flat.render(reader.names(rows or {}))
    limit = f"\nlimit {test.limit}" if test.limit is not None else ""
    unique_id = test.unique_id.replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"select '{unique_id}' as test_id, cast({test.fail_calc} as bigint) as failures, "
        f"coalesce({test.fail_calc}, 0) {test.warn_if} as warns, "
        f"coalesce({test.fail_calc}, 0) {test.error_if} as fails "
        f"from (\n{body}{limit}\n) dbt_internal_test"
    )


def _failing_rows(test: DataTest, readers: _Readers, flat: Flat | None) -> tuple[str, ...]:
    """Return some of the rows that fail a test, as it was run; none if they cannot be read."""
    reader = readers.of(test.session)
    body = reader.own_text(test) if flat is None else flat.render(reader.names({}))
    most = MOST_ROWS if test.limit is None else min(test.limit, MOST_ROWS)
    statement = f"select * from (\n{body}\n) failing limit {most}"
    try:
        table = reader.session([statement]).sql(statement)
        # As Spark writes them, in the zone of its session; columns may have one name.
        numbered = table.toDF(*map(str, range(len(table.columns))))
        texts = [
            f"hex(`{number}`)" if kind == "binary" else f"cast(`{number}` as string)"
            for number, kind in numbered.dtypes
        ]
        rows = numbered.selectExpr(*texts).collect()
        return tuple(failing_row(table.columns, row) for row in rows)
    except Exception as error:
        # The test is judged already, and an example is not worth a batch.
        if not is_own_fault(error):
            raise
        return ()


class _Readers(ExitStack):
    """The readers of a block, one for the tests of each session."""

    def __init__(
        self, spark: SparkSession, warehouse: Warehouse, versions: Mapping[str, int]
    ) -> None:
        super().__init__()
        self._spark = spark
        self._warehouse = warehouse
        self._versions = versions
        self._readers: dict[SessionSpec, _Reader] = {}

    def of(self, spec: SessionSpec) -> _Reader:
        """Return the reader for tests of one session."""
        if spec not in self._readers:
            session = partial(session_of, self._spark, spec)
            reader = _Reader(session, self._warehouse, self._versions)
            self._readers[spec] = self.enter_context(closing(reader))
        return self._readers[spec]


@dataclass(eq=False)
class _Reader:
    """Gives each table a name in SQL that reads it at its version, until it is closed."""

    open_session: Callable[[], SparkSession]
    warehouse: Warehouse
    versions: Mapping[str, int]
    _whole: dict[str, str] = field(default_factory=dict, init=False)
    _rows: dict[str, pa.Table] = field(default_factory=dict, init=False)
    _views: ArrowViews | None = field(default=None, init=False)
    _is_small: bool = field(default=True, init=False)
    """False once Spark reads a table itself."""

    def close(self) -> None:
        if self._views is not None:
            self._views.close()

    def names(self, rows: Mapping[int, pa.Table]) -> Callable[[Occurrence], str]:
        """Return the relation of an occurrence: the given rows, else the whole table."""

        def name_of(occurrence: Occurrence) -> str:
            if occurrence.index in rows:
                return self._view(rows[occurrence.index])
            return self._table(occurrence.relation)

        return name_of

    def own_text(self, test: DataTest) -> str:
        """Return a test that could not be taken apart; it reads the catalog's tables."""
        self._is_small = False
        return test.compiled_code

    def _table(self, relation: str) -> str:
        version = self.versions.get(relation)
        if version is None:
            self._is_small = False
            return ".".join(f"`{part}`" for part in relation.split("."))
        if relation not in self._whole:
            files = self.warehouse.files(relation, version)
            if files.is_plain and files.row_count <= FEW_TESTED_ROWS:
                self._whole[relation] = self._view(self.warehouse.read(relation, version))
            else:
                self._is_small = False
                table = self.warehouse.sql_at(relation, version)
                self._whole[relation] = f"(select * from {table})"
        return self._whole[relation]

    def session(self, texts: Sequence[str]) -> SparkSession:
        """Return the session for statements over the rows named so far; it has their views."""
        if self._views is None:
            self._views = ArrowViews(self.open_session())
        for name, rows in self._rows.items():
            self._views.add(name, rows)
        return self._views.session(texts, () if self._is_small else None)

    def _view(self, rows: pa.Table) -> str:
        name = f"livemart_check_{len(self._rows)}"
        self._rows[name] = rows
        return name


def failing_row(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return a row as one line.

    Args:
        names: of the columns.
        values: as text, None for NULL.

    >>> failing_row(["id", "note"], ["7", "two\\nlines"])
    'id=7, note=two\\\\nlines'
    >>> failing_row(["id", "note"], [None, "x" * 100])[:20]
    'id=null, note=xxxxxx'
    """
    cells = [f"{_cut(name)}={_cut(value)}" for name, value in zip(names, values, strict=True)]
    more = [_MORE] if len(cells) > _MOST_COLUMNS else []
    return ", ".join(cells[:_MOST_COLUMNS] + more)


def _cut(text: str | None) -> str:
    if text is None:
        return "null"
    short = text if len(text) <= _MOST_SIGNS else text[:_MOST_SIGNS] + _MORE
    return "".join(sign if sign.isprintable() else _written_out(sign) for sign in short)


def _written_out(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
