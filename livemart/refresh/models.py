"""Refreshes every model of a project in one batch, in dependency order, and records their states.

Used by run for each micro-batch that has something new. A model whose inputs have not changed keeps
its state, and nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

import structlog

from livemart.delta.warehouse import Commit
from livemart.errors import PlanError, RefreshError
from livemart.failpoints import failpoint
from livemart.intervals import ms_since
from livemart.own_faults import is_own_fault
from livemart.plan.planner import Full, Plan
from livemart.plan.project_plans import ProjectPlans
from livemart.project.graph import Model, Project
from livemart.refresh.context import BatchContext, Rebuild, SqlChanged
from livemart.refresh.dependency_order import in_dependency_order
from livemart.refresh.full import refresh_full
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.strategy import move
from livemart.spark.model_errors import ModelFailedError, model_failed
from livemart.state.failures import ModelFailures
from livemart.state.snapshots import ModelState, SetAside


@dataclass(frozen=True, slots=True)
class RefreshedModels:
    """The state of every stored model at a batch, by unique id, and which were set aside.

    A model that is set aside has the state of the frontier; none if it never had one.
    """

    states: dict[str, ModelState] = field(default_factory=dict)
    set_aside: dict[str, SetAside] = field(default_factory=dict)


def refresh_models(
    context: BatchContext, plans: ProjectPlans, inputs: PinnedInputs
) -> RefreshedModels:
    """Refresh all stored models of a project in one batch.

    A model that cannot be computed ends the batch, and no row is made of it. When it has failed
    often enough it is set aside instead, with all that read it, and the others go on.

    Args:
        context: session, tables and identity of the batch.
        plans: of the project.
        inputs: what every change set starts from; each model adds its version as it ends.

    Raises:
        RefreshError: a model could not be refreshed.
        PlanError: POLICY_NOT_MET, if a model of policy strict would fall back to a full refresh.
    """
    models, parents = plans.project.models, _parents(plans)
    refresher = _Refresher(context, plans, inputs)
    done = RefreshedModels(set_aside=refresher.set_aside)
    failures: list[ModelFailedError] = []

    def refresh(unique_id: str) -> ModelState | SetAside | ModelFailedError:
        return refresher.refresh(unique_id, parents[unique_id])

    # What took long in the last batch is likely to in this one.
    took_ms = context.kept.took_ms
    costs = {unique_id: state.took_ms for unique_id, state in inputs.states.items()} | took_ms
    for unique_id, end in in_dependency_order(parents, refresh, context.threads, costs):
        if isinstance(end, ModelState):
            done.states[unique_id] = end
            if end.took_ms:
                took_ms[unique_id] = end.took_ms
        else:
            if isinstance(end, ModelFailedError):
                failures.append(end)
                end = refresher.aside(unique_id, cause=unique_id, message=end.message)
            done.set_aside[unique_id] = end
            if (before := inputs.states.get(unique_id)) is not None:
                done.states[unique_id] = carried(before)
        if (state := done.states.get(unique_id)) is not None:
            inputs.new[models[unique_id].relation] = state.version
    _judge(context, plans, failures)
    context.kept.views.keep(inputs.new)
    return done


def waiting_models(plans: ProjectPlans, unique_ids: Set[str], stays: Set[str]) -> dict[str, str]:
    """Return the stored ones of these models and all that wait for one, each with the one.

    Args:
        plans: of the project.
        unique_ids: of models that a batch does not refresh.
        stays: those that wait for nothing, as they stay as they are.
    """
    causes: dict[str, str] = {}
    for unique_id, parents in _parents(plans).items():
        if unique_id in stays:
            continue
        if unique_id in unique_ids:
            causes[unique_id] = unique_id
        elif waits_for := sorted(parents & causes.keys()):
            causes[unique_id] = causes[waits_for[0]]
    return causes


def _parents(plans: ProjectPlans) -> dict[str, set[str]]:
    """Return the stored models that each stored model reads, through views as well."""
    models = plans.project.models
    parents: dict[str, set[str]] = {}
    stored: dict[str, str] = {}
    for unique_id, model in models.items():
        if model.is_stored:
            flat = plans.models[unique_id].flat
            # What SQL names without `ref` is read as well, if it comes before.
            named = {stored[it] for it in flat.relations if it in stored} if flat else set[str]()
            parents[unique_id] = _read_tables(plans.project, model) & models.keys() | named
            stored[model.relation] = unique_id
    return parents


def _judge(context: BatchContext, plans: ProjectPlans, failures: list[ModelFailedError]) -> None:
    """Let the models be set aside that have failed often enough; any other one ends the batch.

    Raises:
        ModelFailedError: MODEL_FAILED.
    """
    counts = ModelFailures(context.warehouse.root)
    counts.keep_only({failure.unique_id for failure in failures})
    again: list[ModelFailedError] = []
    for failure in failures:
        fingerprint = plans.models[failure.unique_id].fingerprint
        known = context.behind.get(failure.unique_id)
        is_failing = known is not None and not known.is_left_out
        if known is not None and is_failing and known.fingerprint == fingerprint:
            continue
        if counts.count(failure.unique_id, fingerprint) < context.attempts:
            again.append(failure)
    if again:
        again[0].is_retriable = context.runs_again
        raise again[0]
    counts.keep_only(())
    for failure in failures:
        structlog.get_logger().error(
            "model_set_aside",
            batch_id=context.batch_id,
            model=failure.unique_id,
            error=failure.message,
            hint="mend it: it comes back by itself; the models that read it wait with it",
        )


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
        self.set_aside: dict[str, SetAside] = {}

    def refresh(
        self, unique_id: str, parents: Set[str]
    ) -> ModelState | SetAside | ModelFailedError:
        """Return where a model is after this batch, or why it is nowhere."""
        context, model = self._context, self._project.models[unique_id]
        if (done := context.done.get(unique_id)) is not None:
            return done
        before = self._inputs.states.get(unique_id)
        is_made = self._is_made(model, before)
        if (waits_for := self._waits_for(unique_id, parents if is_made else ())) is not None:
            context.report(unique_id, "waiting")
            return waits_for
        if (message := context.lost.get(unique_id)) is not None:
            return self._failed(ModelFailedError(model, message))
        try:
            if is_made:
                context.before_model(unique_id, self._inputs)
            context.report(unique_id, "started")
            failpoint(f"refresh.before_model.{model.name}")
            if model.materialized == "snapshot" and unique_id in context.rebuilds:
                state = self._taken_over(model, context.rebuilds[unique_id])
            elif not is_made and before is not None:
                state = carried(before)
            else:
                state = self._state(model, self._plans[unique_id], before)
        except ModelFailedError as failure:
            return self._failed(failure)
        except (RefreshError, PlanError, SqlChanged):
            raise
        except Exception as error:
            if not is_own_fault(error):
                raise
            told = model_failed(context.session, model, error)
            told.__cause__ = error
            return self._failed(told)
        failpoint(f"refresh.after_model.{model.name}")
        context.report(unique_id, state.strategy if state.rows_changed else "unchanged", state)
        return state

    def _is_made(self, model: Model, before: ModelState | None) -> bool:
        """Return True if the batch makes rows of a model, be it by dbt."""
        if model.materialized == "seed":
            # They are a file of the project.
            return before is None
        if model.materialized != "snapshot":
            return True
        # Dbt alone writes it: one that it has written meanwhile is there.
        rebuild = self._context.rebuilds.get(model.unique_id)
        is_there = self._context.warehouse.exists(model.relation)
        return rebuild is not None and not (rebuild.code == "CHANGED_OUTSIDE" and is_there)

    def _taken_over(self, model: Model, rebuild: Rebuild) -> ModelState:
        """Return the state of a dbt snapshot: its table as it lies."""
        warehouse = self._context.warehouse
        return ModelState(
            version=warehouse.version(model.relation),
            fingerprint=self._plans[model.unique_id].fingerprint,
            strategy=Full.name,
            reason=rebuild.code,
            rows_changed=0,
            took_ms=0,
            generation=rebuild.generation,
            table_id=warehouse.table_id(model.relation),
        )

    def _failed(self, failure: ModelFailedError) -> ModelFailedError:
        """Return the failure of a model, unless it is to stop everything."""
        self._context.report(failure.unique_id, "failed")
        if self._project.models[failure.unique_id].on_error == "stop":
            raise failure
        return failure

    def _waits_for(self, unique_id: str, parents: Iterable[str]) -> SetAside | None:
        """Return what a model waits for: a model that it reads, or its next attempt."""
        if (resting := self._context.resting.get(unique_id)) is not None:
            return resting
        for parent in sorted(parents):
            if (aside := self.set_aside.get(parent)) is not None:
                return self.aside(unique_id, aside.cause, aside.message)
        return None

    def aside(self, unique_id: str, cause: str, message: str) -> SetAside:
        """Return a model as set aside; one that was before stays so since then."""
        context, known = self._context, self._context.behind.get(unique_id)
        was_there = unique_id in self._inputs.states
        return SetAside(
            since=known.since if known and not known.is_left_out else context.snapshot_id,
            refreshed_at=known.refreshed_at
            if known
            else context.frontier_at
            if was_there
            else None,
            fingerprint=self._plans[unique_id].fingerprint,
            cause=cause,
            message=message,
        )

    def _state(self, model: Model, plan: Plan, before: ModelState | None) -> ModelState:
        started = time.perf_counter()
        context, warehouse = self._context, self._context.warehouse
        rebuild = context.rebuilds.get(model.unique_id)
        generation = rebuild.generation if rebuild else (before.generation if before else 0)
        tag = context.tag(model.relation, generation)
        strategy, code = plan.strategy.name, None
        if warehouse.exists(model.relation) and warehouse.is_tagged(model.relation, tag):
            commit = Commit(warehouse.version(model.relation), True, 0, 0)
        elif rebuild is not None or before is None:
            strategy, code = Full.name, rebuild.code if rebuild else "NEW_MODEL"
            # A rebuild stamps every row anew, also those that stay as they are.
            stored = None if plan.stamps else self._inputs.newest(model.relation)
            commit = refresh_full(context, model, plan, self._inputs, tag, stored)
        elif not self._is_touched(model, plan):
            return carried(before)
        else:
            stored = self._inputs.at(model.relation, before.version)
            commit, strategy, reason = move(context, model, plan, self._inputs, stored, generation)
            code = reason.code if reason is not None else None
        took_ms = ms_since(started)
        has_written = commit.skipped or commit.rows_changed > 0
        if before is not None and rebuild is None and not has_written:
            return carried(before, took_ms)
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
        try:
            return self._reads_news(model, plan)
        except Exception as error:
            if isinstance(error, RefreshError) or not is_own_fault(error):
                raise
            # The strategy meets it again, and there it is reported.
            return True

    def _reads_news(self, model: Model, plan: Plan) -> bool:
        if isinstance(plan.strategy, Full) and plan.strategy.is_volatile:
            return True
        if plan.flat is None:
            project = self._project
            relations = [
                (project.models.get(unique_id) or project.sources[unique_id]).relation
                for unique_id in _read_tables(project, model)
            ]
        elif self._inputs.schemas.changed(plan.flat, plan.used) is not None:
            return True
        else:
            relations = list(plan.flat.relations)
        return any(map(self._inputs.may_have_changed, relations))


def carried(before: ModelState, took_ms: int = 0) -> ModelState:
    """Return the state of a model without net change: the same table version, nothing written."""
    return replace(before, strategy="unchanged", reason=None, rows_changed=0, took_ms=took_ms)
