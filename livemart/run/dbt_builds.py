"""Lets dbt make tables in the middle of a batch.

Used by `BatchRunner`. A build makes every model this way. A refresh makes only tables that dbt
alone writes, and the seeds that changed: their rows are files of the project, not SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from time import perf_counter

from livemart.delta.warehouse import Commit
from livemart.errors import ConfigError, RefreshError
from livemart.failpoints import failpoint
from livemart.intervals import ms_since
from livemart.own_faults import is_own_fault
from livemart.plan.stored_queries import StoredQuery
from livemart.project.hooks.run_end import TestEnd
from livemart.project.node_results import NodeResult, failures_of
from livemart.refresh.frontier import Broken, Loaded, Rebuild
from livemart.refresh.models import state_after
from livemart.run.runtime import Runtime
from livemart.spark.catalog import name_of, register
from livemart.spark.model_errors import (
    ModelFailedError,
    error_as_written,
    how_to_fill,
    missing_sources,
)
from livemart.state.snapshots import ModelState, Snapshot


def build_models(
    runtime: Runtime,
    frontier: Snapshot | None,
    built: dict[str, NodeResult],
    *,
    left_out: Collection[str] = (),
) -> dict[str, ModelState]:
    """Build the whole project, and return the state of every stored model by unique id.

    Args:
        runtime: the warm process.
        frontier: the newest snapshot of the log.
        built: takes dbt's result of each node, even if the build fails.
        left_out: unique ids of models that are not built; none of the others reads one.

    Raises:
        RefreshError: MODEL_FAILED, with dbt's own message.
    """
    # dbt finds tables in the catalog only, and some of these were made a moment ago.
    register(runtime.spark, runtime.settings.warehouse, runtime.project)
    failpoint("build.before_dbt")
    only = None
    if left_out:
        only = [
            key
            for key, model in runtime.project.models.items()
            if key not in left_out and model.materialized != "ephemeral"
        ]
    results = runtime.dbt.build(only=only, data_tests=False, ends=False)
    built.update(results)
    failpoint("build.after_dbt")
    if runtime.dbt.project != runtime.project:
        runtime.adopt(runtime.dbt.project)
    if failures := failures_of(
        runtime.project, results, partial(error_as_written, runtime.session)
    ):
        # dbt runs its last hooks after a failure, too; their results do not count here.
        with suppress(ConfigError):
            built.update(runtime.dbt.end_run({}))
        hint = (
            "correct the model and run the command again; readers keep the last published snapshot"
        )
        if missing := missing_sources(runtime.project, failures.values()):
            hint = how_to_fill(runtime.project, missing)
        raise RefreshError("MODEL_FAILED", "\n".join(failures.values()), hint=hint, models=failures)
    runtime.plans.renew()
    states: dict[str, ModelState] = {}
    for unique_id, query in runtime.plans.stored.items():
        if unique_id not in results:
            continue
        before = frontier.models.get(unique_id) if frontier else None
        generation = before.generation + 1 if before else 0
        states[unique_id] = _state_of(
            runtime, query, "BUILD", generation, results[unique_id].took_ms
        )
    return states


def end_build(runtime: Runtime, tests: Mapping[str, TestEnd], built: dict[str, NodeResult]) -> None:
    """Let dbt run the hooks of on-run-end, with the results of a build and of its data tests.

    Raises:
        RefreshError: MODEL_FAILED, if a hook fails.
    """
    try:
        results = runtime.dbt.end_run(tests)
    except ConfigError as error:
        raise _hook_failed(error.message) from error
    built.update(results)
    if failures := failures_of(runtime.project, results):
        raise _hook_failed("\n".join(failures.values()))


def _hook_failed(message: str) -> RefreshError:
    return RefreshError(
        "MODEL_FAILED",
        f"on-run-end: {message}",
        hint="correct the hook and run the command again; readers keep the last published snapshot",
    )


def build_seeds(runtime: Runtime, seeds: Mapping[str, Rebuild]) -> dict[str, Loaded | Broken]:
    """Load seeds; the start of one that cannot be loaded gets dbt's own message."""
    started = perf_counter()
    results = runtime.dbt.build(only=seeds, data_tests=False)
    took_ms = ms_since(started)
    failures = failures_of(runtime.project, results)
    starts: dict[str, Loaded | Broken] = {}
    for unique_id, rebuild in seeds.items():
        code, generation, query = rebuild.code, rebuild.generation, runtime.plans.stored[unique_id]
        if unique_id in failures:
            starts[unique_id] = Broken(failures[unique_id])
        elif results[unique_id].status == "skipped":
            starts[unique_id] = Broken(f"{query.owner.file}: dbt has skipped it")
        else:
            state = _state_of(runtime, query, code, generation, took_ms)
            starts[unique_id] = Loaded(code, rebuild.message, generation, state)
    return starts


def build_alone(runtime: Runtime, unique_id: str) -> None:
    """Let dbt build a model whose rows it alone writes, on the tables as they are now.

    Raises:
        ModelFailedError: with dbt's own message.
    """
    project = runtime.dbt.project
    model = project.models[unique_id]
    # dbt finds tables in the catalog only, and some of these were made a moment ago.
    register(runtime.spark, runtime.settings.warehouse, project, remakes_views=True)
    if not runtime.warehouse.exists(model.relation):
        # Its folder was removed, and dbt would add to the table that the catalog still names.
        runtime.warehouse.written_beside()
        runtime.spark.sql(f"drop table if exists {name_of(model.relation)}")
    try:
        results = runtime.dbt.build(only=[unique_id], data_tests=False)
    except ConfigError as error:
        # An edit of the project costs the batch this model, and not the stream.
        raise ModelFailedError(model, error.message) from error
    result = results.get(unique_id)
    if result is not None and result.status in ("success", "warn"):
        if runtime.warehouse.exists(model.relation):
            return
        raise ModelFailedError(model, f"dbt has made it, and no table {model.relation}")
    failures = failures_of(project, results)
    message = failures.get(unique_id) or next(iter(failures.values()), "dbt has skipped it")
    fault = RuntimeError(message)
    if not is_own_fault(fault):
        raise fault
    raise ModelFailedError(model, message)


def _state_of(
    runtime: Runtime, query: StoredQuery, reason: str, generation: int, took_ms: int
) -> ModelState:
    """Return the state of a query whose table dbt just made: all its rows are new."""
    warehouse, relation = runtime.warehouse, query.relation
    commit = Commit(warehouse.version(relation), warehouse.row_count(relation))
    return state_after(warehouse, query, commit, "full", reason, took_ms, generation)
