"""SQL with holes is put together, and filled, without a look at its text."""

from __future__ import annotations

from livemart.plan.sql.template import Template, separated, template

ORDERS: Template[str | int] = Template(("select * from ", 0))
SHOPS: Template[str | int] = Template(("select * from ", 1))


def test_a_hole_is_filled_and_a_text_that_looks_like_one_is_not() -> None:
    query = template("select '0' as n from (", ORDERS, ") as q")

    assert query.holes == (0,)
    assert query.render(lambda hole: f"t{hole}") == "select '0' as n from (select * from t0) as q"


def test_what_fills_a_hole_may_have_holes() -> None:
    inner: Template[str | int] = Template(("(select * from ", 7, ")"))

    filled = ORDERS.over(lambda hole: inner)

    assert filled.holes == (7,)
    assert str(filled) == "select * from (select * from 7)"


def test_templates_are_joined_by_a_text() -> None:
    both = separated(" union all ", [ORDERS, SHOPS])

    assert both.holes == (0, 1)
    assert str(both) == "select * from 0 union all select * from 1"
    assert str(separated(", ", [])) == ""
