"""Writes dbt's artifacts of a run, for the tools that read them.

Used by the pipeline after each build and refresh. `run_results.json` has every model and test of
the newest snapshot, or of a run that made none, in dbt 1.11's schema (run-results v6). The same
folder holds `sources.json` and dbt's own `manifest.json`; a folder in it holds the files that dbt
writes for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from livemart.check.checks import TestResult
from livemart.errors import causes, first_lines
from livemart.project.graph import Project
from livemart.project.node_results import NodeResult
from livemart.run.artifacts.artifact_files import (
    Entry,
    artifact_metadata,
    artifact_time,
    write_artifact,
)
from livemart.run.artifacts.source_freshness import write_freshness
from livemart.run.events import BatchRecord
from livemart.run.runtime import Runtime
from livemart.spark.model_errors import ModelFailedError
from livemart.state.snapshots import ModelState, Snapshot

_TEST_STATUS = {"waits": "skipped"}
# dbt writes no value of such a variable down.
_SECRET = "DBT_ENV_SECRET"


def write_artifacts(
    runtime: Runtime,
    snapshot: Snapshot,
    checks: Mapping[str, TestResult],
    record: BatchRecord,
) -> None:
    """Write the artifacts of a new snapshot.

    Args:
        runtime: whose project they are of.
        snapshot: the newest one.
        checks: the results of its tests, by unique id.
        record: how the micro-batch went.
    """
    at = _Course(record, snapshot.finished_at)
    results = [
        *_models(runtime.project, snapshot, at),
        *(
            _of_dbt(runtime.project, result, at)
            for result in _ran(record)
            if result.unique_id not in snapshot.models
        ),
        *(
            _entry(
                unique_id,
                _TEST_STATUS.get(check.status, check.status),
                at.end_of(unique_id),
                check.took_ms,
                check.message or None,
                failures=check.failures,
                code=runtime.project.tests[unique_id].compiled_code,
            )
            for unique_id, check in checks.items()
        ),
    ]
    _write(runtime, results, snapshot.kind, at)
    write_freshness(runtime.dbt.target_dir, runtime.project, runtime.warehouse, snapshot)


def write_failure(
    runtime: Runtime, record: BatchRecord, error: Exception, command: str = "refresh"
) -> None:
    """Write the artifacts of a micro-batch that ends without a snapshot.

    A model that failed is an `error`; one that was not reached, and every test, is `skipped`.

    Args:
        runtime: whose project it is.
        record: how the micro-batch went.
        error: what ended it.
        command: `build` or `refresh`.
    """
    at = _Course(record, datetime.now(UTC))
    project, reason = runtime.project, first_lines(error)
    failures = [cause for cause in causes(error) if isinstance(cause, ModelFailedError)]
    messages = {failure.unique_id: failure.message for failure in failures}
    failed = record.under_way | messages
    results = [] if record.built else list(_states(project, record.states, at))
    results += [_of_dbt(project, result, at) for result in _ran(record)]
    done = {entry["unique_id"] for entry in results}
    results += [
        _entry(
            unique_id,
            "error" if unique_id in failed else "skipped",
            at.finished_at,
            0,
            messages.get(unique_id, reason),
        )
        for unique_id in (*project.models, *project.tests)
        if unique_id not in done
        and (unique_id in project.tests or project.models[unique_id].is_stored)
    ]
    _write(runtime, results, command, at)


@dataclass(frozen=True, slots=True)
class _Course:
    """When each node of a micro-batch ended, as far as it is known, and when all did."""

    record: BatchRecord
    finished_at: datetime

    def end_of(self, unique_id: str) -> datetime:
        built = self.record.built.get(unique_id)
        ended_at = built.ended_at if built else self.record.ended_at.get(unique_id)
        return ended_at or self.finished_at


def _models(project: Project, snapshot: Snapshot, at: _Course) -> Iterable[Entry]:
    """Yield the stored models of a snapshot."""
    done = {key: state for key, state in snapshot.models.items() if key not in snapshot.set_aside}
    yield from _states(project, done, at)
    for unique_id, aside in snapshot.set_aside.items():
        if (model := project.models.get(unique_id)) is None:
            continue
        is_cause = aside.cause == unique_id
        yield _entry(
            unique_id,
            "error" if is_cause and not aside.is_left_out else "skipped",
            at.end_of(unique_id),
            0,
            aside.message if is_cause else f"waits for {aside.cause}",
            code=model.compiled_code,
            relation=model.relation,
        )


def _states(project: Project, states: Mapping[str, ModelState], at: _Course) -> Iterable[Entry]:
    """Yield the models that a micro-batch has finished."""
    for unique_id, model in project.models.items():
        if (state := states.get(unique_id)) is not None:
            yield _entry(
                unique_id,
                "success",
                at.end_of(unique_id),
                state.took_ms,
                _describe(state),
                response=_response(state),
                code=model.compiled_code,
                relation=model.relation,
            )


def _ran(record: BatchRecord) -> Iterable[NodeResult]:
    """Yield the nodes that dbt ran in a build: models with views, and hooks of the run."""
    return (result for result in record.built.values() if result.kind != "exposure")


def _of_dbt(project: Project, result: NodeResult, at: _Course) -> Entry:
    """Return the result of a node as dbt itself reported it."""
    model = project.models.get(result.unique_id)
    return _entry(
        result.unique_id,
        result.status,
        at.end_of(result.unique_id),
        result.took_ms,
        result.message,
        failures=result.failures,
        code=model.compiled_code if model else None,
        relation=model.relation if model else None,
    )


def _describe(state: ModelState) -> str:
    if state.strategy == "unchanged":
        return "unchanged"
    reason = f", {state.reason}" if state.reason else ""
    return f"{state.strategy}{reason}: {state.rows_changed:,} rows changed"


def _response(state: ModelState) -> Entry:
    return {
        "_message": _describe(state),
        "rows_affected": state.rows_changed,
        "strategy": state.strategy,
        "reason": state.reason,
        "version": state.version,
    }


def _entry(
    unique_id: str,
    status: str,
    ended_at: datetime,
    took_ms: int,
    message: str | None,
    *,
    failures: int | None = None,
    response: Entry | None = None,
    code: str | None = None,
    relation: str | None = None,
) -> Entry:
    began_at = ended_at - timedelta(milliseconds=took_ms)
    timing = {
        "name": "execute",
        "started_at": artifact_time(began_at),
        "completed_at": artifact_time(ended_at),
    }
    return {
        "status": status,
        "timing": [timing],
        "thread_id": "livemart",
        "execution_time": took_ms / 1000,
        "adapter_response": response or {},
        "message": message,
        "failures": failures,
        "unique_id": unique_id,
        "compiled": code is not None,
        "compiled_code": code,
        "relation_name": relation,
        "batch_results": None,
    }


def _write(runtime: Runtime, results: Iterable[Entry], command: str, at: _Course) -> None:
    settings = runtime.settings
    content = {
        "metadata": artifact_metadata("run-results/v6", at.finished_at),
        "results": list(results),
        "elapsed_time": (at.finished_at - at.record.began_at).total_seconds(),
        # dbt has no `refresh`; what reads artifacts knows `build`.
        "args": {
            "which": "build",
            "invocation_command": f"livemart {command}",
            "vars": {
                name: "*****" if name.startswith(_SECRET) else value
                for name, value in settings.vars.items()
            },
            "target": settings.target,
            "select": list(settings.select),
            "exclude": list(settings.exclude),
            "selector": settings.selector,
            "project_dir": str(settings.project_dir),
        },
    }
    write_artifact(runtime.dbt.target_dir / "run_results.json", content)
