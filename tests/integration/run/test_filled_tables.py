"""Tables that hooks fill: a refresh takes over the rows, and everything else goes on as before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from livemart.inspect.verify import exit_code, render_comparison
from livemart.project.run_values import CANONICAL, OTHER
from tests.integration.run.shop import ORDERS, THEN, order, shop_project
from tests.project_run import ProjectRun, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.extended

TOTALS = f"select shop_id, count(*) as n, sum(amount) as sales from {ORDERS} group by shop_id"
# As packages that keep a log of each run have it: nothing but a hook knows the rows.
RUN_LOG = """{{ config(materialized='incremental', full_refresh=false) }}
with one as (select 1 as n)
select cast(null as string) as run, cast(null as int) as rows_seen from one where 1 = 0"""
RUNS = "select rows_seen, count(*) as runs from {{ ref('run_log') }} group by rows_seen"
KEEP = "insert into {{ ref('run_log') }} select 'hook', 7"
# A hook of the model corrects what its SQL gives.
DOUBLE = "update {{ this }} set amount = amount * 2 where shop_id = 'a'"
NET = f"""{{{{ config(post_hook="{DOUBLE}") }}}}
select order_id, shop_id, cast(amount as decimal(12,2)) as amount from {ORDERS}"""
NET_TOTALS = "select shop_id, sum(amount) as net from {{ ref('net') }} group by shop_id"

# Statements that packages run at the end of a run, and while their tests are compiled.
MACROS = """
{% macro keep(results) %}
  {% if execute and results %}
    {% for it in results %}
      {% do run_query("insert into mini.ends values ('" ~ it.node.name ~ "', '" ~ it.status ~ "', '"
         ~ (it.node.compiled_code is not none) ~ "')") %}
    {% endfor %}
  {% endif %}
{% endmacro %}
{% test kept(model) %}
  {% if execute %}
    {% set seen = api.Relation.create(schema="mini", identifier="t_" ~ invocation_id[:8]) %}
    {% do run_query(create_table_as(False, seen, "select 1 as n")) %}
  {% endif %}
  select * from {{ model }} where shop_id is null
{% endtest %}
{% test refused(model) %}
  {% if execute %}
    {% do run_query("select 1") %}
    {% do exceptions.raise_compiler_error("no such monitor " ~ invocation_id[:1]) %}
  {% endif %}
  select * from {{ model }} where false
{% endtest %}
{% test unwritten(model) %}
  {% if execute %}
    {% do run_query("select 1") %}
    {% do run_query("insert into mini.nowhere values ('" ~ invocation_id ~ "')") %}
  {% endif %}
  select * from {{ model }} where false
{% endtest %}
{% test few(model) %} select * from {{ model }} {% endtest %}
"""
TESTS = "models: [{name: totals, data_tests: [kept, {few: {config: {severity: warn}}}]}]"


def _write(run: ProjectRun, *statements: str) -> None:
    for statement in statements:
        run.spark.sql(statement)


def _deliver_more(run: ProjectRun) -> None:
    run.deliver("orders", *(order(*row) for row in THEN))


def _runs(run: ProjectRun) -> list[tuple[str, int]]:
    return sorted((row["run"], row["rows_seen"]) for row in run.rows("mini.run_log"))


def _count(run: ProjectRun) -> dict[int, int]:
    return {row["rows_seen"]: row["runs"] for row in run.rows("mini.runs")}


def _made_by_tests(run: ProjectRun) -> set[str]:
    """Return the tables that tests have left, in Spark's catalog and on the disk alike."""
    rows = run.spark.sql("show tables in mini like 't_*'").collect()
    folders = {path.name for path in (run.root / "warehouse" / "mini").glob("t_*")}
    assert {row["tableName"] for row in rows} == folders
    return folders


