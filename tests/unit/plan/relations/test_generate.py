"""Elements of a row depend on that row alone, and confine nothing themselves."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("rows", "unique"),
    [
        ("2, shop, 1, shop, 24", ["e.name"]),
        ("2, 7, 1, 5, 24", ["e.item", "e.name"]),
        ("2, shop, 1, shop, 01", []),
        ("2, shop, 1, shop, 1.0", []),
        # Another number of rows than the literals suggest, and a row that is filled with NULL.
        ("4, shop, 1, shop, 24", []),
        ("2, shop, 1, 24", []),
        # Two spellings of one text.
        (r"2, 'a', shop, '\x61', shop", []),
    ],
)
def test_literals_that_stack_gives_once_tell_its_rows_apart(rows: str, unique: list[str]) -> None:
    spread = Generate(sales(), expr(f"stack({rows})"), "e", ("item", "name"), outer=False)

    (by_sale,) = sales().unique_keys()
    assert spread.unique_keys() == [by_sale | {name} for name in unique]
