"""Refresh: every model brought from the frontier to this batch, in dependency order."""

from __future__ import annotations

import time
from collections.abc import Mapping

from livemart.delta.warehouse import Commit
from livemart.errors import PlanError, RefreshError, first_lines
from livemart.failpoints import failpoint
from livemart.intervals import ms_since
from livemart.plan.planner import Full, Plan
from livemart.plan.project_plans import ProjectPlans
from livemart.plan.reasons import Reason
from livemart.project.graph import Model
from livemart.refresh.context import BatchContext
from livemart.refresh.dependency_order import in_dependency_order
from livemart.refresh.full import refresh_full
from livemart.refresh.inputs import BatchInputs, FallBack, InputSchemas
from livemart.refresh.lane import commit_change, takes_large_lane
from livemart.refresh.model_run import ModelRun
from livemart.refresh.strategy import changed_rows
from livemart.refresh.views import BatchViews, SharedViews
from livemart.spark.large_lane import LargeLane
from livemart.state.snapshots import ModelState, Snapshot

# Errors that a full refresh mends, with the reason that the snapshot row then names.
_RECOMPUTED = {
    "CDF_UNAVAILABLE": "CDF_UNAVAILABLE",
    "VERSION_GONE": "CDF_UNAVAILABLE",
    "STORED_ROWS_DIFFER": "CHANGED_OUTSIDE",
}


def refresh_models(
    context: BatchContext,
    plans: ProjectPlans,
    frontier: Snapshot,
    sources: Mapping[str, int],
    shared: SharedViews,
) -> dict[str, ModelState]:
    """Refresh all stored models of a project in one batch.

    Args:
        context: session, tables and identity of the batch.
        plans: of the project; made again where a table that now exists tells more.
        frontier: the newest snapshot, where every change set starts.
        sources: version of each source table in this batch, the clock included.
        shared: views kept between the batches of one process.

    Returns:
        The state of every stored model at this batch, by unique id.

    Raises:
        RefreshError: a model could not be refreshed.
        PlanError: POLICY_NOT_MET, if a model of policy strict would fall back to a full refresh.
    """
    return _Refresher(context, plans, frontier, sources, shared).run()


