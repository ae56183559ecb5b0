"""The gates of a SELECT: groups, and windows whose answer does not hang on ties."""

from __future__ import annotations

import pytest

from livemart.plan.planner import Inputs, plan_query

INPUTS = Inputs(columns={"s.sales": ("id", "shop", "at")}, unique={"s.sales": (("id",),)})


@pytest.mark.parametrize(
    ("order", "expected"),
    [("at, id", ("region", ())), ("at", ("full", ("NONDETERMINISTIC_ORDER",)))],
)
def test_a_number_of_rows_needs_an_order_without_ties(order: str, expected: object) -> None:
    plan = plan_query(
        f"select shop, row_number() over (partition by shop order by {order}) n from s.sales",
        INPUTS,
    )

    assert (plan.strategy.name, tuple(reason.code for reason in plan.reasons)) == expected


def test_groups_are_unique_by_their_columns() -> None:
    plan = plan_query("select upper(shop) as name, max(at) as last from s.sales group by 1", INPUTS)

    assert plan.unique_key == ("name",)
