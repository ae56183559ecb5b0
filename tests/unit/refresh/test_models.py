"""Which models a batch leaves alone, and in which order it takes the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from livemart.delta.warehouse import Commit, Warehouse
from livemart.plan.project_plans import ProjectPlans
from livemart.project.graph import Project
from livemart.refresh import models
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import PinnedInputs
from livemart.state.snapshots import ModelState
from tests.models import make_model

BEFORE = ModelState(4, "f", "region", "COST_GATE", 9, 5, 2, "t")
SEED = make_model("seed.m.shops", materialized="seed", compiled_code=None)
VIEW = make_model(
    "model.m.seen",
    materialized="view",
    compiled_code="select * from m.shops",
    depends_on=(SEED.unique_id,),
)
TABLE = make_model(
    "model.m.counted",
    compiled_code="select city, count(*) as n from m.seen group by 1",
    depends_on=(VIEW.unique_id,),
)


def test_a_model_whose_inputs_have_not_changed_keeps_its_state(tmp_path: Path) -> None:
    project = Project("m", ".", "m", {}, {m.unique_id: m for m in (SEED, VIEW, TABLE)}, {}, {})
    warehouse = Warehouse(tmp_path)
    said: list[tuple[str, str]] = []
    context = BatchContext(
        cast(Any, None), warehouse, "e", 3, "auto", 10, 1, report=lambda *words: said.append(words)
    )
    states = {model.unique_id: BEFORE for model in (SEED, TABLE)}
    versions = {"m.shops": 4, "m.counted": 4}

    after = models.refresh_models(
        context, ProjectPlans(project), PinnedInputs(warehouse, versions, dict(versions), states)
    )

    unchanged = replace(BEFORE, strategy="unchanged", reason=None, rows_changed=0, took_ms=0)
    assert after == {SEED.unique_id: unchanged, TABLE.unique_id: unchanged}
    # The table waits for the seed that it reads through the view.
    assert [unique_id for unique_id, word in said if word == "started"] == list(states)


def test_a_model_that_is_new_is_recomputed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project("m", ".", "m", {}, {TABLE.unique_id: TABLE}, {}, {})
    warehouse = Warehouse(tmp_path)
    monkeypatch.setattr(models, "refresh_full", lambda *_: Commit(0, False, 0, 0))
    monkeypatch.setattr(warehouse, "table_id", lambda relation: "t")
    context = BatchContext(cast(Any, None), warehouse, "e", 3, "auto", 10, 1)

    after = models.refresh_models(context, ProjectPlans(project), PinnedInputs(warehouse, {}, {}))

    state = after[TABLE.unique_id]
    assert (state.strategy, state.reason, state.version) == ("full", "NEW_MODEL", 0)