class _Refresher:
    def __init__(
        self,
        context: BatchContext,
        plans: ProjectPlans,
        frontier: Snapshot,
        sources: Mapping[str, int],
        shared: SharedViews,
    ) -> None:
        self._context = context
        self._project = project = plans.project
        self._frontier = frontier
        self._shared = shared
        # One for all threads: the transaction id is a setting of the session.
        self._lane = LargeLane(context.spark, context.warehouse)
        old = dict(frontier.sources)
        for unique_id, state in frontier.models.items():
            model = project.models.get(unique_id)
            if model is None:
                continue
            # A table written from outside and rebuilt in place still has its net change in the
            # log; a table made anew has not.
            warehouse = context.warehouse
            if unique_id not in context.rebuilds or (
                warehouse.exists(model.relation)
                and warehouse.table_id(model.relation) == state.table_id
            ):
                old[model.relation] = state.version
        self._inputs = BatchInputs(context.warehouse, old, dict(sources))
        self._schemas = InputSchemas(context.warehouse, self._inputs)
        plans.renew()
        self._plans = plans.models
        self._pin_undeclared()
        self._states: dict[str, ModelState] = {}

    def run(self) -> dict[str, ModelState]:
        models = self._project.models
        parents = {
            unique_id: self._parents(model)
            for unique_id, model in models.items()
            if model.is_stored
        }
        states = in_dependency_order(
            parents,
            lambda unique_id: self._refresh(models[unique_id]),
            self._context.settings.threads,
        )
        for unique_id, state in states:
            self._inputs.new[models[unique_id].relation] = state.version
            self._states[unique_id] = state
        self._shared.keep(self._inputs.new)
        return self._states

    def _parents(self, model: Model) -> frozenset[str]:
        """Return the stored models that a model reads, through views."""
        return frozenset(self._read_tables(model) & self._project.models.keys())

    def _read_tables(self, model: Model) -> frozenset[str]:
        """Return the stored models and the sources that a model reads, through views."""
        found: set[str] = set()
        stack = list(model.depends_on)
        while stack:
            unique_id = stack.pop()
            parent = self._project.models.get(unique_id)
            if parent is not None and not parent.is_stored:
                stack.extend(parent.depends_on)
            elif parent is not None or unique_id in self._project.sources:
                found.add(unique_id)
        return frozenset(found)

    def _pin_undeclared(self) -> None:
        """Fix the versions of tables that models name and the project does not declare.

        The snapshot log does not know them, so whoever reads one is recomputed in every batch.
        """
        warehouse, new = self._context.warehouse, self._inputs.new
        own = {model.relation for model in self._project.models.values() if model.is_stored}
        flats = [plan.flat for plan in self._plans.values() if plan.flat is not None]
        named = {relation for flat in flats for relation in flat.relations}
        for relation in named - own - new.keys():
            if warehouse.exists(relation):
                new[relation] = warehouse.version(relation)

    def _refresh(self, model: Model) -> ModelState:
        context = self._context
        if (done := context.done.get(model.unique_id)) is not None:
            return done
        context.report(model.unique_id, "started")
        failpoint(f"refresh.before_model.{model.name}")
        started = time.perf_counter()
        try:
            state = self._state(model, started)
        except (RefreshError, PlanError):
            raise
        except Exception as error:
            message = first_lines(error, 5)
            raise RefreshError(
                "MODEL_FAILED",
                f"{model.file}: {message}",
                hint="mend the model; readers keep the last published snapshot",
            ) from error
        failpoint(f"refresh.after_model.{model.name}")
        context.report(model.unique_id, state.strategy if state.rows_changed else "unchanged")
        return state

    def _state(self, model: Model, started: float) -> ModelState:
        context, warehouse = self._context, self._context.warehouse
        before = self._frontier.models.get(model.unique_id)
        rebuild = context.rebuilds.get(model.unique_id)
        plan = self._plans[model.unique_id]
        generation = rebuild.generation if rebuild else (before.generation if before else 0)
        tag = context.tag(model.relation, generation)
        if before is not None and model.materialized in ("seed", "snapshot"):
            # Their rows come from files of the project or from dbt's history: build loads them.
            return _carried(before)
        reason: Reason | None = None
        strategy: str
        if warehouse.exists(model.relation) and warehouse.is_tagged(model.relation, tag):
            version = warehouse.version(model.relation)
            commit, strategy = Commit(version, True, 0, 0), plan.strategy.name
        elif rebuild is not None or before is None:
            code = rebuild.code if rebuild else "NEW_MODEL"
            version_before = (
                warehouse.version(model.relation) if warehouse.exists(model.relation) else None
            )
            commit = refresh_full(
                context, model, plan, self._inputs, tag, self._lane, stored_version=version_before
            )
            return self._recorded(model, commit, "full", code, generation, started)
        else:
            if not self._is_touched(model, plan):
                return _carried(before)
            commit, strategy, reason = self._moved(model, plan, before, generation)
        why = reason.code if reason is not None else None
        if commit.rows_changed == 0 and not commit.skipped:
            return (
                _carried(before, took_ms=ms_since(started))
                if before
                else self._recorded(model, commit, strategy, why, generation, started)
            )
        return self._recorded(model, commit, strategy, why, generation, started)

    def _is_touched(self, model: Model, plan: Plan) -> bool:
        if isinstance(plan.strategy, Full) and plan.strategy.is_volatile:
            return True
        if plan.flat is None:
            project = self._project
            parents = [
                (project.models.get(unique_id) or project.sources[unique_id]).relation
                for unique_id in self._read_tables(model)
            ]
            return any(self._has_changed(relation) for relation in parents)
        if self._schemas.changed(plan.flat) is not None:
            return True
        return any(self._has_changed(relation) for relation in plan.flat.relations)

    def _has_changed(self, relation: str) -> bool:
        inputs = self._inputs
        if relation not in inputs.new or relation not in inputs.old:
            # Nothing is known of what lies elsewhere, or is read for the first time.
            return True
        try:
            return inputs.has_changed(relation)
        except RefreshError as error:
            if error.code not in ("CDF_UNAVAILABLE", "TABLE_MISSING", "VERSION_GONE"):
                raise
            return True

    def _moved(
        self, model: Model, plan: Plan, before: ModelState, generation: int
    ) -> tuple[Commit, str, Reason | None]:
        """Refresh one model by the best strategy that holds in this batch."""
        context = self._context
        tag = context.tag(model.relation, generation)
        prefix = f"__{model.relation.replace('.', '__')}_{context.batch_id}"
        views = BatchViews(
            context.spark,
            context.warehouse,
            prefix,
            self._shared,
            is_large=takes_large_lane(context.settings, plan, self._inputs),
        )
        run = ModelRun(context, model, plan, self._inputs, views, before.version)
        reason: Reason | None = None
        try:
            if plan.flat is not None:
                reason = self._schemas.changed(plan.flat)
            if not isinstance(plan.strategy, Full) and reason is None:
                try:
                    change, strategy = changed_rows(run)
                    if change is None:
                        return Commit(before.version, False, 0, 0), strategy, None
                    done = commit_change(
                        context, self._lane, model.relation, change, tag, key=plan.unique_key
                    )
                    return done, strategy, None
                except FallBack as fall:
                    reason = fall.reason
                except RefreshError as error:
                    if error.code not in _RECOMPUTED:
                        raise
                    reason = Reason(_RECOMPUTED[error.code], error.message, None)
        finally:
            views.close()
        # Other columns of an input make another model, as other SQL does.
        is_rebuilt = reason is not None and reason.code == "FINGERPRINT_CHANGED"
        if model.policy == "strict" and reason is not None and not is_rebuilt:
            raise PlanError(
                "POLICY_NOT_MET",
                f"{model.file}: refresh: strict, but {reason.code}: {reason.message}",
                hint="follow the reason's advice, or set the policy to auto",
            )
        if reason is None and plan.reasons:
            reason = plan.reasons[0]
        commit = refresh_full(
            context, model, plan, self._inputs, tag, self._lane, stored_version=before.version
        )
        return commit, "full", reason

    def _recorded(
        self,
        model: Model,
        commit: Commit,
        strategy: str,
        code: str | None,
        generation: int,
        started: float,
    ) -> ModelState:
        return ModelState(
            version=commit.version,
            fingerprint=self._plans[model.unique_id].fingerprint,
            strategy=strategy,
            reason=code,
            rows_changed=commit.rows_changed,
            took_ms=ms_since(started),
            generation=generation,
            table_id=self._context.warehouse.table_id(model.relation),
        )


def _carried(before: ModelState, took_ms: int = 0) -> ModelState:
    """Return the state of a model without net change: the same table version, nothing written."""
    return ModelState(
        version=before.version,
        fingerprint=before.fingerprint,
        strategy="unchanged",
        reason=None,
        rows_changed=0,
        took_ms=took_ms,
        generation=before.generation,
        table_id=before.table_id,
    )
