"""Which stored columns a query needs."""

from __future__ import annotations

from livemart.plan.planner import Inputs, plan_query

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
