"""Which stored rows a window against the clock gains and loses."""

from __future__ import annotations

from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query

HOUR = 3_600_000_000
INPUTS = Inputs(columns={"s.sales": ("shop", "sold_at"), "s.clock": ("as_of",)}, clocks={"s.clock"})


def plan(condition: str) -> Plan:
    return plan_query(
        f"select shop, count(*) as n from s.sales where {condition} group by 1", INPUTS
    )


def test_a_bound_on_a_stored_time_is_a_slice_of_it() -> None:
    found = plan("sold_at >= (select as_of from s.clock) - interval 24 hours")

    (piece,) = found.slices
    assert (piece.column, piece.margin, piece.is_lower) == ("sold_at", 0, True)
    assert found.parameters == {piece.clock_occurrence: True}


def test_a_bound_on_a_truncated_time_has_a_margin() -> None:
    (piece,) = plan("date_trunc('hour', sold_at) < (select as_of from s.clock)").slices

    assert (piece.margin, piece.is_lower) == (HOUR, False)


def test_a_bound_that_no_stored_time_moves_with_makes_every_row_depend_on_the_clock() -> None:
    found = plan("to_timestamp(concat(shop, '')) < (select as_of from s.clock)")

    assert found.slices == ()
    assert False in found.parameters.values()
