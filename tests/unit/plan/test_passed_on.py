"""Which output columns are columns of an input, through CTEs, unions and other models."""

from __future__ import annotations

import pytest

from livemart.plan.passed_on import passed_on_columns
from livemart.plan.sql.flatten import flatten

COLUMNS = {"m.orders": ("id", "d", "a"), "m.rates": ("id", "d"), "m.view": ("id", "d")}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id, d as price, d + 1 as more from m.orders", {"id", "price"}),
        ("with o as (select * from m.orders where d > 0) select D, (a) as a from o", {"d", "a"}),
        ("select d, count(*) as n from m.orders group by d", set()),
        ("select distinct d from m.orders", set()),
        ("select max(d) as d from m.orders", set()),
        ("select id, d from m.orders union all select id, 0 from m.rates", {"id"}),
        ("select d from m.orders union select d from m.rates", set()),
        ("select id, d from m.orders union all by name select d, 0 as id from m.rates", {"d"}),
        (
            "select o.d, r.d as rate from m.orders as o join m.rates as r on o.d = r.d",
            {"d", "rate"},
        ),
        ("select d, count(*) over (partition by d) as n from m.orders", {"d"}),
        ("select x from m.orders lateral view explode(a) as x", set()),
        ("select id, d from m.view", {"id"}),
        ("select * from m.orders pivot (max(d) for id in ('x'))", set()),
        ("select o.d from m.unknown as o", set()),
    ],
)
def test_a_column_is_passed_on_where_nothing_is_computed_of_it(
    sql: str, expected: set[str]
) -> None:
    found = passed_on_columns(flatten(sql, {}), COLUMNS, {"m.view": frozenset({"id"})})

    assert found == expected
