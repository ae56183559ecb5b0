"""Which stored columns a query needs."""

from __future__ import annotations

import pytest

from livemart.plan.planner import Inputs, plan_query
from livemart.plan.sql.flatten import flatten
from livemart.plan.sql.used_columns import reads_every_column

INPUTS = Inputs(columns={"s.sales": ("sale_id", "shop", "amount", "note")})


def used(sql: str) -> object:
    return plan_query(sql, INPUTS).used


def test_columns_that_no_result_depends_on_are_not_read() -> None:
    inner = "select shop, amount, note from s.sales where sale_id is not null"

    assert used(f"select shop, sum(amount) as total from ({inner}) group by 1") == {
        0: frozenset({"sale_id", "shop", "amount"})
    }


def test_all_columns_are_read_where_a_name_says_nothing() -> None:
    assert used("select a from s.sales as t (a, b, c, d)") == {}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select t.* from mart.totals as t", True),
        ("select * except (id) from mart.totals", True),
        ("with t as (select * from mart.totals) select id from t", True),
        ("select t.id from mart.totals as t natural join mart.others as o", True),
        ("select id, count(*) as n from mart.totals group by id", False),
        ("select id, 2 * id as twice from mart.totals", False),
    ],
)
def test_what_reads_every_column(sql: str, expected: bool) -> None:
    assert reads_every_column(flatten(sql, {})) is expected
