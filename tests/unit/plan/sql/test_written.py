"""Printed SQL equals the analyst's text, except for replaced columns."""

from __future__ import annotations

import pytest
from sqlglot import exp

from livemart.plan.reasons import Inapplicable
from livemart.plan.relations.relation import column, replaced
from livemart.plan.sql.parse import parse, words_of
from livemart.plan.sql.written import sql_of


def expression(text: str) -> exp.Expr:
    """Return the one expression of a select list."""
    return parse(f"select {text} as z from t").expressions[0].this  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "text",
    [
        "concat('it''s', x)",
        r"'a\d' || x",
        r"r'a\d'",
        '"say ""so"""',
        "to_char(x, 'yyyy')",
        "to_date(x, 'MM')",
        "array_size(x)",
        "trunc(x, 'Q')",
        "log10(x)",
        "date_trunc(unit, x)",
        "variant_get(parse_json(x), '$.a', 'int')",
        "10L + x",
        "x :: int",
        "x is not null",
        "cast(x as struct<Start:int>)",
        "transform(x, y -> y + 1)",
        "date '2020-01-01'",
        "interval 24 hours",
        "datediff(day, x, unit)",
        "percentile_cont(0.5) within group (order by x)",
        "sum(x) filter (where unit > 1)",
        "case when x = 1 then unit else 'END' end",
        "window(x, '5 minutes').start",
    ],
)
def test_an_expression_is_printed_as_it_was_written(text: str) -> None:
    assert sql_of(expression(text)) == text


def test_blanks_comments_and_the_case_of_key_words_do_not_count() -> None:
    assert sql_of(expression("COUNT (  x ) -- all\n + 1")) == "count ( x ) + 1"
    assert words_of("SELECT  a -- the first\n FROM t") == words_of("select a from t")
    assert words_of("select 'A'") != words_of("select 'a'")


def test_a_column_is_replaced_within_the_text() -> None:
    value = expression("a + b")

    assert sql_of(replaced(expression("to_char(x, 'x')"), lambda _: value)) == (
        "to_char((a + b), 'x')"
    )
    assert sql_of(replaced(expression("x * 2"), lambda _: expression("a rlike b"))) == (
        "(a rlike b) * 2"
    )
    assert sql_of(replaced(expression("x * 2"), lambda _: expression("f(a)"))) == "f(a) * 2"


@pytest.mark.parametrize(
    "text",
    [
        "percentile(1, x, y)",
        "date_trunc(x, y)",
        "trunc(y, x)",
        "to_date(y, x)",
        "to_char(y, x)",
        "make_interval(x, y)",
    ],
)
def test_no_column_is_lost_among_the_arguments(text: str) -> None:
    names = {reference.name for reference in expression(text).find_all(exp.Column)}

    assert names == {"x", "y"}


def test_a_parameter_of_a_function_does_not_capture_a_column() -> None:
    body = expression("transform(elements, e -> e + x)")

    with pytest.raises(Inapplicable) as caught:
        replaced(body, lambda reference: column("e") if reference.name == "x" else None)

    assert "parameter" in caught.value.reason.message
