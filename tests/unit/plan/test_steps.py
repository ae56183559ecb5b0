"""Queries that are cut into stages and a last step."""

from __future__ import annotations

from typing import Any

import pytest

from livemart.plan import steps
from livemart.plan.plan import Full, Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.signed import Signed

COUNT = "count(distinct x + {0}) as n{0}"


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


def test_groups_of_a_stage_that_select_no_count_are_counted_to_be_added_up() -> None:
    plan = plan_query(
        "select k, sum(x) as total from s.t group by k order by total desc limit 3",
        Inputs({"s.t": ("k", "x")}),
    )

    (stage,) = plan.stages
    assert isinstance(stage.plan.strategy, Signed)
    assert stage.plan.names == ("k", "total", "__livemart_rows")
    assert plan.names == ("k", "total")


def test_groups_that_a_count_does_not_make_add_up_have_none() -> None:
    plan = plan_query(
        "select k, max(x) as most from s.t group by k order by most desc limit 3",
        Inputs({"s.t": ("k", "x")}),
    )

    (stage,) = plan.stages
    assert isinstance(stage.plan.strategy, Region)
    assert stage.plan.names == ("k", "most")


@pytest.mark.parametrize(
    ("value", "is_kept"),
    [
        ("c", False),
        ("upper(c)", True),
        ("s", False),
        ("s.c", True),
        ("day - date '2026-01-01'", False),
        ("case when k > 1 then cast(day as timestamp) - interval 1 day end", True),
        ("make_dt_interval(k)", False),
        ("coalesce((day - to_date(c)) / 2, null)", False),
        ("to_timestamp(c) - timestamp_seconds(k)", False),
        ("round(k / 10) * 10", True),
        ("md5(k)", True),
    ],
)
def test_values_are_counted_in_a_stage_if_its_table_keeps_them(value: str, is_kept: bool) -> None:
    kinds = {
        "k": "number",
        "c": "sized string",
        "day": "date32[day]",
        "s": "sized struct<c: string>",
    }
    plan = plan_query(
        f"select count(*) as n, count(distinct k) as ks, count(distinct {value}) as m from s.t",
        Inputs({"s.t": tuple(kinds)}, kinds={"s.t": kinds}),
    )

    assert isinstance(plan.strategy, Full) != is_kept
    assert bool(plan.stages) == is_kept


def test_a_difference_of_what_may_be_times_is_not_counted_in_a_stage() -> None:
    """The table does not exist yet."""
    for value, is_kept in (("if(k > 1, day - c, null)", False), ("upper(k)", True)):
        query = f"select count(*) as n, count(distinct {value}) as m from s.t"
        plan = plan_query(query, Inputs({"s.t": ("k", "c", "day")}))
        assert isinstance(plan.strategy, Full) != is_kept, value


@pytest.mark.parametrize(
    "query",
    [
        f"select count(*) as n, {', '.join(map(COUNT.format, range(8)))} from s.t",
        " union all ".join(f"select {n} as a, {COUNT.format(n)} from s.t" for n in range(9)),
        "with r as (select max(x) as m, (select max(k) from s.t) as k from s.t) select * from r",
        "select count(*) as n, count(distinct k) as ks from s.t",
    ],
)
def test_stages_for_which_there_is_no_room_cost_no_second_attempt(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning is slow enough: 25 counts took 4.5 s in place of 0.3 s."""
    depths: list[int] = []
    plan_part = steps._plan_part

    def noted(flat: Any, inputs: Inputs, depth: int, attempt: Any) -> Plan:
        depths.append(depth)
        return plan_part(flat, inputs, depth, attempt)

    monkeypatch.setattr(steps, "_plan_part", noted)
    kinds = {"k": "string", "x": "number"}
    plan = plan_query(query, Inputs({"s.t": ("k", "x")}, {"s.t": (("k",),)}, kinds={"s.t": kinds}))

    assert isinstance(plan.strategy, Full)
    assert depths.count(0) == 1


@pytest.mark.parametrize(
    ("inputs", "messages"),
    [
        (Inputs({"s.t": ("k", "x")}), []),
        (Inputs({"s.t": ("k", "x")}, {"s.t": (("k",),)}, growing={"s.t": "x"}), []),
        (
            Inputs({"s.t": ("k", "x")}, growing={"s.t": None}),
            ["a stage stores each x that s.t has ever had"],
        ),
    ],
)
def test_different_values_that_grow_without_end_are_noted(
    inputs: Inputs, messages: list[str]
) -> None:
    plan = plan_query("select count(*) as n, count(distinct x) as xs from s.t", inputs)

    assert plan.stages
    assert [it.message for it in plan.notes if it.code == "GROWTH_UNBOUNDED"] == messages


@pytest.mark.parametrize("unique", [("k",), ("c", "k"), ("day",)])
def test_values_that_no_two_rows_share_are_not_counted_in_a_stage(unique: tuple[str, ...]) -> None:
    """It would be a copy of the table."""
    plan = plan_query(
        "select count(*) as n, count(distinct if(day > '2026', concat(c, k), null)) as m from s.t",
        Inputs({"s.t": ("k", "c", "day")}, {"s.t": (unique,)}),
    )

    assert isinstance(plan.strategy, Full) == (unique != ("day",))
