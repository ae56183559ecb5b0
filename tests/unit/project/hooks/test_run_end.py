from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from livemart.project.dbt import Dbt
from livemart.project.graph import DataTest, Project
from livemart.project.hooks.run_end import TestEnd, TestWord, UnendedRun, has_end_hooks
from livemart.project.run_values import CANONICAL

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


class _Spark:
    """A session in which every statement has no rows; keeps what it was sent."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.conf = SimpleNamespace(get=lambda name, default: default, set=lambda name, value: None)

    def newSession(self) -> _Spark:
        return self

    def sql(self, statement: str) -> SimpleNamespace:
        self.statements.append(statement.partition("*/")[2].strip())
        schema = SimpleNamespace(fields=[])
        return SimpleNamespace(schema=schema, collect=list, take=lambda count: [])


def test_hooks_name_the_run_of_their_models_and_their_clock_goes_on(tmp_path: Path) -> None:
    run, clock = "'{{ invocation_id }}'", "modules.datetime.datetime.now(run_started_at.tzinfo)"
    hooked = {"on-run-end": f"insert into ends values ({run}, '{{{{ {clock}.isoformat() }}}}')"}
    output = {"type": "spark", "method": "session", "schema": "mart", "host": "NA"}
    profile = {"target": "local", "outputs": {"local": output}}
    (tmp_path / "models").mkdir()
    for name, content in (
        ("dbt_project.yml", {"name": "till", "profile": "till", **hooked}),
        ("profiles.yml", {"till": profile}),
    ):
        (tmp_path / name).write_text(yaml.safe_dump(content))
    made = f"insert into made values ({run}, '{{{{ run_started_at.isoformat() }}}}')"
    (tmp_path / "models" / "totals.sql").write_text(
        f"""{{{{ config(materialized='table', post_hook="{made}") }}}}
        select {run} as run, '{{{{ {clock}.isoformat() }}}}' as made_at"""
    )
    spark = _Spark()
    dbt = Dbt(tmp_path, tmp_path, warehouse=tmp_path, session=lambda: cast(Any, spark))
    dbt.load()
    dbt.run = CANONICAL

    results = dbt.build()

    assert {result.status for result in results.values()} == {"success"}
    name, began = CANONICAL.invocation_id, CANONICAL.started_at.isoformat()
    (table,) = [it for it in spark.statements if "create or replace table" in it]
    assert table.endswith(f"select '{name}' as run, '{began}' as made_at")
    assert f"insert into made values ('{name}', '{began}')" in spark.statements
    (end,) = [it for it in spark.statements if it.startswith("insert into ends")]
    assert end.startswith(f"insert into ends values ('{name}', '{datetime.now(UTC).year}-")
