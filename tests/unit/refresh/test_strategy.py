"""What becomes of a model whose strategy does not hold in a batch, by its policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from livemart.delta.warehouse import Commit, Warehouse
from livemart.errors import PlanError
from livemart.plan.planner import Inputs, plan_query
from livemart.plan.reasons import Reason
from livemart.project.graph import Policy
from livemart.refresh import strategy
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.pinned_table import FallBack
from tests.unit.plan.test_project_plans import policy_project

SQL = "select shop_id, max(amount) as most from shop.sales group by 1"


def moved(policy: Policy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Refresh a model in a batch that the cost gate refuses."""

    def too_many(run: object) -> None:
        raise FallBack(Reason("COST_GATE", "1000001 keys are affected", None))

    monkeypatch.setattr(strategy, "changed_rows", too_many)
    monkeypatch.setattr(strategy, "_require_names", lambda *_: None)
    monkeypatch.setattr(strategy, "spelled", lambda plan, _: plan)
    monkeypatch.setattr(strategy, "takes_large_lane", lambda *_: False)
    monkeypatch.setattr(strategy, "refresh_full", lambda *_: Commit(5, False, 1, 1))
    warehouse = Warehouse(folder)
    context = BatchContext(cast(Any, None), warehouse, "e", 3, "auto", 10, 1)
    (model,) = policy_project(policy).models.values()
    plan = plan_query(SQL, Inputs({"shop.sales": ("shop_id", "amount")}))
    assert plan.strategy.name == "region"
    inputs = PinnedInputs(warehouse, {"shop.sales": 1}, {"shop.sales": 1})
    return strategy.move(context, model, plan, inputs, inputs.at(model.relation, 4), 0)


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
    commit, name, reason = moved(policy, tmp_path, monkeypatch)

    assert (commit.version, name, reason.code) == (5, "full", "COST_GATE")
