"""A query names any column of the model: in a condition, in what is shown, in the order."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from livemart.serve.http.problems import ProblemError
from livemart.serve.models import row_questions
from livemart.serve.models.row_questions import read_row_question
from livemart.store.predicates import ColumnCondition
from livemart.store.served import ServedModel

MODEL = ServedModel(
    "totals",
    (
        ("shop", "string"),
        ("day", "date"),
        ("n", "bigint"),
        ("amount", "decimal(10,2)"),
        ("at", "timestamp"),
        ("tags", "json"),
        ("a,b", "int"),
        ("odd.desc", "int"),
    ),
    ("shop", "day"),
    "shop",
)


@pytest.mark.parametrize(
    ("column", "text", "operator", "value"),
    [
        ("n", "eq.5", "eq", 5),
        ("n", "neq.-5", "neq", -5),
        ("amount", "gt.5.50", "gt", Decimal("5.50")),
        ("day", "gte.2026-03-01", "gte", date(2026, 3, 1)),
        ("at", "lt.2026-03-01T12:00:00Z", "lt", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("n", "lte.5", "lte", 5),
        ("n", "in.(5,6)", "in", (5, 6)),
        ("n", "in.()", "in", ()),
        ("shop", "in.(a,,c d)", "in", ("a", "", "c d")),
        ("shop", r'in.("a,b","say \"x\"","back\\slash","(c)",d)', "in",
         ("a,b", 'say "x"', "back\\slash", "(c)", "d")),
        # Text is text, whatever it looks like.
        ("shop", "eq.null", "eq", "null"),
        ("shop", "eq.", "eq", ""),
        ("shop", 'eq."quoted"', "eq", '"quoted"'),
        ("tags", "is.null", "is", True),
        ("n", "is.not_null", "is", False),
    ],
)  # fmt: skip
def test_a_condition_is_an_operator_and_a_value_of_the_column(
    column: str, text: str, operator: str, value: object
) -> None:
    (found,) = read_row_question(MODEL, [(column, text)]).conditions

    assert (found.column, found.operator, found.value) == (column, operator, value)


@pytest.mark.parametrize(
    ("column", "text", "found"),
    [
        ("n", "5", "n: write one of eq.5"),
        ("n", "", "n: write one of eq.5"),
        ("n", "like.5", "n: write one of eq.5"),
        ("n", "is.5", "n: write one of eq.5"),
        ("n", "eq.x", "n: 'x' is not a value of type bigint"),
        ("n", "in.5", "n: write a list as in.(5,6); found in.5"),
        ("n", "in.(5,x)", "n: 'x' is not a value of type bigint"),
        ("shop", 'in.("a"b)', "shop: put an item with one of"),
        ("shop", "in.(a(b))", "shop: put an item with one of"),
        ("tags", "eq.[]", "tags: '[]' is not a value of type json"),
    ],
)
def test_what_is_no_condition_is_refused_by_its_column(column: str, text: str, found: str) -> None:
    with pytest.raises(ProblemError) as caught:
        read_row_question(MODEL, [(column, text)])

    assert caught.value.code == "PARAMETER_WRONG"
    assert caught.value.detail.startswith(found)


def test_conditions_and_values_have_an_end() -> None:
    many = [("n", "gt.5")] * 50
    values = ",".join(["5"] * 1_000)

    assert len(read_row_question(MODEL, many).conditions) == 50
    lists = [("n", f"in.({values})")] * 10
    assert len(read_row_question(MODEL, lists).conditions) == 10
    with pytest.raises(ProblemError, match="10001 values of lists, 10,000 are the most"):
        read_row_question(MODEL, [*lists, ("n", "in.(5)")])
    assert read_row_question(MODEL, [("n", f"in.({values})")]).conditions == (
        ColumnCondition("n", "in", (5,) * 1_000),
    )
    for conditions in ([*many, ("n", "gt.5")], [("n", f"in.({values},5)")]):
        with pytest.raises(ProblemError):
            read_row_question(MODEL, conditions)


def test_rows_show_the_columns_that_are_named_in_their_order() -> None:
    some = read_row_question(MODEL, [], select='n,"a,b",shop')

    assert some.columns_of(MODEL) == (("n", "bigint"), ("a,b", "int"), ("shop", "string"))
    assert read_row_question(MODEL, []).columns_of(MODEL) == MODEL.columns


def test_the_order_names_columns_and_their_directions() -> None:
    found = read_row_question(MODEL, [], order="n.desc,shop,day.asc,odd.desc")

    assert found.order_by == ("n", "shop", "day", "odd.desc")
    # A name that ends like a direction is a name.
    assert found.descending == ("n",)


def test_a_direction_follows_the_quotes_of_a_name_or_is_inside() -> None:
    for order in ('"a,b".desc,n', '"a,b.desc",n'):
        found = read_row_question(MODEL, [], order=order)

        assert (found.order_by, found.descending) == (("a,b", "n"), ("a,b",))
    for parameter in ("select", "order"):
        with pytest.raises(ProblemError):
            read_row_question(MODEL, [], **{parameter: '"a,b".down'})
    with pytest.raises(ProblemError):
        read_row_question(MODEL, [], select='"a,b".desc')
    assert read_row_question(MODEL, [], order="odd.desc.desc").descending == ("odd.desc",)


@pytest.mark.parametrize(
    ("parameter", "text", "found"),
    [
        (
            "select",
            "amounts",
            "select: no column amounts, did you mean amount?; columns: shop, day",
        ),
        ("select", "", "select: no column "),
        ("select", "n,n", "select: name n once"),
        ("order", "n,n.desc", "order: name n once"),
        ("order", "n.down", "order: no column n.down"),
        ("order", "tags", "order: a column of type json has no order"),
    ],
)
def test_a_column_that_is_not_there_is_refused(parameter: str, text: str, found: str) -> None:
    with pytest.raises(ProblemError) as caught:
        read_row_question(MODEL, [], **{parameter: text})

    assert caught.value.code == "PARAMETER_WRONG"
    assert caught.value.detail.startswith(found)


@pytest.mark.parametrize("parameter", ["select", "order"])
def test_a_name_is_compared_with_few_others_however_many_there_are(
    parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with all others would keep the event loop busy for seconds."""
    compared = 0

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    monkeypatch.setattr(row_questions, "_items", lambda *_: [Name("shop") for _ in range(1_000)])

    with pytest.raises(ProblemError, match=f"{parameter}: name shop once"):
        read_row_question(MODEL, [], **{parameter: "shop,shop"})

    assert compared < 20_000
