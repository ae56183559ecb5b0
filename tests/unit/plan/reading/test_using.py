"""The column of JOIN ... USING is that of the side whose rows are all there."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query

INPUTS = Inputs(columns={"s.sales": ("shop", "amount"), "s.shops": ("shop", "city")})


@pytest.mark.parametrize(("kind", "occurrence"), [("left", 0), ("right", 1), ("inner", 0)])
def test_the_merged_column_confines_a_change(kind: str, occurrence: int) -> None:
    plan = plan_query(
        "select shop, city, max(amount) as most"
        f" from s.sales {kind} join s.shops using (shop) group by 1, 2",
        INPUTS,
    )

    assert plan.region is not None
    assert "shop" in plan.region.keys
    columns = {item.occurrence: item.columns for item in plan.region.affected}
    assert columns[occurrence] is not None
