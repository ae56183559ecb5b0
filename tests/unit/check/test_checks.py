"""Data tests that the change set alone proves, and tests that need Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from structlog.testing import capture_logs

from livemart.arrow.bags import WEIGHT
from livemart.arrow.types import key_kind
from livemart.check import checks
from livemart.check.checks import TestResult, failing_row, run_checks
from livemart.check.proofs import Prover
from livemart.check.versions import CheckedVersions
from livemart.errors import RefreshError
from livemart.own_faults import VARIABLE
from livemart.plan.plan import Plan
from livemart.plan.project_plans import ProjectPlans
from livemart.plan.strategies.signed import Signed
from livemart.project.graph import DataTest, Project
from tests.models import make_model

RELATION = "mini.totals"
TEST = "test.mini.t"


class FakeWarehouse:
    """One table at version 2, and its change since version 1."""

    def __init__(self, rows: Sequence[dict[str, Any]], changed: Sequence[dict[str, Any]] | None):
        schema = pa.schema([("k", pa.string()), ("n", pa.int64())])
        self.rows = pa.Table.from_pylist(list(rows), schema)
        weighted = schema.append(pa.field(WEIGHT, pa.int64()))
        self.changed = None if changed is None else pa.Table.from_pylist(list(changed), weighted)

    def exists(self, relation: str) -> bool:
        return relation == RELATION

    def arrow_schema(self, relation: str) -> pa.Schema:
        return self.rows.schema

    def column_kinds(self, relation: str) -> dict[str, str] | None:
        if not self.exists(relation):
            return None
        return {field.name: key_kind(field.type) for field in self.arrow_schema(relation)}

    def changes(self, relation: str, v0: int, v1: int) -> pa.Table:
        if self.changed is None:
            raise RefreshError("CDF_UNAVAILABLE", relation, hint="")
        return self.changed

    def read(
        self, relation: str, version: int, *, columns: list[str], filter: ds.Expression
    ) -> pa.Table:
        return ds.dataset(self.rows).to_table(columns=columns, filter=filter)


def project(kind: str, column: str | None = "k", **options: Any) -> Project:
    model = make_model("model.mini.totals")
    values: dict[str, Any] = {
        "unique_id": TEST,
        "name": "t",
        "kind": kind,
        "column_name": column,
        "arguments": {},
        "severity": "error",
        "compiled_code": "select k from mini.totals group by k having count(*) > 1",
        "depends_on": (model.unique_id,),
        "attached_to": model.unique_id,
        "file": "",
    }
    test = DataTest(**(values | options))
    return Project("mini", ".", "mini", {}, {model.unique_id: model}, {TEST: test}, {})


def how(
    found: Project,
    warehouse: FakeWarehouse,
    monkeypatch: pytest.MonkeyPatch,
    *,
    before: int | None = 1,
    previous: str = "pass",
    plan: Plan | None = None,
) -> str:
    """Return how the test was decided; `full` stands for what goes to Spark."""

    def in_full(spark: object, statements: Any) -> Iterator[tuple[str, TestResult]]:
        for test, _ in statements:
            yield test.unique_id, TestResult("pass", 0, "full")

    monkeypatch.setattr(checks, "_ask_all", in_full)
    monkeypatch.setattr(checks, "_statement", lambda *_: "")
    plans = ProjectPlans(found, warehouse.column_kinds)
    if plan is not None:
        plans.models = {"model.mini.totals": plan}
    versions = CheckedVersions({} if before is None else {RELATION: before}, {RELATION: 2})
    result = run_checks(None, warehouse, Prover(plans), versions, {TEST: previous})  # type: ignore[arg-type]
    return result[TEST].how


@pytest.mark.parametrize(
    "edited",
    [
        {"compiled_code": "select k from mini.totals where n < 1000000"},
        {"severity": "warn"},
        {"error_if": ">10"},
        {"warn_if": ">1"},
    ],
)
def test_an_edited_test_has_no_outcome_yet(edited: dict[str, Any]) -> None:
    then = Prover(ProjectPlans(project("unique")))
    now = Prover(ProjectPlans(project("unique", **edited)))

    assert then.unedited({TEST: "pass"}, then.fingerprints) == {TEST: "pass"}
    assert now.unedited({TEST: "pass"}, then.fingerprints) == {}
    assert now.unedited({TEST: "pass"}, {}) == {}


def test_a_test_of_a_view_that_was_edited_has_no_outcome_yet() -> None:
    provers = []
    for sql in ("select k from mini.totals", "select upper(k) as k from mini.totals"):
        found = project("unique", compiled_code="select k from mini.seen where k is null")
        table = found.models["model.mini.totals"]
        view = replace(
            table, unique_id="v", identifier="seen", materialized="view", compiled_code=sql
        )
        provers.append(Prover(ProjectPlans(replace(found, models={**found.models, "v": view}))))

    then, now = provers

    assert now.unedited({TEST: "pass"}, then.fingerprints) == {}


LINEAR = "select n from (select k, n + 1 as n from mini.totals where k <> 'x') where n < 0"


@pytest.mark.parametrize("status", ["pass", "fail"])
def test_a_linear_test_is_run_over_the_new_rows_first(
    monkeypatch: pytest.MonkeyPatch, status: checks.CheckStatus
) -> None:
    found = project("not_negative", compiled_code=LINEAR)
    asked: list[int] = []

    def ask(spark: object, statements: Any) -> Iterator[tuple[str, TestResult]]:
        asked.append(len(statements))
        for test, _ in statements:
            yield test.unique_id, TestResult(status, int(status != "pass"), "full")

    monkeypatch.setattr(checks, "_ask_all", ask)
    monkeypatch.setattr(checks, "_statement", lambda *_: "")
    monkeypatch.setattr(checks, "_failing_rows", lambda *_: ("k=a",))
    warehouse = FakeWarehouse([], [change("a")])
    result = run_checks(
        None,  # type: ignore[arg-type]
        warehouse,  # type: ignore[arg-type]
        Prover(ProjectPlans(found, warehouse.column_kinds)),
        CheckedVersions({RELATION: 1}, {RELATION: 2}),
        {TEST: "pass"},
    )[TEST]

    assert asked == ([1, 0] if status == "pass" else [1, 1])
    assert (result.status, result.how) == (status, "changes" if status == "pass" else "full")
    # Rows of a test that holds the snapshot, once it is known how it ends.
    assert result.rows == (("k=a",) if status == "fail" else ())


def test_a_linear_test_without_new_rows_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    found = project("not_negative", compiled_code=LINEAR)

    assert how(found, FakeWarehouse([], [change("a", weight=-1)]), monkeypatch) == "changes"


def test_a_key_that_the_sql_makes_unique_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = FakeWarehouse([], None)
    plan = Plan(Signed((), (), ()), unique_key=("k",))

    assert how(project("unique"), warehouse, monkeypatch, plan=plan) == "changes"
    assert how(project("unique", "n"), warehouse, monkeypatch, plan=plan) == "full"


def row(k: str | None, n: int | None = 1) -> dict[str, Any]:
    return {"k": k, "n": n}


def change(k: str | None, weight: int = 1, n: int | None = 1) -> dict[str, Any]:
    return {"k": k, "n": n, WEIGHT: weight}


def test_a_test_of_an_unchanged_table_keeps_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = FakeWarehouse([], None)

    assert (
        how(project("not_null"), warehouse, monkeypatch, before=2, previous="fail") == "unchanged"
    )


def test_a_test_that_dbt_cannot_compile_is_an_error_whatever_it_was_before() -> None:
    found = project("not_null", compiled_code="", uncompiled="no such table")
    warehouse: Any = FakeWarehouse([], None)
    prover = Prover(ProjectPlans(found, warehouse.column_kinds))
    versions = CheckedVersions({RELATION: 2}, {RELATION: 2})

    result = run_checks(cast(Any, None), warehouse, prover, versions, {TEST: "pass"})[TEST]

    assert (result.status, result.message) == ("error", "no such table")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ([change("a")], "changes"),
        ([change("a"), change(None)], "full"),
        ([change(None, weight=-1)], "changes"),
        ([], "changes"),
    ],
)
def test_new_rows_without_null_prove_not_null(
    monkeypatch: pytest.MonkeyPatch, changed: list[dict[str, Any]], expected: str
) -> None:
    assert how(project("not_null"), FakeWarehouse([], changed), monkeypatch) == expected


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        (["a", "b"], "k", "changes"),
        (["b"], "k", "full"),
        ([1, 2], "n", "changes"),
        (["1"], "n", "full"),
    ],
)
def test_known_values_prove_accepted_values(
    monkeypatch: pytest.MonkeyPatch, values: list[object], column: str, expected: str
) -> None:
    found = project("accepted_values", column, arguments={"values": values})

    assert how(found, FakeWarehouse([], [change("a")]), monkeypatch) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"values": ["a", "C:\\new"]},
        {"values": ["a", "b\\"]},
        {"values": ["a", "it's"]},
        {"values": ["a"], "quote": False},
    ],
)
def test_accepted_texts_that_spark_reads_as_others_prove_nothing(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    """dbt 1.11 writes 'C:\\new' into its SQL, and Spark 4.2 reads a line break in it."""
    found = project("accepted_values", "k", arguments=arguments)

    assert how(found, FakeWarehouse([], [change("a")]), monkeypatch) == "full"


@pytest.mark.parametrize(
    ("rows", "changed", "expected"),
    [
        ([row("a"), row("b")], [change("a")], "changes"),
        ([row("a"), row("a", 2)], [change("a")], "full"),
        ([row("a"), row("b"), row("b", 2)], [change("a")], "changes"),
        ([row("a")], [change("a", weight=2)], "full"),
        ([row("a", 1), row("a", 2)], [change("a", n=1), change("a", n=2)], "full"),
        ([row(None), row(None)], [change(None)], "changes"),
        ([row("b")], [change("a", weight=-1)], "changes"),
    ],
)
def test_changed_keys_that_occur_once_prove_unique(
    monkeypatch: pytest.MonkeyPatch,
    rows: list[dict[str, Any]],
    changed: list[dict[str, Any]],
    expected: str,
) -> None:
    assert how(project("unique"), FakeWarehouse(rows, changed), monkeypatch) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([row("a", 1), row("a", 2)], "changes"), ([row("a", 1), row("a", 1)], "full")],
)
def test_changed_combinations_that_occur_once_prove_them_unique(
    monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]], expected: str
) -> None:
    found = project("unique_combination", None, arguments={"columns": ["K", "n"]})

    assert how(found, FakeWarehouse(rows, [change("a")]), monkeypatch) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"compiled_code": "select k from (select * from mini.totals) dbt_subquery group by k"},
        {"error_if": "> 10"},
        {"compiled_code": "select k from mini.totals join mini.other on true group by k"},
        {"column_name": "upper(k)"},
        {"kind": None},
    ],
)
def test_what_is_not_plain_runs_in_full(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    found = project(**({"kind": "not_null"} | options))

    assert how(found, FakeWarehouse([], [change("a")]), monkeypatch) == "full"


def test_a_test_that_failed_runs_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = FakeWarehouse([], [change("a")])

    assert how(project("not_null"), warehouse, monkeypatch, previous="fail") == "full"


def test_a_rebuilt_table_is_tested_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = FakeWarehouse([], [change("a")])

    assert how(project("not_null"), warehouse, monkeypatch, before=None) == "full"


def test_without_a_change_feed_the_test_runs_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    assert how(project("not_null"), FakeWarehouse([], None), monkeypatch) == "full"


def test_a_test_that_reads_a_model_set_aside_waits_and_holds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "_ask", lambda *_: pytest.fail("it was run"))
    prover = Prover(ProjectPlans(project("not_null")))
    versions = CheckedVersions({RELATION: 1}, {RELATION: 2})

    for before in ("pass", "fail", "waits"):
        results = run_checks(
            cast(Any, None),
            cast(Any, None),
            prover,
            versions,
            {TEST: before},
            waiting={"model.mini.totals"},
        )
        assert (results[TEST].status, results[TEST].holds) == ("waits", False)


def test_a_mistake_in_a_proof_costs_no_more_than_the_test_in_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE)

    def fail(*_: object) -> bool:
        raise KeyError("customerkey")

    monkeypatch.setattr(Prover, "is_shown", fail)

    with capture_logs() as events:
        warehouse = FakeWarehouse([row("a")], [change("a")])
        assert how(project("not_null"), warehouse, monkeypatch) == "full"

    assert [event["event"] for event in events] == ["proof_failed"]


def test_each_test_is_told_as_its_statement_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    mini = project("unique")
    tests = {f"{TEST}{n}": replace(mini.tests[TEST], unique_id=f"{TEST}{n}") for n in range(3)}
    mini = replace(mini, tests=tests)
    events: list[str] = []

    def ask(spark: object, statements: Any) -> dict[str, TestResult]:
        names = [test.unique_id for test, _ in statements]
        events.append(f"asked {len(names)}")
        return {name: TestResult("pass", 0, "full", took_ms=40) for name in names}

    monkeypatch.setattr(checks, "_TESTS_A_STATEMENT", 2)
    monkeypatch.setattr(checks, "_ask", ask)
    monkeypatch.setattr(checks, "_statement", lambda *_: "")
    monkeypatch.setattr(checks._Reader, "session", lambda self, texts: None)
    warehouse = FakeWarehouse([], None)
    results = run_checks(
        None,  # type: ignore[arg-type]
        warehouse,  # type: ignore[arg-type]
        Prover(ProjectPlans(mini, warehouse.column_kinds)),
        CheckedVersions({}, {RELATION: 2}),
        {},
        report=lambda unique_id, result: events.append(f"{unique_id[-1]} {result.took_ms}"),
    )

    assert events == ["asked 2", "0 40", "1 40", "asked 1", "2 40"]
    assert list(results) == list(tests)


def test_tests_of_one_statement_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([10.0, 10.6])
    monkeypatch.setattr(checks, "perf_counter", lambda: next(moments))
    monkeypatch.setattr(checks, "ms_since", lambda began: round((next(moments) - began) * 1000))
    unique = project("unique").tests[TEST]
    pair = [replace(unique, unique_id=name) for name in ("a", "b")]
    rows = [
        {"test_id": test.unique_id, "failures": 0, "warns": False, "fails": False} for test in pair
    ]
    spark = cast(Any, SimpleNamespace(sql=lambda text: SimpleNamespace(collect=lambda: rows)))

    results = checks._ask(spark, [(test, "") for test in pair])

    assert {result.took_ms for result in results.values()} == {300}


def test_a_long_value_and_a_wide_row_are_cut() -> None:
    line = failing_row([f"c{number}" for number in range(20)], ["x" * 1_000, *["1"] * 19])

    assert line.startswith(f"c0={'x' * 60}\u2026, c1=1")
    assert line.endswith("c11=1, \u2026")


def test_signs_that_a_terminal_obeys_are_written_out() -> None:
    line = failing_row(["a\x1b[2J", "n\u00f8te"], ["line\r\nend", "\u202eleft, \u00e9"])

    assert line == "a\\x1b[2J=line\\r\\nend, n\u00f8te=\\u202eleft, \u00e9"


def test_a_value_that_is_unknown_is_null() -> None:
    assert failing_row(["a", "b"], [None, ""]) == "a=null, b="
