"""The artifacts are what dbt itself reads back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dbt.artifacts.schemas.run import RunResultsArtifact

from livemart.check.checks import TestResult
from livemart.errors import PlanError, RefreshError, SourceError
from livemart.project.graph import DataTest, Model, Project
from livemart.project.node_results import NodeResult
from livemart.run.artifacts.run_results import write_artifacts, write_failure
from livemart.run.events import BatchRecord
from livemart.run.runtime import Runtime
from livemart.settings import Settings
from livemart.spark.model_errors import ModelFailedError
from livemart.state.snapshots import ModelState, SetAside, Snapshot
from tests.models import make_model

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MODEL = make_model("model.m.totals", schema="mart", primary_key=())
OTHER = replace(MODEL, unique_id="model.m.late", name="late", identifier="late")
READER = replace(MODEL, unique_id="model.m.reader", name="reader", identifier="reader")
TEST = DataTest(
    "test.m.unique", "unique", "unique", "k", {}, "error", "select 2", (), None, "models/_m.yml"
)
STATE = ModelState(
    version=4,
    fingerprint="f",
    strategy="signed",
    reason=None,
    rows_changed=118,
    took_ms=830,
    generation=0,
    table_id="t",
)
SNAPSHOT = Snapshot(
    snapshot_id=2,
    epoch="e",
    batch_id=7,
    kind="refresh",
    as_of=None,
    sources={"bronze.orders": 3},
    models={MODEL.unique_id: STATE},
    tests={},
    status="published",
    started_at=NOON,
    finished_at=NOON + timedelta(seconds=2),
    set_aside={
        OTHER.unique_id: SetAside(2, None, "f", OTHER.unique_id, "no such column"),
        READER.unique_id: SetAside(2, None, "f", OTHER.unique_id, "no such column"),
    },
)


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    nodes = {model.unique_id: model for model in (MODEL, OTHER, READER)}
    project = Project("m", ".", "mart", {}, nodes, {TEST.unique_id: TEST}, {})
    dbt = SimpleNamespace(target_dir=tmp_path / "target")
    settings = Settings(
        project_dir=tmp_path, vars={"regions": ["north"], "DBT_ENV_SECRET_KEY": "hunter2"}
    )
    warm = SimpleNamespace(project=project, dbt=dbt, warehouse=None, settings=settings)
    return cast(Runtime, warm)


def read(runtime: Runtime, name: str) -> dict[str, Any]:
    return cast(
        dict[str, Any], json.loads((runtime.dbt.target_dir / name).read_text(encoding="utf-8"))
    )


def test_a_refresh_is_read_by_dbt_as_a_run(runtime: Runtime) -> None:
    checks = {TEST.unique_id: TestResult("fail", 3, "full", took_ms=250)}
    ended_at = {MODEL.unique_id: NOON + timedelta(seconds=1), TEST.unique_id: NOON}

    write_artifacts(runtime, SNAPSHOT, checks, BatchRecord(NOON, ended_at=ended_at))

    path = str(runtime.dbt.target_dir / "run_results.json")
    content = RunResultsArtifact.read_and_check_versions(path)
    results = {result.unique_id: result for result in content.results}
    totals = results[MODEL.unique_id]
    assert (str(totals.status), totals.execution_time) == ("success", 0.83)
    assert totals.message == "signed: 118 rows changed"
    assert totals.adapter_response["rows_affected"] == 118
    assert totals.relation_name == "mart.totals"
    assert (str(results[OTHER.unique_id].status), results[OTHER.unique_id].message) == (
        "error",
        "no such column",
    )
    assert str(results[READER.unique_id].status) == "skipped"
    assert (str(results[TEST.unique_id].status), results[TEST.unique_id].failures) == ("fail", 3)
    assert results[TEST.unique_id].execution_time == 0.25
    times = {
        entry["unique_id"]: entry["timing"][0]
        for entry in read(runtime, "run_results.json")["results"]
    }
    assert times[MODEL.unique_id] == {
        "name": "execute",
        "started_at": "2026-03-01T12:00:00.170000Z",
        "completed_at": "2026-03-01T12:00:01.000000Z",
    }
    assert times[TEST.unique_id]["completed_at"] == "2026-03-01T12:00:00.000000Z"
    assert content.args["which"] == "build"
    assert content.args["vars"] == {"regions": ["north"], "DBT_ENV_SECRET_KEY": "*****"}
    assert content.elapsed_time == 2.0


def test_a_build_tells_of_its_views_and_hooks_too(runtime: Runtime) -> None:
    view = replace(MODEL, unique_id="model.m.seen", identifier="seen", materialized="view")
    cast(dict[str, Model], runtime.project.models)[view.unique_id] = view
    built = {
        result.unique_id: result
        for result in (
            NodeResult(MODEL.unique_id, "totals", "model", "success", "OK", 830, None),
            NodeResult(view.unique_id, "seen", "model", "success", "OK", 40, None, NOON),
            NodeResult("operation.m.end", "end", "operation", "success", "OK", 5, None),
            NodeResult("exposure.m.page", "page", "exposure", "success", "NO-OP", 0, None),
        )
    }

    write_artifacts(runtime, SNAPSHOT, {}, BatchRecord(NOON, built=built))

    entries = {entry["unique_id"]: entry for entry in read(runtime, "run_results.json")["results"]}
    seen = entries[view.unique_id]
    assert (seen["status"], seen["execution_time"]) == ("success", 0.04)
    assert (seen["relation_name"], seen["compiled_code"]) == ("mart.seen", "select 1")
    assert seen["timing"][0]["completed_at"] == "2026-03-01T12:00:00.000000Z"
    assert entries[MODEL.unique_id]["message"] == "signed: 118 rows changed"
    assert entries.keys() >= {"operation.m.end"}
    assert "exposure.m.page" not in entries


def test_a_build_that_failed_leaves_its_results(runtime: Runtime) -> None:
    result = NodeResult(MODEL.unique_id, "totals", "model", "error", "no such column", 12, None)
    error = RefreshError("MODEL_FAILED", "models/totals.sql: no such column", hint="mend it")

    write_failure(runtime, BatchRecord(NOON, built={MODEL.unique_id: result}), error, "build")

    content = read(runtime, "run_results.json")
    assert content["args"]["invocation_command"] == "livemart build"
    entries = {entry["unique_id"]: entry for entry in read(runtime, "run_results.json")["results"]}
    totals = entries[MODEL.unique_id]
    assert (totals["status"], totals["message"]) == ("error", "no such column")
    assert entries[TEST.unique_id]["status"] == "skipped"


def test_a_refresh_that_failed_leaves_no_success_of_before(runtime: Runtime) -> None:
    write_artifacts(runtime, SNAPSHOT, {}, BatchRecord())
    record = BatchRecord(NOON)
    record.model_changed(MODEL.unique_id, "started", None)
    record.model_changed(MODEL.unique_id, "signed", STATE)
    record.model_changed(OTHER.unique_id, "started", None)
    record.model_changed(OTHER.unique_id, "failed", None)
    error = ModelFailedError(OTHER, "models/late.sql: no such column")

    write_failure(runtime, record, error)

    path = str(runtime.dbt.target_dir / "run_results.json")
    results = RunResultsArtifact.read_and_check_versions(path).results
    assert {result.unique_id: (str(result.status), result.message) for result in results} == {
        MODEL.unique_id: ("success", "signed: 118 rows changed"),
        OTHER.unique_id: ("error", "models/late.sql: no such column"),
        READER.unique_id: ("skipped", str(error).splitlines()[0]),
        TEST.unique_id: ("skipped", str(error).splitlines()[0]),
    }


def test_what_ends_a_model_under_way_is_its_error(runtime: Runtime) -> None:
    record = BatchRecord(NOON)
    record.model_changed(OTHER.unique_id, "started", None)

    write_failure(runtime, record, PlanError("POLICY_NOT_MET", "late: full", hint="change it"))

    entries = {entry["unique_id"]: entry for entry in read(runtime, "run_results.json")["results"]}
    late = entries[OTHER.unique_id]
    assert (late["status"], late["message"]) == ("error", "POLICY_NOT_MET: late: full")
    assert entries[MODEL.unique_id]["status"] == "skipped"


def test_records_that_cannot_land_leave_every_model_skipped(runtime: Runtime) -> None:
    write_failure(runtime, BatchRecord(), SourceError("SCHEMA_DRIFT", "orders: x", hint="declare"))

    results = read(runtime, "run_results.json")["results"]
    assert {entry["status"] for entry in results} == {"skipped"}
    assert {entry["unique_id"] for entry in results} == {
        *runtime.project.models,
        *runtime.project.tests,
    }


def test_a_folder_that_cannot_be_written_stops_nothing(
    runtime: Runtime, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime.dbt.target_dir.write_text("a file")

    write_artifacts(runtime, SNAPSHOT, {}, BatchRecord())

    assert "artifact_not_written" in "".join(capsys.readouterr())
