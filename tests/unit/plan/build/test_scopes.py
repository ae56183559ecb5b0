"""SQL as relations: inputs, and the expression of each column."""

from __future__ import annotations

import pytest

from livemart.plan.planner import Inputs, plan_query

INPUTS = Inputs(columns={"s.sales": ("id", "shop", "amount")}, unique={"s.sales": (("id",),)})


def test_a_common_table_expression_is_read_through() -> None:
    plan = plan_query(
        "with big as (select id, shop as seller from s.sales where amount > 9)"
        " select seller, id from big",
        INPUTS,
    )

    assert plan.names == ("seller", "id")
    assert plan.unique_key == ("id",)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select shop from s.sales limit 3", "LIMIT_WITHOUT_ORDER"),
        ("select max(amount) as n from s.sales", "GLOBAL_AGG"),
        ("select id from s.sales where id not in (select id from s.sales)", "NULL_AWARE_ANTI"),
    ],
)
def test_a_shape_without_a_rule_has_its_own_reason(sql: str, code: str) -> None:
    plan = plan_query(sql, INPUTS)

    assert (plan.strategy.name, plan.reasons[0].code) == ("full", code)
