from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.conflicts import may_pass
from livemart.errors import ConfigError, RefreshError
from livemart.plan.plan import Full, Plan
from livemart.plan.stored_queries import stored_queries
from livemart.project.graph import Project
from livemart.project.hooks.run_end import TestEnd
from livemart.project.node_results import NodeResult, NodeStatus
from livemart.refresh.frontier import Broken, Loaded, Rebuild
from livemart.run import dbt_builds
from livemart.run.dbt_builds import build_alone, build_models, build_seeds, end_build
from livemart.spark.model_errors import ModelFailedError
from tests.models import make_model

MODELS = {
    model.unique_id: model
    for model in (
        make_model("seed.m.currencies", materialized="seed"),
        make_model("model.m.totals"),
        make_model("model.m.names", materialized="view"),
    )
}
PROJECT = Project("m", ".", "m", {}, MODELS, {}, {})


class _Dbt:
    """Answers that every node ended with `status`, and notes what was selected."""

    def __init__(self, status: NodeStatus) -> None:
        self.status = status
        self.project = PROJECT
        self.selections: list[list[str]] = []
        self.ended: list[dict[str, TestEnd]] = []
        self.hooks: dict[str, NodeResult] = {}

    def end_run(self, tests: Mapping[str, TestEnd]) -> dict[str, NodeResult]:
        self.ended.append(dict(tests))
        return self.hooks

    def build(
        self, *, data_tests: bool, only: Collection[str] | None = None, ends: bool = True
    ) -> dict[str, NodeResult]:
        assert not data_tests
        self.selections.append(sorted(only or ()))
        return {
            unique_id: NodeResult(unique_id, model.name, "model", self.status, "no", 30, None)
            for unique_id, model in MODELS.items()
        }


def _runtime(status: NodeStatus = "success") -> Any:
    return SimpleNamespace(
        spark=None,
        session=lambda model: None,
        settings=SimpleNamespace(warehouse=None),
        warehouse=SimpleNamespace(
            version=lambda relation: 5,
            table_id=lambda relation: "id",
            row_count=lambda relation: 40,
        ),
        dbt=_Dbt(status),
        project=PROJECT,
        plans=SimpleNamespace(
            stored=stored_queries(
                PROJECT, {key: Plan(Full(), fingerprint=f"f {key}") for key in MODELS}
            ),
            renew=lambda: None,
        ),
    )


@pytest.fixture(autouse=True)
def _without_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbt_builds, "register", lambda *_, **__: None)


def test_a_build_gives_every_stored_model_its_next_generation() -> None:
    before: Any = SimpleNamespace(models={"model.m.totals": SimpleNamespace(generation=2)})

    built: dict[str, NodeResult] = {}
    states = build_models(_runtime(), before, built)

    assert built.keys() == MODELS.keys()
    assert {unique_id: state.generation for unique_id, state in states.items()} == {
        "seed.m.currencies": 0,
        "model.m.totals": 3,
    }
    totals = states["model.m.totals"]
    assert (totals.reason, totals.took_ms, totals.fingerprint) == ("BUILD", 30, "f model.m.totals")
    assert totals.rows_changed == 40


def test_a_model_that_dbt_cannot_build_stops_the_build() -> None:
    built: dict[str, NodeResult] = {}
    with pytest.raises(RefreshError) as caught:
        build_models(_runtime("error"), None, built)

    assert caught.value.code == "MODEL_FAILED"
    assert built["model.m.totals"].status == "error"


SEED = "seed.m.currencies"
REBUILD = Rebuild("FINGERPRINT_CHANGED", "the file is another", 4)


def test_a_seed_that_dbt_has_loaded_is_at_the_batch_already() -> None:
    runtime = _runtime()

    starts = build_seeds(runtime, {SEED: REBUILD})

    assert runtime.dbt.selections == [[SEED]]
    (loaded,) = starts.values()
    assert isinstance(loaded, Loaded)
    assert (loaded.code, loaded.message, loaded.generation) == (
        *("FINGERPRINT_CHANGED", "the file is another", 4),
    )
    assert (loaded.state.reason, loaded.state.generation) == ("FINGERPRINT_CHANGED", 4)


@pytest.mark.parametrize(
    ("status", "message"), [("error", "no"), ("skipped", "dbt has skipped it")]
)
def test_a_seed_that_cannot_be_loaded_is_told_and_stops_nothing(
    status: NodeStatus, message: str
) -> None:
    starts = build_seeds(_runtime(status), {SEED: REBUILD})

    assert starts == {SEED: Broken(f"seeds/currencies.sql: {message}")}


def _making(monkeypatch: pytest.MonkeyPatch, status: NodeStatus, message: str) -> Any:
    """Return a runtime whose dbt makes the one snapshot with this result."""
    history = make_model("snapshot.m.history", materialized="snapshot")
    runtime = _runtime(status)
    project = Project("m", ".", "m", {}, {history.unique_id: history}, {}, {})
    runtime.project = runtime.dbt.project = project
    runtime.warehouse.exists = lambda relation: True
    result = NodeResult(history.unique_id, "history", "snapshot", status, message, 1, None)
    monkeypatch.setattr(runtime.dbt, "build", lambda **_: {history.unique_id: result})
    return runtime


def test_a_snapshot_that_dbt_makes_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    build_alone(_making(monkeypatch, "success", ""), "snapshot.m.history")


@pytest.mark.parametrize(("status", "message"), [("error", "no column"), ("skipped", "")])
def test_a_snapshot_that_dbt_does_not_make_has_failed(
    monkeypatch: pytest.MonkeyPatch, status: NodeStatus, message: str
) -> None:
    with pytest.raises(ModelFailedError, match=message or "skipped"):
        build_alone(_making(monkeypatch, status, message), "snapshot.m.history")


def test_what_may_pass_is_not_the_snapshots_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = _making(monkeypatch, "error", "[DELTA_CONCURRENT_APPEND] somebody else")

    with pytest.raises(RuntimeError, match="DELTA_CONCURRENT_APPEND") as caught:
        build_alone(runtime, "snapshot.m.history")

    assert may_pass(caught.value)


def test_a_project_that_is_half_edited_costs_the_snapshot_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = _making(monkeypatch, "success", "")

    def fail(**_: object) -> None:
        raise ConfigError("DBT_FAILED", "dbt_project.yml: no YAML", hint="mend it")

    monkeypatch.setattr(runtime.dbt, "build", fail)

    with pytest.raises(ModelFailedError, match="no YAML"):
        build_alone(runtime, "snapshot.m.history")


def test_hooks_of_on_run_end_run_after_the_tests_and_one_that_fails_fails_the_build() -> None:
    runtime = _runtime()
    built: dict[str, NodeResult] = {}
    tests = {"test.m.a": TestEnd("fail", 2, "", 5, datetime(2026, 3, 1, tzinfo=UTC))}

    build_models(runtime, None, built)
    assert runtime.dbt.ended == []
    end_build(runtime, tests, built)
    assert runtime.dbt.ended == [tests]

    hook = NodeResult("operation.m.e", "m-on-run-end-0", "operation", "error", "no table", 1, None)
    runtime.dbt.hooks = {hook.unique_id: hook}
    with pytest.raises(RefreshError, match=r"MODEL_FAILED.*on-run-end.*no table"):
        end_build(runtime, tests, built)
    assert built[hook.unique_id] is hook


def test_hooks_of_on_run_end_see_a_build_that_failed() -> None:
    runtime = _runtime("error")

    with pytest.raises(RefreshError, match="MODEL_FAILED"):
        build_models(runtime, None, {})

    assert runtime.dbt.ended == [{}]
