"""Fields of a struct whose column is named as its table."""

from __future__ import annotations

import pytest

from livemart.plan.sql.parse import parse
from livemart.plan.sql.struct_fields import name_fields

SCHEMA = {
    "orders": {"order_id": "", "items": "", "body": ""},
    "Repo": {"id": "", "repo": ""},
    "shops": {"shop_id": "", "name": ""},
    "unknown": {},
}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "select item.dish from orders lateral view explode(items) item as item",
            "item.item.dish",
        ),
        ("select repo.id, repo.name.first from Repo", "repo.repo.name.first"),
        ("with p as (select *, struct(1 as a) as p from orders) select p.a from p", "p.p.a"),
        (
            "with p as (select struct(1 as a) as p union all select 1) select p.a from p",
            "p.p.a",
        ),
        ("with p (q, p) as (select 1, struct(1 as a)) select p.a from p", "p.p.a"),
        ("select P.A from (select struct(1 as a) as p from orders) p", "p.P.A"),
        # Another table has a column of that name.
        ("select shops.a from shops join (select struct(1 as a) as shops) s", "s.shops.a"),
        # The query around a subquery has it.
        (
            "with p as (select struct(1 as a) as p) select (select max(order_id) from orders"
            " where orders.order_id = p.a) as most from p",
            "p.p.a",
        ),
    ],
)
def test_a_name_that_its_table_has_not_is_a_field(sql: str, expected: str) -> None:
    tree = parse(sql)

    name_fields(tree, SCHEMA)

    assert expected in tree.sql("spark")


@pytest.mark.parametrize(
    "sql",
    [
        "select order_id from orders",
        # The table has such a column, a field or not.
        "select p.a from (select struct(1 as a) as p, 2 as a) as p",
        # Its columns are not known.
        "select p.a from (select *, struct(1 as a) as p from unknown) as p",
        "select unknown.a, b.unknown from unknown join (select 1 as unknown) as b",
        # Neither a column nor a field: Spark says what is wrong.
        "select shops.a from shops",
    ],
)
def test_other_names_stay(sql: str) -> None:
    tree = parse(sql)
    before = tree.sql("spark")

    name_fields(tree, SCHEMA)

    assert tree.sql("spark") == before
