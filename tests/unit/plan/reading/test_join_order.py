"""Inner joins change places with each other alone, for an equality, or to begin with the facts."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from livemart.plan.reading.join_order import facts_first, has_comma_joins, joins_in_order


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("select 1 from a, b, c where a.k = c.k and c.l = b.l", "c b"),
        ("select 1 from a, b, c where a.k = b.k and b.l = c.l", "b c"),
        ("select 1 from a, b, c, d where d.k = a.k and c.k = d.k and b.k <=> c.k", "d c b"),
        ("select 1 from a, b, c where a.k = c.k", "c b"),
        ("select 1 from a, b, c", "b c"),
        ("select 1 from a, b, c where a.k + b.k = c.k", "b c"),
        ("select 1 from a, b, c where a.k = c.k or c.l = b.l", "b c"),
        ("select 1 from a cross join b join c on c.k = a.k and c.l = b.l", "c b"),
        # The left join reads b, which stays before it.
        ("select 1 from a, b left join c on c.k = b.k, d where a.k = d.k and d.k = b.k", "b c d"),
        ("select 1 from a, b left join c on c.k = a.k where a.k = c.l and c.l = b.l", "b c"),
    ],
)
def test_an_item_comes_where_an_equality_leads_to_it(query: str, order: str) -> None:
    tree = parse_one(query, dialect="spark")
    where = tree.find(exp.Where)

    joins = joins_in_order(tree.args["joins"], ["a"], where and where.this)

    assert " ".join(join.this.alias_or_name for join, _ in joins) == order


_UNIQUE = {"days": ["day"], "items": ["item"], "sales": ["item", "ticket"], "tickets": ["ticket"]}


@pytest.mark.parametrize(
    ("query", "order"),
    [
        (
            "select 1 from days, sales, items where days.day = sales.day"
            " and sales.item = items.item",
            "sales days items",
        ),
        (
            "select 1 from items as i, days, sales as s where s.day = days.day and s.item = i.item",
            "s i days",
        ),
        # They find each other by unique keys, or neither does: no one is the facts.
        (
            "select 1 from items as a, items as b, sales where a.item = b.item",
            "a b sales",
        ),
        ("select 1 from days, sales where days.day < sales.day", "days sales"),
        ("select 1 from days, sales left join items on true where days.day = sales.day", ""),
        ("select 1 from days join sales on days.day = sales.day", ""),
    ],
)
def test_facts_come_before_those_whose_unique_keys_they_hold(query: str, order: str) -> None:
    tree = parse_one(query, dialect="spark")
    first, joins, where = tree.args["from_"].this, tree.args["joins"], tree.find(exp.Where)

    item, others = facts_first(first, joins, where and where.this, _unique_keys)

    names = [item.alias_or_name, *(join.this.alias_or_name for join in others)]
    assert names == (order.split() or [first.name, *(join.this.name for join in joins)])
    assert has_comma_joins(tree) == (where is not None)


def _unique_keys(item: exp.Expr) -> list[frozenset[str]]:
    return [frozenset(f"{item.alias_or_name}.{name}" for name in _UNIQUE[item.name])]