def test_a_refresh_takes_over_what_hooks_wrote_and_its_readers_follow(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(spark, tmp_path, {"totals": TOTALS, "run_log": RUN_LOG, "runs": RUNS})
    path = run.project / "dbt_project.yml"
    path.write_text(f'{path.read_text()}\non-run-end: "{KEEP}"\n')
    run.build()
    run.refresh()
    assert _runs(run) == [("hook", 7)]
    assert _count(run) == {7: 1}

    # A `dbt run` beside it, and rows of three more runs.
    run.runtime.dbt.build(only=["model.mini.totals"], data_tests=False)
    _write(
        run,
        "insert into mini.run_log values ('x', 1), ('y', 1)",
        "update mini.run_log set rows_seen = 2 where run = 'y'",
    )
    _deliver_more(run)
    run.refresh()

    assert _runs(run) == [("hook", 7), ("hook", 7), ("x", 1), ("y", 2)]
    assert reasons(run.newest)["run_log"] == "FILLED_BY_HOOKS"
    assert strategies(run.newest)["runs"] in ("signed", "region")
    assert _count(run) == {7: 2, 1: 1, 2: 1}
    comparisons = {it.model: it for it in run.verify()}
    assert render_comparison(comparisons["run_log"]) == (
        "run_log  not compared  4 rows  (filled by hooks: not compared)"
    )
    assert exit_code(list(comparisons.values())) == 0

    # Nothing is new, so nothing is done.
    snapshot_id = run.newest.snapshot_id
    run.refresh()
    assert run.newest.snapshot_id == snapshot_id

    # Other SQL: dbt makes the model, and keeps its rows.
    run.edit("models/run_log.sql", RUN_LOG.replace("1 = 0", "1 = 2"))
    run.refresh()
    run.refresh()
    assert len(_runs(run)) == 5
    assert _runs(run)[-2:] == [("x", 1), ("y", 2)]
    # `build` is a full refresh, which `full_refresh: false` withstands.
    run.build()
    run.refresh()
    assert len(_runs(run)) == 6
    assert _count(run) == {7: 4, 1: 1, 2: 1}
    assert run.differing() == []


def test_a_model_that_its_own_hook_corrects_is_made_by_dbt_when_its_inputs_change(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(spark, tmp_path, {"net": NET, "net_totals": NET_TOTALS})
    run.refresh()
    before = {row["shop_id"]: float(row["net"]) for row in run.rows("mini.net_totals")}
    assert before == {"a": 30.0, "b": 7.0}

    _deliver_more(run)
    run.refresh()

    followed = {row["shop_id"]: float(row["net"]) for row in run.rows("mini.net_totals")}
    assert followed == {"a": 36.0, "b": 9.0}
    assert strategies(run.newest)["net_totals"] in ("signed", "region")
    snapshot_id = run.newest.snapshot_id
    run.refresh()
    assert run.newest.snapshot_id == snapshot_id
    # As a build has it.
    run.build()
    built = {row["shop_id"]: float(row["net"]) for row in run.rows("mini.net_totals")}
    assert built == followed
    assert run.differing() == []


def test_hooks_of_on_run_end_see_models_and_tests_and_samples_write_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(spark, tmp_path, {"totals": TOTALS})
    run.refresh()
    _write(run, "create table mini.ends (node string, status string, has_sql string) using delta")
    path = run.project / "dbt_project.yml"
    path.write_text(
        f'{path.read_text()}\nmacro-paths: [macros]\non-run-end: "{{{{ keep(results) }}}}"\n'
    )
    (run.project / "macros").mkdir()
    (run.project / "macros" / "keep.sql").write_text(MACROS)
    run.edit("models/tests.yml", TESTS)

    run.build()

    ends = {
        row["node"]: (row["status"], row["has_sql"]) for row in spark.table("mini.ends").collect()
    }
    assert ends == {
        "totals": ("success", "True"),
        "kept_totals_": ("pass", "True"),
        "few_totals_": ("warn", "True"),
    }
    left = _made_by_tests(run)
    assert len(left) == 1
    assert left.isdisjoint({f"t_{it.invocation_id[:8]}" for it in (CANONICAL, OTHER)})
    # Nothing is new: no batch, in this process nor in the next.
    snapshot_id = run.newest.snapshot_id
    run.restart()
    run.refresh()
    assert run.newest.snapshot_id == snapshot_id
    assert _made_by_tests(run) == left

    # A batch that makes another table drops that of the batch before it.
    _deliver_more(run)
    run.refresh()
    assert len(_made_by_tests(run)) == 1
    assert _made_by_tests(run) != left

    # One that dbt cannot compile is no test that passes, in a build as in a refresh.
    run.edit("models/tests.yml", "models: [{name: totals, data_tests: [refused, unwritten]}]")
    run.build()
    statuses = {key.split(".")[2]: status for key, status in run.newest.tests.items()}
    assert statuses == {"refused_totals_": "error", "unwritten_totals_": "error"}
    assert _made_by_tests(run) == set()
    run.deliver("orders", order(6, "c", "card", "1.00", "2026-03-08T09:00:00Z"))
    run.refresh()
    assert set(run.newest.tests.values()) == {"error"}
    assert run.newest.status == "held"
