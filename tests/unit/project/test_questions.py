"""The questions of a node while it is compiled, and equal answers."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from livemart.project.cursors import StatementFailed
from livemart.project.questions import (
    Question,
    QuestionLog,
    ask,
    columns_question,
    relation_question,
)
from livemart.project.run_values import CANONICAL

NODE = "model.m.pivoted"


class FakeCursor:
    """Answers each statement with the same rows, or refuses it."""

    def __init__(self, *rows: tuple[object, ...], refusal: str = "") -> None:
        self.rows = rows
        self.refusal = refusal
        self.statements: list[str] = []
        self.description: Sequence[tuple[Any, ...]] = [("method", "string", None)]

    def execute(self, sql: str, *parameters: Any) -> None:
        self.statements.append(sql)
        if self.refusal:
            raise StatementFailed(self.refusal)

    def fetchall(self) -> Sequence[Sequence[Any]]:
        return list(self.rows)

    def fetchone(self) -> Sequence[Any] | None:
        return self.rows[0] if self.rows else None

    def close(self) -> None: ...


def asked(sql: str, cursor: FakeCursor) -> tuple[tuple[Question, ...], list[Any]]:
    """Return what a node asks by a statement, and the rows that it is given."""
    log = QuestionLog(CANONICAL)
    with log.compiling(NODE, "m.pivoted"):
        noting = log.cursor(cursor)
        noting.execute(f"/* dbt */ {sql}")
        rows = list(noting.fetchall() or ())
    return log.asked[NODE], rows


def test_a_statement_is_one_question_with_its_rows() -> None:
    (question,), rows = asked("select method from t", FakeCursor(("cash",), ("card",)))

    assert (question.kind, question.about) == ("rows", "select method from t")
    assert rows == [("cash",), ("card",)]
    assert ask(FakeCursor(("cash",), ("card",)), question) == question
    assert ask(FakeCursor(("cash",)), question) != question


@pytest.mark.parametrize(
    ("builds", "full_refresh", "is_hidden"),
    [
        ("no", None, True),
        ("no", False, True),
        ("in full", None, True),
        ("in full", False, False),
        ("more", None, False),
    ],
)
def test_a_model_is_told_that_its_own_table_is_absent(
    builds: Literal["no", "in full", "more"], full_refresh: bool | None, is_hidden: bool
) -> None:
    log = QuestionLog(CANONICAL, builds=builds)

    assert log.hides_own_table(SimpleNamespace(full_refresh=full_refresh)) is is_hidden


@pytest.mark.parametrize(
    ("sql", "is_sorted"),
    [
        ("select distinct method from t", True),
        ("select method from t join s using (order_id)", True),
        ("select method from (select * from t order by at) as t group by method", True),
        ("select method from t group by method order by count(*) desc", False),
        ("select method from methods", False),
    ],
)
def test_rows_that_spark_gives_in_any_order_have_one(sql: str, is_sorted: bool) -> None:
    (question,), rows = asked(sql, FakeCursor(("voucher",), ("card",)))

    assert rows == ([("card",), ("voucher",)] if is_sorted else [("voucher",), ("card",)])
    assert (ask(FakeCursor(("card",), ("voucher",)), question) == question) is is_sorted


def test_a_statement_of_which_nobody_looks_at_a_row_is_asked_for_its_columns() -> None:
    log = QuestionLog(CANONICAL)
    with log.compiling(NODE, "m.pivoted"):
        log.cursor(FakeCursor(("cash",))).execute("select * from t limit 0")

    (question,) = log.asked[NODE]

    assert question.kind == "schema"
    assert ask(FakeCursor(), question) == question


def test_a_refusal_is_an_answer() -> None:
    log = QuestionLog(CANONICAL)
    with log.compiling(NODE, "m.pivoted"), pytest.raises(StatementFailed):
        log.cursor(FakeCursor(refusal="[NOT_FOUND] t\nplan")).execute("select 1 from t")

    (question,) = log.asked[NODE]

    assert ask(FakeCursor(refusal="[NOT_FOUND] t\nanother plan"), question) == question
    assert ask(FakeCursor((1,)), question) != question


def test_statements_that_change_something_and_those_outside_of_a_node_are_no_questions() -> None:
    log = QuestionLog(CANONICAL)
    with log.compiling(NODE, "m.pivoted"):
        log.cursor(FakeCursor()).execute("insert into log select 1")
        node = log.node
        assert node is not None
        with node.answering():
            log.cursor(FakeCursor()).execute("describe extended m.t")
    log.cursor(FakeCursor()).execute("select 1")

    assert log.asked == {NODE: ()}
    assert log.node is None


def test_a_relation_that_is_not_there_is_another_answer() -> None:
    kinds = [relation_question("m.t", kind) for kind in (None, "table", "view")]

    assert len(set(kinds)) == 3
    assert [question.is_lacking for question in kinds] == [True, False, False]
    assert columns_question("m.t", [("a", "INT")]) == columns_question("m.t", [("a", "int")])
    assert columns_question("m.t", [("a", "int")]) != columns_question("m.t", [])


def test_of_a_list_of_tables_only_the_names_count() -> None:
    (first,), _ = asked("show table extended in m like '*'", FakeCursor(("m", "t", "made at 9")))
    (second,), _ = asked("show table extended in m like '*'", FakeCursor(("m", "t", "made at 10")))

    assert first == second


def test_columns_break_the_ties_of_an_order() -> None:
    cursor = FakeCursor(("card",), ("cash",))

    asked("select method from t group by method order by count(*) desc", cursor)

    assert cursor.statements[-1].endswith("order by count(*) desc\n, 1")
