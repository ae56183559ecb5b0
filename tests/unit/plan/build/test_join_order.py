"""Inner joins change places with each other alone, and only for an equality."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from livemart.plan.build.join_order import joins_in_order


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
