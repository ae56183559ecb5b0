"""Which SQL is running totals."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.strategies.running import Running, Total

HOUR = 3_600_000_000
INPUTS = Inputs(columns={"s.sales": ("shop", "amount", "sold_at")})
OVER = "over (partition by shop order by sold_at range between interval 1 hour preceding and {})"


def test_a_sum_over_a_frame_that_ends_with_its_row_is_a_running_total() -> None:
    over = OVER.format("current row")
    plan = plan_query(f"select shop, sold_at, sum(amount) {over} as total from s.sales", INPUTS)

    assert isinstance(plan.strategy, Running)
    assert plan.strategy.totals == (Total("total", "amount", HOUR),)
    assert plan.strategy.keys == (("shop", "shop"),)
    assert plan.others == (plan.region,)


@pytest.mark.parametrize(
    "total",
    [
        f"max(amount) {OVER.format('current row')}",
        f"sum(amount) {OVER.format('interval 1 hour following')}",
        f"sum(2 * amount) {OVER.format('current row')}",
    ],
    ids=["no sum", "rows that come later", "an expression"],
)
def test_anything_else_is_a_region(total: str) -> None:
    plan = plan_query(f"select shop, sold_at, {total} as total from s.sales", INPUTS)

    assert type(plan.strategy).__name__ == "Region"
