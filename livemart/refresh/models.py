"""Refreshes every model of a project in one batch, in dependency order, and records their states.

Used by run for each micro-batch that has something new. A model whose inputs have not changed keeps
its state, and nothing is written.
"""

from __future__ import annotations

import time
from dataclasses import replace

from livemart.delta.warehouse import Commit
from livemart.errors import PlanError, RefreshError, first_lines
from livemart.failpoints import failpoint
from livemart.intervals import ms_since
from livemart.plan.planner import Full, Plan
from livemart.plan.project_plans import ProjectPlans
from livemart.project.graph import Model, Project
from livemart.refresh.context import BatchContext
from livemart.refresh.dependency_order import in_dependency_order
from livemart.refresh.full import refresh_full
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.strategy import move
from livemart.state.snapshots import ModelState


def refresh_models(
    context: BatchContext, plans: ProjectPlans, inputs: PinnedInputs
) -> dict[str, ModelState]:
    """Refresh all stored models of a project in one batch.

    Args:
        context: session, tables and identity of the batch.
        plans: of the project.
        inputs: what every change set starts from; each model adds its version as it ends.

    Returns:
        The state of every stored model at this batch, by unique id.

    Raises:
        RefreshError: a model could not be refreshed.
        PlanError: POLICY_NOT_MET, if a model of policy strict would fall back to a full refresh.
    """
    models = plans.project.models
    parents = {
        unique_id: _read_tables(plans.project, model) & models.keys()
        for unique_id, model in models.items()
        if model.is_stored
    }
    refresher = _Refresher(context, plans, inputs)
    states: dict[str, ModelState] = {}
    for unique_id, state in in_dependency_order(parents, refresher.refresh, context.threads):
        inputs.new[models[unique_id].relation] = state.version
        states[unique_id] = state
    context.kept.views.keep(inputs.new)
    return states


def _read_tables(project: Project, model: Model) -> set[str]:
    """Return the stored models and the sources that a model reads, through views."""
    tables: set[str] = set()
    stack = list(model.depends_on)
    while stack:
        unique_id = stack.pop()
        parent = project.models.get(unique_id)
        if parent is not None and not parent.is_stored:
            stack.extend(parent.depends_on)
        elif parent is not None or unique_id in project.sources:
            tables.add(unique_id)
    return tables


class _Refresher:
    """Decides for one model at a time whether there is anything to do, and records what was done.

    Several threads at once.
    """

    def __init__(self, context: BatchContext, plans: ProjectPlans, inputs: PinnedInputs) -> None:
        self._context = context
        self._project = plans.project
        self._plans = plans.models
        self._inputs = inputs

    def refresh(self, unique_id: str) -> ModelState:
        context, model = self._context, self._project.models[unique_id]
        if (done := context.done.get(unique_id)) is not None:
            return done
        context.report(unique_id, "started")
        failpoint(f"refresh.before_model.{model.name}")
        try:
            state = self._state(model, self._plans[unique_id])
        except (RefreshError, PlanError):
            raise
        except Exception as error:
            raise RefreshError(
                "MODEL_FAILED",
                f"{model.file}: {first_lines(error, 5)}",
                hint="mend the model; readers keep the last published snapshot",
            ) from error
        failpoint(f"refresh.after_model.{model.name}")
        context.report(unique_id, state.strategy if state.rows_changed else "unchanged")
        return state

    def _state(self, model: Model, plan: Plan) -> ModelState:
        started = time.perf_counter()
        context, warehouse = self._context, self._context.warehouse
        before = self._inputs.states.get(model.unique_id)
        rebuild = context.rebuilds.get(model.unique_id)
        if before is not None and model.materialized in ("seed", "snapshot"):
            # Their rows come from files of the project or from dbt's history: build loads them.
            return _carried(before)
        generation = rebuild.generation if rebuild else (before.generation if before else 0)
        tag = context.tag(model.relation, generation)
        strategy, code = plan.strategy.name, None
        if warehouse.exists(model.relation) and warehouse.is_tagged(model.relation, tag):
            commit = Commit(warehouse.version(model.relation), True, 0, 0)
        elif rebuild is not None or before is None:
            strategy, code = Full.name, rebuild.code if rebuild else "NEW_MODEL"
            stored = self._inputs.newest(model.relation)
            commit = refresh_full(context, model, plan, self._inputs, tag, stored)
        elif not self._is_touched(model, plan):
            return _carried(before)
        else:
            stored = self._inputs.at(model.relation, before.version)
            commit, strategy, reason = move(context, model, plan, self._inputs, stored, generation)
            code = reason.code if reason is not None else None
        took_ms = ms_since(started)
        has_written = commit.skipped or commit.rows_changed > 0
        if before is not None and rebuild is None and not has_written:
            return _carried(before, took_ms)
        return ModelState(
            version=commit.version,
            fingerprint=plan.fingerprint,
            strategy=strategy,
            reason=code,
            rows_changed=commit.rows_changed,
            took_ms=took_ms,
            generation=generation,
            table_id=warehouse.table_id(model.relation),
        )

    def _is_touched(self, model: Model, plan: Plan) -> bool:
        if isinstance(plan.strategy, Full) and plan.strategy.is_volatile:
            return True
        if plan.flat is None:
            project = self._project
            relations = [
                (project.models.get(unique_id) or project.sources[unique_id]).relation
                for unique_id in _read_tables(project, model)
            ]
        elif self._inputs.schemas.changed(plan.flat) is not None:
            return True
        else:
            relations = list(plan.flat.relations)
        return any(map(self._inputs.may_have_changed, relations))


def _carried(before: ModelState, took_ms: int = 0) -> ModelState:
    """Return the state of a model without net change: the same table version, nothing written."""
    return replace(before, strategy="unchanged", reason=None, rows_changed=0, took_ms=took_ms)
