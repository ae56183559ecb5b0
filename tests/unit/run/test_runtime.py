"""Checks before Spark starts, and cases in which Spark may start earlier."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.errors import ConfigError, StateError
from livemart.plan import planner, steps
from livemart.plan.plan import Inputs, Plan
from livemart.plan.sql.flatten import Flat
from livemart.project.graph import Column, Project
from livemart.run import runtime
from livemart.run.runtime import Runtime, open_runtime, reread
from livemart.settings import load_settings
from livemart.spark import catalog
from tests.models import make_model


@pytest.mark.parametrize(
    ("is_short", "builds", "is_small", "first"),
    [
        (False, False, True, "profile"),
        (True, False, False, "profile"),
        (True, True, True, "profile"),
        (True, False, True, "lock"),
    ],
)
def test_only_a_project_that_a_pass_has_read_is_not_checked_before_all(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_short: bool,
    builds: bool,
    is_small: bool,
    first: str,
) -> None:
    def refuse(_: Any) -> None:
        raise ConfigError("PROFILE_NOT_SESSION", "profile", hint="")

    def refuse_lock(_: Any) -> None:
        raise StateError("RUNNER_LIVES", "lock", hint="")

    monkeypatch.setattr(runtime, "check_project", refuse)
    monkeypatch.setattr(runtime, "is_small_refresh", lambda *_: is_small)
    monkeypatch.setattr("livemart.state.lock.hold_warehouse", refuse_lock)
    settings = load_settings({"project_dir": str(tmp_path)}, environ={})

    with (
        pytest.raises((ConfigError, StateError), match=first),
        open_runtime(settings, lambda event: None, is_short=is_short, builds=builds),
    ):
        pass


@pytest.mark.parametrize(
    ("read", "is_edited", "expected"),
    [("a.sql", False, True), ("a.sql", True, False), ("../package/b.sql", False, False)],
)
def test_a_project_is_as_looked_at_if_it_was_read_from_files_that_nobody_edits(
    tmp_path: Path, read: str, is_edited: bool, expected: bool
) -> None:
    look = {str(tmp_path / "a.sql"): (1, 2, 3)}
    warm: Any = SimpleNamespace(
        read_at=look,
        files=SimpleNamespace(look=lambda: {} if is_edited else look),
        dbt=SimpleNamespace(files_read=lambda: frozenset({str(tmp_path / read)})),
    )

    assert Runtime.is_as_looked_at(warm) is expected


# 1 s.
def test_what_runs_the_project_is_loaded_while_the_jvm_starts() -> None:
    heavy = {"sqlglot", "livemart.run.pipeline", "livemart.plan.planner", "dbt", "pyspark.sql"}
    code = f"import livemart.run.runtime, sys; print({heavy} & sys.modules.keys())"

    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert told.stdout == "set()\n"


def test_an_edit_plans_the_edited_model_and_its_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = tuple(Column(name, None) for name in ("shop", "city"))
    shops = make_model("seed.m.shops", materialized="seed", compiled_code=None, columns=columns)
    cities = make_model("model.m.cities", compiled_code="select distinct city from m.shops")
    totals = make_model(
        "model.m.totals", compiled_code="select city, count(*) as n from m.cities group by city"
    )
    other = make_model("model.m.other", compiled_code="select shop from m.shops")
    before = _project(shops, cities, totals, other)
    edited = replace(cities, compiled_code="select city, shop from m.shops")
    parts: Any = SimpleNamespace(
        column_kinds=lambda relation: None,
        look=lambda: 1,
        run=None,
        warehouse=None,
        written_beside=None,
    )
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "compiling_session", lambda *_, before: before)
        patch.setattr(runtime, "require_readable", lambda *_: None)
        running = Runtime(parts, parts, parts, parts, before, parts, parts, parts)
        planned: list[str] = []
        plan_flat = steps.plan_flat

        def plan(flat: Flat, inputs: Inputs) -> Plan:
            planned.append(flat.text)
            return plan_flat(flat, inputs)

        patch.setattr(planner, "plan_flat", plan)
        for project in (before, _project(shops, edited, totals, other)):
            dbt = SimpleNamespace(load=lambda it=project: it)
            patch.setattr(runtime, "open_dbt", lambda *_, it=dbt: it)
            planned.clear()
            again = reread(running)
            assert again.plans.project is again.project is project

    assert len(planned) == 2
    assert "city, shop" in planned[0]
    assert "count(*)" in planned[1]


def _project(*models: Any) -> Project:
    return Project("m", ".", "m", {}, {model.unique_id: model for model in models}, {}, {})


def test_dbt_is_noticed_before_it_uses_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    spark: Any = object()
    registered: list[object] = []
    monkeypatch.setattr(catalog, "register", lambda spark, *_, **__: registered.append(spark))
    noticed: list[int] = []
    session = runtime.compiling_session(
        lambda: spark, Path("mart"), before=lambda: noticed.append(len(registered))
    )

    assert [session(), session()] == [spark, spark]
    assert (noticed, registered) == ([0, 1], [spark])
