"""The gates of a SELECT: groups and windows, with a note where their rows may tie."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query

INPUTS = Inputs(columns={"s.sales": ("id", "shop", "at")}, unique={"s.sales": (("id",),)})


@pytest.mark.parametrize(
    ("order", "expected"),
    [("at, id", ("region", ())), ("at", ("region", ("NONDETERMINISTIC_ORDER",)))],
)
def test_an_order_that_may_tie_is_noted(order: str, expected: object) -> None:
    plan = plan_query(
        f"select shop, row_number() over (partition by shop order by {order}) n from s.sales",
        INPUTS,
    )

    assert (plan.strategy.name, tuple(reason.code for reason in plan.reasons)) == expected


def test_groups_are_unique_by_their_columns() -> None:
    plan = plan_query("select upper(shop) as name, max(at) as last from s.sales group by 1", INPUTS)

    assert plan.unique_key == ("name",)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select sum(amount) as total from s.orders", "depends on every row"),
        (
            "with t as (select sum(amount) as total from s.orders)"
            " select id, amount / total as share from s.orders cross join t",
            "rows are compared with a total over all rows",
        ),
    ],
)
def test_a_total_over_all_rows_is_told_from_rows_that_are_compared_with_it(
    query: str, words: str
) -> None:
    plan = plan_query(query, Inputs({"s.orders": ("id", "amount")}))

    assert plan.steps is not None
    assert words in plan.steps.uncut[0].message
