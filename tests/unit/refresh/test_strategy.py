"""A model whose strategy does not apply in a batch is handled by its policy."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

from livemart.conflicts import TableChangedError
from livemart.delta.warehouse import Commit, Warehouse
from livemart.errors import PlanError, RefreshError
from livemart.own_faults import VARIABLE
from livemart.plan.plan import Inputs
from livemart.plan.planner import plan_query
from livemart.plan.reasons import Inapplicable, Reason
from livemart.plan.stored_queries import StoredQuery, stored_queries
from livemart.project.graph import Policy
from livemart.refresh import strategy
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import PinnedInputs
from tests.unit.plan.test_project_plans import policy_project

SQL = "select shop_id, max(amount) as most from shop.sales group by 1"

STORED = SimpleNamespace(names={}, schema=SimpleNamespace(names=["another"]))


def stored_query(policy: Policy) -> StoredQuery:
    project = policy_project(policy)
    plan = plan_query(SQL, Inputs({"shop.sales": ("shop_id", "amount")}))
    (query,) = stored_queries(project, dict.fromkeys(project.models, plan)).values()
    return query


def moved(policy: Policy, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Refresh a model in a batch that the cost gate refuses."""

    def too_many(run: object) -> None:
        raise Inapplicable(Reason("COST_GATE", "1000001 keys are affected", None))

    monkeypatch.setattr(strategy, "changed_rows", too_many)
    monkeypatch.setattr(PinnedInputs, "resolve", lambda *_: (STORED, ()))
    monkeypatch.setattr(PinnedInputs, "has_news", lambda *_: True)
    monkeypatch.setattr(strategy, "spelled", lambda plan, _: plan)
    monkeypatch.setattr(strategy, "refresh_full", lambda *_: Commit(5, 1))
    warehouse = Warehouse(folder)
    context = BatchContext(cast(Any, None), warehouse, "e", 3, "auto", 10, 1)
    query = stored_query(policy)
    assert query.plan.strategy.name == "region"
    inputs = PinnedInputs(warehouse, {"shop.sales": 1}, {"shop.sales": 1})
    tag = context.tags.rows(query.relation)
    return strategy.move(context, query, inputs, tag)


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


class Bug(KeyError):
    """A mistake of ours."""


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what refreshes a model whose strategy meets an error, and tells the full refreshes."""
    context: list[BatchContext] = []

    def run(error: BaseException, policy: Policy = "auto", full: Exception | None = None) -> Any:
        def changed_rows(run: object) -> None:
            raise error

        def refresh_full(*_: object) -> Commit:
            if full is not None:
                raise full
            return Commit(5, 1)

        monkeypatch.setattr(strategy, "changed_rows", changed_rows)
        monkeypatch.setattr(PinnedInputs, "resolve", lambda *_: (STORED, ()))
        monkeypatch.setattr(PinnedInputs, "has_news", lambda *_: True)
        monkeypatch.setattr(strategy, "spelled", lambda plan, _: plan)
        monkeypatch.setattr(strategy, "refresh_full", refresh_full)
        monkeypatch.setattr(strategy, "recompute", refresh_full)
        warehouse = Warehouse(tmp_path)
        if not context:
            context.append(BatchContext(cast(Any, None), warehouse, "e", 3, "auto", 10, 1))
        query = stored_query(policy)
        inputs = PinnedInputs(warehouse, {"shop.sales": 1}, {"shop.sales": 1})
        tag = context[0].tags.rows(query.relation)
        return strategy.move(context[0], query, inputs, tag)

    return run


@pytest.mark.parametrize(
    "error", [Bug("customerkey"), RefreshError("SCHEMA_MISMATCH", "column n", hint="")]
)
def test_an_unexpected_error_costs_no_more_than_a_full_refresh(
    failing: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.delenv(VARIABLE)

    with structlog.testing.capture_logs() as events:
        for _ in range(2):
            commit, name, reason = failing(error)

    assert (commit.version, name, reason.code) == (5, "full", "STRATEGY_FAILED")
    assert "region failed" in reason.message
    assert [event["event"] for event in events] == ["strategy_failed"]


def test_an_unexpected_error_is_loud_in_the_tests(failing: Any) -> None:
    with pytest.raises(Bug):
        failing(Bug("customerkey"))


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        TableChangedError("TABLE_CHANGED", "m.t", hint=""),
        OSError(28, "No space left on device"),
        RuntimeError("[SPARK_JOB_CANCELLED] Job 3"),
    ],
)
def test_what_is_no_strategys_fault_goes_its_way(failing: Any, error: BaseException) -> None:
    with pytest.raises(type(error)):
        failing(error)


@pytest.mark.parametrize("policy", ["auto", "strict"])
def test_what_the_full_refresh_meets_too_is_the_models(
    failing: Any, monkeypatch: pytest.MonkeyPatch, policy: Policy
) -> None:
    monkeypatch.delenv(VARIABLE)

    with (
        structlog.testing.capture_logs() as events,
        pytest.raises(ZeroDivisionError, match="of the model"),
    ):
        failing(Bug("a view of ours"), policy, ZeroDivisionError("of the model"))

    assert events == []


def test_a_strict_model_fails_with_its_strategy(failing: Any) -> None:
    with pytest.raises(PlanError, match=r"strict, but STRATEGY_FAILED: region failed: Bug"):
        failing(Bug("customerkey"), "strict")


def test_a_model_of_whose_inputs_none_changed_is_left_alone(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    context = BatchContext(cast(Any, None), warehouse, "e", 3, "auto", 10, 1)
    query = stored_query("strict")
    inputs = PinnedInputs(warehouse, {"shop.sales": 1}, {"shop.sales": 1})
    tag = context.tags.rows(query.relation)

    assert strategy.move(context, query, inputs, tag) is None


def test_a_model_whose_version_is_gone_differs_from_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[object] = []

    def opened(*_: object) -> None:
        raise RefreshError("VERSION_GONE", "m.totals: version 4", hint="")

    def refresh_full(*arguments: object) -> Commit:
        stored.append(arguments[-1])
        return Commit(5, 1)

    monkeypatch.setattr(PinnedInputs, "resolve", opened)
    monkeypatch.setattr(strategy, "refresh_full", refresh_full)
    monkeypatch.setattr(PinnedInputs, "has_news", lambda *_: True)
    monkeypatch.setattr(PinnedInputs, "newest", lambda *_: "the newest")
    context = BatchContext(cast(Any, None), Warehouse(tmp_path), "e", 3, "auto", 10, 1)
    query = stored_query("auto")
    inputs = PinnedInputs(context.warehouse, {}, {})
    tag = context.tags.rows(query.relation)

    moved = strategy.move(context, query, inputs, tag)

    assert moved is not None and moved[2] is not None
    assert (moved[2].code, stored) == ("CDF_UNAVAILABLE", ["the newest"])
