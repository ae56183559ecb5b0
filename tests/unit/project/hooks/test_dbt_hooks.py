"""Hooks are rendered as a build would render them, and none of their statements is sent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from livemart.errors import ConfigErrors
from livemart.project.dbt import Dbt
from livemart.project.hooks.dbt_hooks import HookLog

_JAFFLE = Path(__file__).parents[3] / "projects" / "jaffle"
_MACROS = """
{% macro net() %}
  {% do run_query("create or replace temporary function net(x int) returns int return x") %}
  {% do run_query("insert into log select '" ~ flags.WHICH ~ "'") %}
{% endmacro %}
"""


class _Cursor:
    """Answers every question with one row."""

    description = ()

    def __init__(self) -> None:
        self.asked: list[str] = []

    def execute(self, sql: str, *parameters: object) -> None:
        self.asked.append(sql)

    def fetchall(self) -> list[tuple[int]]:
        return [(1,)]

    def fetchone(self) -> tuple[int]:
        return (1,)

    def close(self) -> None: ...


def test_what_a_hook_asks_is_answered_and_what_it_would_change_is_taken_down() -> None:
    log, below = HookLog(), _Cursor()

    with log.recording() as sent:
        cursor = log.cursor(below, None)
        cursor.execute("/* dbt */ select 1")
        assert cursor.fetchall() == [(1,)]
        cursor.execute("/* dbt */ insert into t select 1;")
        assert cursor.fetchall() == []
        assert cursor.fetchone() is None

    assert below.asked == ["/* dbt */ select 1"]
    assert sent == ["insert into t select 1"]
    assert log.cursor(below, "model.m.a") is below
    assert log.cursor(below, "operation.m.start") is not below


# 3 s: a project is parsed again.
def test_the_functions_of_a_project_are_part_of_what_names_them(tmp_path: Path) -> None:
    """dbt's own statement, with $$ and IMMUTABLE, is refused by Spark 4.2."""
    folder = _with_hooks(tmp_path, [], [])
    (folder / "functions").mkdir()
    nodes = """
functions:
  - name: a_net
    config: {volatility: deterministic}
    arguments:
      - {name: gross, data_type: int}
      - {name: rate, data_type: int, default_value: 4}
    returns: {data_type: int}
  - name: b_gross
    arguments: [{name: net, data_type: int}]
    returns: {data_type: int}
  - name: c_off
    config: {enabled: "{{ var('with_c', false) }}"}
    arguments: [{name: net, data_type: int}]
    returns: {data_type: int}
"""
    (folder / "functions" / "functions.yml").write_text(nodes)
    (folder / "functions" / "c_off.sql").write_text("net + {{ missing_macro() }}")
    (folder / "functions" / "a_net.sql").write_text("{{ function('b_gross') }}(gross) / rate;\n")
    (folder / "functions" / "b_gross.sql").write_text("net * {{ var('factor', 2) }}")
    model = "{{ config(materialized='table') }} select {{ function('a_net') }}(1) as net"
    (folder / "models" / "netted.sql").write_text(model)

    project = Dbt(folder).load()

    b_gross = "create or replace function jaffle.b_gross(net int) returns int return net * 2"
    a_net = (
        "create or replace function jaffle.a_net(gross int, rate int default 4) returns int"
        " deterministic return jaffle.b_gross(gross) / rate"
    )
    assert tuple(" ".join(it.split()) for it in project.functions) == (b_gross, a_net)
    sessions = {model.name: model.session.statements for model in project.models.values()}
    assert sessions["netted"] == project.functions
    assert {len(it) for name, it in sessions.items() if name != "netted"} == {0}


# 3 s: a project is parsed again.
def test_the_hooks_of_a_project_give_its_models_their_sessions(tmp_path: Path) -> None:
    folder = _with_hooks(
        tmp_path,
        [
            "{{ net() }}",
            "set spark.sql.legacy.sizeOfNull={{ var('smallest_amount') == 0 }}",
            "optimize raw.t",
        ],
        [
            "set spark.sql.session.timeZone=Asia/Tokyo",
            "grant select on {{ this }} to x",
            "insert into log select {{ load_result('main')['response'].rows_affected }}",
        ],
    )

    project = Dbt(folder).load()

    assert project.session.statements == (
        "create or replace temporary function net(x int) returns int return x",
        "set spark.sql.legacy.sizeOfNull=True",
    )
    assert project.acting_hooks == (
        "insert into log select 'build'",
        "optimize raw.t",
        "{{ not rendered }} -- why\nset x=1",
    )
    orders = project.models["model.jaffle.orders"]
    # Its SQL does not name the function.
    assert orders.session.statements == (
        "set spark.sql.legacy.sizeOfNull=True",
        "set spark.sql.session.timeZone=Asia/Tokyo",
    )
    assert orders.acting_hooks == (
        "grant select on jaffle_analytics.orders to x",
        "{{ not rendered }} insert into log select "
        "{{ load_result('main')['response'].rows_affected }}",
    )
    staged = next(model for model in project.models.values() if model.name == "stg_orders")
    assert staged.session.statements == ("set spark.sql.legacy.sizeOfNull=True",)


@pytest.mark.extended
def test_a_hook_that_asks_for_what_it_makes_only_acts(tmp_path: Path) -> None:
    folder = _with_hooks(tmp_path, ["{% do run_query('select id from ' ~ target.schema) %}"], [])

    project = Dbt(folder).load()

    assert project.acting_hooks == (
        "{{ not rendered }} {% do run_query('select id from ' ~ target.schema) %}",
        "{{ not rendered }} -- why\nset x=1",
    )


@pytest.mark.extended
def test_a_hook_that_cannot_be_rendered_is_named(tmp_path: Path) -> None:
    folder = _with_hooks(tmp_path, ["select {{ nothing() }}"], [])

    with pytest.raises(ConfigErrors, match=r"dbt_project.yml: hook `select \{\{ nothing\(\) \}\}`"):
        Dbt(folder).load()


def _with_hooks(tmp_path: Path, on_run_start: list[str], pre_hook: list[str]) -> Path:
    folder = tmp_path / "jaffle"
    shutil.copytree(_JAFFLE, folder, ignore=shutil.ignore_patterns("target"))
    path = folder / "dbt_project.yml"
    config = yaml.safe_load(path.read_text())
    config["on-run-start"] = on_run_start
    # Whatever it is, nothing comes after it.
    config["on-run-end"] = ["-- why\nset x=1"]
    config["models"]["jaffle"]["marts"]["+pre-hook"] = pre_hook
    path.write_text(yaml.safe_dump(config))
    (folder / "macros" / "net.sql").write_text(_MACROS)
    return folder


def test_a_hook_that_is_refused_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text(
        "name: m\nprofile: m\nmodels:\n  m:\n"
        "    +post-hook: alter table {{ this }} set tblproperties ('delta.appendOnly' = 'true')\n"
    )
    (tmp_path / "profiles.yml").write_text(
        "m: {target: a, outputs: {a: {type: spark, method: session, schema: m, host: localhost}}}"
    )
    (tmp_path / "models" / "a.sql").write_text(
        "\n{{ config(materialized='table', pre_hook='set spark.sql.session.timeZone = Mars') }}"
        "select 1 as x"
    )

    with pytest.raises(ConfigErrors) as caught:
        Dbt(tmp_path).load()

    assert [error.message.partition(" of model.m.a")[0] for error in caught.value.errors] == [
        "dbt_project.yml:5: post-hook",
        "models/a.sql:2: pre-hook",
    ]
