"""The names of Spark's functions are lists that a guard can look a written name up in."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Full, Inputs
from livemart.plan.planner import plan_query
from livemart.plan.sql.functions import AGGREGATE_FUNCTIONS, BUILT_IN_FUNCTIONS

INPUTS = Inputs(columns={"s.t": ("k", "x")})


def test_aggregates_are_built_in_and_all_names_are_written_as_they_are_looked_up() -> None:
    assert AGGREGATE_FUNCTIONS < BUILT_IN_FUNCTIONS
    assert {name for name in BUILT_IN_FUNCTIONS if name != name.lower().strip()} == set()


@pytest.mark.parametrize("name", ["upper", "UPPER", "try_to_number", "zeroifnull"])
def test_a_function_of_spark_is_planned(name: str) -> None:
    plan = plan_query(f"select k, max({name}(x)) as most from s.t group by k", INPUTS)

    assert not isinstance(plan.strategy, Full), plan.reasons


@pytest.mark.parametrize("name", ["my_upper", "uppr", "analytics.upper"])
def test_any_other_name_is_a_function_of_the_project(name: str) -> None:
    plan = plan_query(f"select k, max({name}(x)) as most from s.t group by k", INPUTS)

    assert isinstance(plan.strategy, Full)
    assert [reason.code for reason in plan.reasons] == ["UDF_NOT_DETERMINISTIC"]
