"""Elements of a row depend on that row alone, and confine nothing themselves."""

from __future__ import annotations

from livemart.plan.relations.generate import Generate
from livemart.plan.relations.relation import Restrictions, Want
from tests.unit.plan.relations.scans import expr, sales


def exploded() -> Generate:
    return Generate(sales(), expr("explode(shop)"), "e", ("item",), outer=False)


def test_a_generated_column_is_no_key() -> None:
    assert exploded().is_local(expr("shop"), anchored=True)
    assert not exploded().is_local(expr("e.item"), anchored=True)
    assert exploded().trace(expr("e.item")) is None


def test_what_is_read_is_not_narrowed_by_generated_columns() -> None:
    restrictions = Restrictions()

    exploded().restrict(Want((expr("shop"), expr("e.item"))), restrictions)

    assert restrictions.scans == {0: [Want((expr("shop"), None))]}
