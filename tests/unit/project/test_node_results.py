from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from livemart.project.graph import Project
from livemart.project.node_results import (
    NodeProgress,
    NodeResult,
    NodeStatus,
    as_compiled,
    failures_of,
    node_progress,
    node_result,
    without_plan,
)
from tests.models import make_model

TOTALS = make_model("model.m.totals")
PROJECT = Project("m", ".", "m", {}, {TOTALS.unique_id: TOTALS}, {}, {})


def _result(status: NodeStatus, message: str = "") -> dict[str, NodeResult]:
    result = NodeResult(TOTALS.unique_id, "totals", "model", status, message, 1, None)
    return {TOTALS.unique_id: result}


@pytest.mark.parametrize(
    ("word", "expected"),
    [("success", "success"), ("pass", "success"), ("warn", "warn"), ("skipped", "skipped")],
)
def test_a_result_has_one_word_for_models_and_tests(word: str, expected: str) -> None:
    node = SimpleNamespace(unique_id="model.m.totals", name="totals", resource_type="model")
    result = SimpleNamespace(
        node=node, status=word, message=None, execution_time=0.25, failures=None, timing=[]
    )

    actual = node_result(result)

    assert actual == NodeResult("model.m.totals", "totals", "model", expected, "", 250, None)  # type: ignore[arg-type]


def test_a_result_ended_with_its_last_step() -> None:
    node = SimpleNamespace(unique_id="model.m.totals", name="totals", resource_type="model")
    ends = [datetime(2026, 3, 1, 12), datetime(2026, 3, 1, 12, 1), None]
    timing = [SimpleNamespace(completed_at=at) for at in ends]
    result = SimpleNamespace(
        node=node, status="error", message="", execution_time=60, failures=None, timing=timing
    )

    assert node_result(result).ended_at == datetime(2026, 3, 1, 12, 1, tzinfo=UTC)


def _event(name: str, status: str) -> SimpleNamespace:
    node_info = SimpleNamespace(unique_id="model.m.totals", node_status=status)
    data = SimpleNamespace(node_info=node_info)
    return SimpleNamespace(info=SimpleNamespace(name=name, msg="1 of 2"), data=data)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (_event("NodeStart", "started"), NodeProgress("model.m.totals", None)),
        (_event("NodeFinished", "no-op"), NodeProgress("model.m.totals", "success")),
        (_event("NodeFinished", "a word of tomorrow"), NodeProgress("model.m.totals", "error")),
        (_event("LogLine", "success"), None),
        (_event("LogStartLine", "started"), NodeProgress("model.m.totals", None, "1 of 2")),
        (_event("LogModelResult", "error"), NodeProgress("model.m.totals", "error", "1 of 2")),
    ],
)
def test_events_tell_when_a_node_begins_and_how_it_ends(
    event: SimpleNamespace, expected: NodeProgress | None
) -> None:
    assert node_progress(event) == expected


@pytest.mark.parametrize("status", ["success", "warn", "skipped"])
def test_only_an_error_is_a_failure(status: NodeStatus) -> None:
    assert failures_of(PROJECT, _result(status)) == {}


@pytest.mark.parametrize(
    ("status", "expected"),
    [(None, None), ("success", "compiled"), ("error", "uncompiled"), ("skipped", "skipped")],
)
def test_a_node_that_is_only_compiled_has_neither_its_rows_nor_an_error(
    status: NodeStatus | None, expected: NodeStatus | None
) -> None:
    progress = NodeProgress(TOTALS.unique_id, status)

    assert as_compiled(progress) == NodeProgress(TOTALS.unique_id, expected)


def test_a_better_word_than_dbts_is_taken() -> None:
    failures = failures_of(
        PROJECT, _result("error", "create or replace table"), lambda _: "line 3: no such column"
    )

    assert failures == {TOTALS.unique_id: "models/totals.sql: line 3: no such column"}


def test_the_message_is_the_databases_without_its_query_plan() -> None:
    message = "cannot resolve `amuont`\nline 3\n'Project ['amuont]\n+- Relation orders\n"

    failures = failures_of(PROJECT, _result("error", message))

    assert failures == {TOTALS.unique_id: "models/totals.sql: cannot resolve `amuont`\nline 3"}


def test_column_mapping_is_no_next_step() -> None:
    message = "Use other characters.\nAlternatively, enable Column Mapping to keep them."

    assert without_plan(message) == "Use other characters."
