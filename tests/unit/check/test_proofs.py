"""Tests over views, and tests that did not pass: what the rows that came and went tell of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pytest

from livemart.arrow.bags import WEIGHT
from livemart.check import checks
from livemart.check.checks import TestResult, run_checks
from livemart.check.proofs import SHOWN_BY_NEW_ROWS, Prover, columns_unique_together
from livemart.check.versions import CheckedVersions
from livemart.plan.project_plans import ProjectPlans
from livemart.plan.sql.flatten import Flat
from livemart.project.graph import DataTest, Model, Project
from tests.models import make_model

ORDERS, SHOPS = "raw.orders", "raw.shops"
TEST = "test.mini.t"
VIEW = (
    "select o.order_id as id, upper(o.status) as status, o.note, s.city"
    " from raw.orders as o left join raw.shops as s on o.shop_id = s.shop_id"
)
ACCEPTED = """

with all_values as (

    select
        note as value_field,
        count(*) as n_records

    from (select note from raw.orders)
    group by note

)

select *
from all_values
where value_field not in (
    'a','b'
)
"""
COLUMNS = {
    ORDERS: ("order_id", "shop_id", "status", "note"),
    SHOPS: ("shop_id", "city"),
}


class FakeWarehouse:
    """Two tables of text columns and what changed in them; nothing is ever read whole."""

    def __init__(self, **changed: Sequence[tuple[int, Mapping[str, str | None]]]) -> None:
        self._changed = changed

    def exists(self, relation: str) -> bool:
        return relation in COLUMNS

    def arrow_schema(self, relation: str) -> pa.Schema:
        return pa.schema([(name, pa.string()) for name in COLUMNS[relation]])

    def column_kinds(self, relation: str) -> dict[str, str] | None:
        return dict.fromkeys(COLUMNS[relation], "string") if self.exists(relation) else None

    def changes(self, relation: str, v0: int, v1: int) -> pa.Table:
        rows = self._changed.get(relation.removeprefix("raw."), ())
        schema = self.arrow_schema(relation).append(pa.field(WEIGHT, pa.int64()))
        weighted = [{**row, WEIGHT: weight} for weight, row in rows]
        return pa.Table.from_pylist(weighted, schema)

    def read(self, *_: object, **_options: object) -> pa.Table:
        raise AssertionError("a table is read")


def model(name: str, materialized: Literal["table", "view"], code: str) -> Model:
    return make_model(
        f"model.mini.{name}", schema="raw", materialized=materialized, compiled_code=code
    )


def prover(
    kind: str | None, column: str | None, code: str, *, is_usual: bool = True, **arguments: Any
) -> Prover:
    """Return what knows one test of the view over two stored tables."""
    models = [
        model("orders", "table", "select 1"),
        model("shops", "table", "select 1"),
        model("seen", "view", VIEW),
    ]
    test = DataTest(
        unique_id=TEST,
        name="t",
        kind=kind,
        column_name=column,
        arguments=arguments,
        severity="warn",
        compiled_code=code,
        depends_on=(),
        attached_to="model.mini.seen",
        file="",
        is_usual=is_usual,
    )
    by_id = {each.unique_id: each for each in models}
    project = Project("mini", ".", "raw", {}, by_id, {TEST: test}, {})
    kinds = {relation: dict.fromkeys(names, "string") for relation, names in COLUMNS.items()}
    return Prover(ProjectPlans(project, kinds.get))


def row(note: str | None = "a", order_id: str | None = "1") -> dict[str, str | None]:
    return {"order_id": order_id, "shop_id": "s", "status": "placed", "note": note}


def run(
    knows: Prover,
    warehouse: FakeWarehouse,
    previous: str,
    versions: CheckedVersions,
    answers: Sequence[int] = (),
) -> tuple[TestResult, list[str]]:
    """Return the result, and the SQL that went to Spark, which answers in turn."""
    asked: list[str] = []
    left = list(answers)

    def ask(
        session: object, statements: Sequence[tuple[DataTest, str]]
    ) -> Iterator[tuple[str, TestResult]]:
        for test, sql in statements:
            asked.append(sql)
            count = left.pop(0)
            yield test.unique_id, TestResult("warn" if count else "pass", count, "full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_ask_all", ask)
        result = run_checks(
            None,  # type: ignore[arg-type]
            warehouse,  # type: ignore[arg-type]
            knows,
            versions,
            {TEST: previous},
        )
    return result[TEST], asked


ONE_LATER = CheckedVersions({ORDERS: 1, SHOPS: 1}, {ORDERS: 2, SHOPS: 1})
BOTH_LATER = CheckedVersions({ORDERS: 1, SHOPS: 1}, {ORDERS: 2, SHOPS: 2})
NOT_NULL = "select * from raw.seen where {} is null"


def test_a_column_that_a_view_only_passes_on_is_shown_by_its_table() -> None:
    knows = prover("not_null", "id", NOT_NULL.format("id"))

    result, asked = run(knows, FakeWarehouse(orders=[(1, row())]), "pass", ONE_LATER)

    assert (result.status, result.how, asked) == ("pass", "changes", [])


@pytest.mark.parametrize(
    ("column", "order", "versions"),
    [
        ("id", row(order_id=None), ONE_LATER),
        ("status", row(), ONE_LATER),
        ("city", row(), ONE_LATER),
        ("id", row(), BOTH_LATER),
    ],
    ids=["a NULL came", "an expression", "of a row that a join may not find", "the lookup changed"],
)
def test_what_the_new_rows_do_not_show_of_a_view_is_asked(
    column: str, order: dict[str, str | None], versions: CheckedVersions
) -> None:
    knows = prover("not_null", column, NOT_NULL.format(column))
    warehouse = FakeWarehouse(orders=[(1, order)], shops=[(1, {"shop_id": "s", "city": None})])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_statement", lambda *_: "asked")
        _, asked = run(knows, warehouse, "pass", versions, [0])

    assert asked == ["asked"]


def test_a_test_of_a_projects_own_is_asked_whatever_its_name_is() -> None:
    own = "select * from raw.seen where trim(id) = ''"
    knows = prover("not_null", "id", own, is_usual=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_statement", lambda *_: "asked")
        result, _ = run(
            knows, FakeWarehouse(orders=[(1, row(order_id=" "))]), "pass", ONE_LATER, [1, 1]
        )

    assert result.status == "warn"


def test_accepted_values_are_asked_of_the_new_rows_without_their_groups() -> None:
    knows = prover("accepted_values", None, ACCEPTED)

    seen: list[str] = []

    def statement(test: DataTest, reader: object, flat: Flat, rows: object = None) -> str:
        seen.append(flat.text)
        return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_statement", statement)
        result, _ = run(knows, FakeWarehouse(orders=[(1, row())]), "pass", ONE_LATER, [0])

    assert result.how == "changes"
    assert "group by" not in seen[0]
    assert "count(*)" not in seen[0]
    assert "not in" in seen[0]


FAILING = "select order_id from raw.orders where note is null"


def moved(
    changed: Sequence[tuple[int, Mapping[str, str | None]]], answers: Sequence[int]
) -> tuple[TestResult, list[str]]:
    """Return the result after a batch in which the test first failed for three rows."""
    knows = prover(None, None, FAILING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_statement", lambda test, *_: test.unique_id)
        run(knows, FakeWarehouse(), "warn", CheckedVersions({}, {ORDERS: 1, SHOPS: 1}), [3])
        return run(knows, FakeWarehouse(orders=changed), "warn", ONE_LATER, answers)


def test_failing_rows_are_counted_on_from_what_was_known() -> None:
    result, asked = moved([(1, row(None)), (-1, row(None, "2"))], [1, 2])

    assert asked == [f"{TEST} new", f"{TEST} gone"]
    assert (result.status, result.failures, result.how) == ("warn", 2, "changes")


def test_the_last_failing_row_that_goes_makes_the_test_pass() -> None:
    result, asked = moved([(-1, row(None))], [3])

    assert asked == [f"{TEST} gone"]
    assert (result.status, result.failures) == ("pass", 0)


def test_a_count_that_cannot_be_is_asked_in_full() -> None:
    result, asked = moved([(-1, row(None))], [4, 1])

    assert asked == [f"{TEST} gone", TEST]
    assert (result.status, result.failures, result.how) == ("warn", 1, "full")


def test_rows_count_as_often_as_they_came() -> None:
    knows = prover(None, None, FAILING)
    knows.remember(knows.project.tests[TEST], 1, CheckedVersions({}, {ORDERS: 1}))

    found = knows.moved_test(
        knows.project.tests[TEST],
        FakeWarehouse(orders=[(3, row(None)), (-2, row(None, "2"))]),  # type: ignore[arg-type]
        ONE_LATER,
    )

    assert found is not None
    assert [rows.rows[0].num_rows for _, rows, _ in found.sides()] == [3, 2]


def test_what_was_known_of_other_versions_is_not_used() -> None:
    knows = prover(None, None, FAILING)
    knows.remember(knows.project.tests[TEST], 3, CheckedVersions({}, {ORDERS: 0, SHOPS: 0}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_statement", lambda test, *_: test.unique_id)
        result, asked = run(knows, FakeWarehouse(orders=[(1, row())]), "warn", ONE_LATER, [5])

    assert asked == [TEST]
    assert (result.failures, result.how) == (5, "full")


def make_test(kind: str, column: str | None = None, **arguments: Any) -> DataTest:
    return DataTest("test.m.t", "t", kind, column, arguments, "error", "", (), None, "")


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (make_test("unique", "`Shop` "), ("Shop",)),
        (make_test("unique_combination_of_columns", combination_of_columns=["a", "b"]), ("a", "b")),
        (make_test("unique_combination", columns=["a"]), ("a",)),
        (make_test("not_null", "a"), ()),
    ],
)
def test_columns_that_are_unique_together(test: DataTest, expected: tuple[str, ...]) -> None:
    assert columns_unique_together(test) == expected


def test_new_rows_show_nothing_of_keys_that_spark_finds_equal_and_arrow_does_not() -> None:
    rows = pa.table({"d": [-0.0, 0.0], WEIGHT: [1, 1]})

    shown = SHOWN_BY_NEW_ROWS["unique"](make_test("unique", "d"), rows, lambda **_: rows)

    assert not shown


@pytest.mark.parametrize(("n", "expected"), [([1, 2], True), ([1, None], False)])
def test_new_rows_show_that_a_column_is_not_null(n: list[int | None], expected: bool) -> None:
    rows = pa.table({"N": n, WEIGHT: [1, 1]})

    shown = SHOWN_BY_NEW_ROWS["not_null"](make_test("not_null", "n"), rows, None)  # type: ignore[arg-type]

    assert shown is expected
