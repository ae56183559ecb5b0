"""Queries that are cut into stages and a last step."""

from __future__ import annotations

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query


def test_a_part_that_is_read_twice_is_one_stage_before_its_readers() -> None:
    groups = "select k, count(*) as n from s.t group by k"
    plan = plan_query(
        f"with g as ({groups}) select n, count(*) as times from ({groups}\n) as h"
        " where n > (select avg(n) from g) group by n",
        Inputs({"s.t": ("k", "x")}),
    )

    before: list[str] = ["s.t"]
    for stage in plan.stages:
        assert stage.plan.flat is not None
        assert set(stage.plan.flat.relations) <= set(before)
        before.append(stage.relation)
    assert len(before) == len(set(before)) == 3
    assert plan.flat is not None
    assert set(plan.flat.relations) == set(before[1:])
