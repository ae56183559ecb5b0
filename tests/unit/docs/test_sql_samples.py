"""Every SQL sample of the documentation is a model that is refreshed incrementally."""

from __future__ import annotations

import pytest

from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from tests.sql_samples import CLOCKS, SAMPLES, TABLES


@pytest.mark.parametrize("place", SAMPLES)
def test_a_sample_is_planned_without_a_reason_against_it(place: str) -> None:
    plan = plan_query(SAMPLES[place], Inputs(TABLES, clocks=CLOCKS))

    assert plan.strategy.name in ("append", "signed", "region"), plan.reasons
    assert plan.reasons == ()


def test_the_samples_are_found() -> None:
    pages = {place.partition(":")[0] for place in SAMPLES}

    assert {"README.md", "docs/refresh.md", "docs/tutorial.md", "docs/first-project.md"} <= pages
