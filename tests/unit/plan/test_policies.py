"""A policy is kept at plan time: the error names each model, its line and the reason."""

from __future__ import annotations

from typing import cast

import pytest

from livemart.errors import PlanError
from livemart.plan.planner import Full, Plan
from livemart.plan.project_plans import require_policies
from livemart.plan.reasons import Reason
from livemart.project.graph import Policy, Project
from tests.models import make_model

FULL = Plan(Full((Reason("GLOBAL_AGG", "count(*) over all rows", 3),)))


def make_project(policy: Policy) -> Project:
    model = make_model(
        "model.shop.totals",
        compiled_code="select count(*) as n from shop.sales",
        policy=policy,
    )
    return Project("shop", ".", "shop", {}, {model.unique_id: model}, {}, {})


@pytest.mark.parametrize("policy", ["incremental", "strict"])
def test_a_model_that_must_be_incremental_and_cannot_is_an_error(policy: str) -> None:
    project = make_project(cast(Policy, policy))

    with pytest.raises(PlanError, match=r"models/totals\.sql:3: .*GLOBAL_AGG") as caught:
        require_policies(project, {"model.shop.totals": FULL})

    assert caught.value.code == "POLICY_NOT_MET"


@pytest.mark.parametrize("policy", ["auto", "full"])
def test_other_models_may_be_recomputed_in_full(policy: str) -> None:
    require_policies(make_project(cast(Policy, policy)), {"model.shop.totals": FULL})
