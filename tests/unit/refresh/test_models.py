"""What becomes of a model whose strategy does not hold in a batch, by its policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit, Warehouse
from livemart.errors import PlanError
from livemart.plan.planner import Inputs, plan_query
from livemart.plan.project_plans import ProjectPlans
from livemart.plan.reasons import Reason
from livemart.project.graph import Policy
from livemart.refresh import models as refresh
from livemart.refresh.inputs import FallBack
from livemart.refresh.views import SharedViews
from livemart.settings import load_settings
from livemart.state.snapshots import ModelState
from tests.unit.plan.test_policies import make_project

SQL = "select shop_id, max(amount) as most from shop.sales group by 1"
BEFORE = ModelState(4, "f", "region", None, 1, 1, 0, "t")


def moved(policy: Policy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Refresh a model in a batch that the cost gate refuses."""

    def too_many(run: object) -> None:
        raise FallBack(Reason("COST_GATE", "1000001 keys are affected", None))

    done = Commit(5, False, 1, 1)
    monkeypatch.setattr(refresh, "changed_rows", too_many)
    monkeypatch.setattr(refresh, "takes_large_lane", lambda *_: False)
    monkeypatch.setattr(refresh, "refresh_full", lambda *_, **__: done)
    project = make_project(policy)
    context = SimpleNamespace(
        spark=None,
        warehouse=Warehouse(folder),
        settings=load_settings({}, environ={}, directory=folder),
        batch_id=3,
        rebuilds={},
        tag=lambda relation, generation: Tag("t", 3, {}),
    )
    (model,) = project.models.values()
    model = replace(model, compiled_code=SQL)
    plan = plan_query(SQL, Inputs({"shop.sales": ("shop_id", "amount")}))
    assert plan.strategy.name == "region"
    frontier = SimpleNamespace(sources={"shop.sales": 1}, models={})
    refresher = refresh._Refresher(
        cast(Any, context),
        ProjectPlans(project),
        cast(Any, frontier),
        {"shop.sales": 1},
        SharedViews(),
    )
    return refresher._moved(model, plan, BEFORE, 0)


def test_a_strict_model_refuses_to_be_recomputed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PlanError, match=r"models/totals\.sql: .*COST_GATE: 1000001 keys") as caught:
        moved("strict", tmp_path, monkeypatch)

    assert caught.value.code == "POLICY_NOT_MET"


@pytest.mark.parametrize("policy", ["auto", "incremental"])
def test_other_models_are_recomputed_in_full(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, strategy, reason = moved(policy, tmp_path, monkeypatch)

    assert (commit.version, strategy, reason.code) == (5, "full", "COST_GATE")
