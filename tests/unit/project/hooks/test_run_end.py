from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.project.graph import DataTest, Project
from livemart.project.hooks.run_end import TestEnd, TestWord, UnendedRun, has_end_hooks

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MODEL, TEST = "model.m.orders", "test.m.positive"


def node(unique_id: str, **values: Any) -> Any:
    config = SimpleNamespace(error_if="> 1", warn_if="!= 0")
    return SimpleNamespace(unique_id=unique_id, config=config, compiled_code=None, **values)


def ended(end: TestEnd) -> Any:
    """Return what a hook sees of a build of one model, and of a test that ended so."""
    run, model = UnendedRun(), node(MODEL)
    [(_, _, after_run)] = run.keeping()
    model.compiled_code = "select 1"
    after_run(None, None, [SimpleNamespace(node=model)])  # type: ignore[operator]
    # What dbt does before each run.
    model.compiled_code = None
    test = DataTest(TEST, "t", None, None, {}, "error", "select 2", (MODEL,), None, "")
    project = Project("m", ".", "m", {}, {}, {TEST: test}, {})
    manifest = SimpleNamespace(nodes={MODEL: model, TEST: node(TEST)})

    replaced = {name: value for _, name, value in run.ending(manifest, project, {TEST: end})}

    built, result = replaced["execute_nodes"](None)  # type: ignore[operator]
    assert (built.node.compiled_code, built.node.compiled) == ("select 1", True)
    assert (result.node.unique_id, result.node.compiled_code) == (TEST, "select 2")
    assert result.thread_id != "main"
    return result


@pytest.mark.parametrize(
    ("status", "failures", "message"),
    [
        ("pass", 0, None),
        ("warn", 1, "Got 1 result, configured to warn if != 0"),
        ("fail", 2, "Got 2 results, configured to fail if > 1"),
        ("error", None, "no column x"),
        ("skipped", None, "no column x"),
    ],
)
def test_a_hook_sees_a_test_as_dbt_words_it(
    status: TestWord, failures: int | None, message: str | None
) -> None:
    said = "" if message is None else "no column x"

    result = ended(TestEnd(status, failures, said, 1500, NOON))

    assert (str(result.status), result.failures, result.message) == (status, failures, message)
    assert result.execution_time == 1.5
    assert [step.name for step in result.timing] == ["compile", "execute"]
    assert result.timing[1].completed_at == NOON.replace(tzinfo=None)


def test_a_project_has_end_hooks_if_it_or_a_package_says_so() -> None:
    def manifest(*tags: str) -> Any:
        nodes = {tag: node(tag, resource_type="operation", tags=[tag]) for tag in tags}
        return SimpleNamespace(nodes=nodes | {MODEL: node(MODEL, resource_type="model", tags=[])})

    assert not has_end_hooks(manifest("on-run-start"))
    assert has_end_hooks(manifest("on-run-start", "on-run-end"))
