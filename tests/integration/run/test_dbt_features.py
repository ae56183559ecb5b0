"""A refresh leaves some features to dbt and executes others: hooks, snapshots, contracts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from livemart.inspect.verify import exit_code, load_as_of
from livemart.state.snapshots import Snapshot
from tests.integration.run.shop import FIRST, ORDERS, THEN, order, shop_project
from tests.project_run import ProjectRun, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.extended

TOTALS = f"select shop_id, count(*) as n, sum(amount) as sales from {ORDERS} group by shop_id"
HISTORY = """
{% snapshot history %}
{{ config(target_schema='mini', unique_key='shop_id', strategy='check', check_cols=COLUMNS) }}
select * from {{ ref('totals') }}
{% endsnapshot %}
"""
VERSIONS = "select shop_id, count(*) as versions from {{ ref('history') }} group by shop_id"
HISTORY_ID = "snapshot.mini.history"


def _versions(run: ProjectRun) -> dict[str, int]:
    return {row["shop_id"]: row["versions"] for row in run.rows("mini.versions")}


def _counts(run: ProjectRun, name: str) -> dict[str, int]:
    return {row["shop_id"]: row["n"] for row in run.rows(f"mini.{name}")}


def _deliver_more(run: ProjectRun) -> None:
    run.deliver("orders", *(order(*row) for row in THEN))


def test_a_dbt_snapshot_is_made_when_it_is_new_and_then_left_to_dbt(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(spark, tmp_path, {"totals": TOTALS})
    run.refresh()

    # New, with a model that reads it.
    (run.project / "snapshots").mkdir()
    run.edit("snapshots/history.sql", HISTORY.replace("COLUMNS", "'all'"))
    run.edit("models/versions.sql", VERSIONS)
    run.refresh()
    assert run.newest.set_aside == {}
    assert _versions(run) == {"a": 1, "b": 1}

    # Its input has changed; the snapshot has not, until dbt makes it.
    _deliver_more(run)
    run.refresh()
    assert strategies(run.newest)["history"] == "unchanged"
    assert _versions(run) == {"a": 1, "b": 1}

    # A `dbt snapshot` beside it is taken over, and what reads it is moved by its change.
    run.runtime.dbt.build(only=[HISTORY_ID], data_tests=False)
    run.refresh()
    assert reasons(run.newest)["history"] == "CHANGED_OUTSIDE"
    assert strategies(run.newest)["versions"] in ("signed", "region")
    assert _versions(run) == {"a": 2, "b": 2}
    assert run.differing() == []
    snapshot_id = run.newest.snapshot_id
    run.refresh()
    assert run.newest.snapshot_id == snapshot_id

    # Edited: dbt makes it once.
    run.edit("snapshots/history.sql", HISTORY.replace("COLUMNS", "['n']"))
    run.refresh()
    run.refresh()
    assert run.newest.snapshot_id == snapshot_id + 1
    assert reasons(run.newest)["history"] == "FINGERPRINT_CHANGED"

    # Named by `build --select`.
    run.deliver("orders", order(*FIRST[2], later=1, op="d"))
    run.refresh(selected=frozenset({HISTORY_ID}))
    assert reasons(run.newest)["history"] == "SELECTED"
    assert _versions(run) == {"a": 2, "b": 3}

    run.build()
    assert _versions(run) == {"a": 2, "b": 3}
    assert run.differing() == []


def test_a_dbt_snapshot_that_dbt_cannot_make_waits_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(spark, tmp_path, {"totals": TOTALS}, attempts=1)
    run.refresh()
    (run.project / "snapshots").mkdir()
    broken = HISTORY.replace("COLUMNS", "'all'").replace("select *", "select nope")
    run.edit("snapshots/history.sql", broken)
    run.edit("models/versions.sql", VERSIONS)
    _deliver_more(run)

    assert run.refresh().exit_code == 1

    assert set(run.newest.set_aside) == {HISTORY_ID, "model.mini.versions"}
    assert "nope" in run.newest.set_aside[HISTORY_ID].message
    assert _counts(run, "totals") == {"a": 3, "b": 2}

    run.edit("snapshots/history.sql", HISTORY.replace("COLUMNS", "'all'"))
    assert run.refresh().exit_code == 0
    assert _versions(run) == {"a": 1, "b": 1}


def test_hooks_that_act_run_where_dbt_runs_the_node(spark: SparkSession, tmp_path: Path) -> None:
    log = "insert into shop.log values ('{}')"
    hooked = f'{{{{ config(pre_hook="{log.format("model")}") }}}} {TOTALS}'
    run = shop_project(spark, tmp_path, {"totals": hooked})
    run.edit("seeds/names.csv", "shop_id,name\na,Anna\n")
    project = run.project / "dbt_project.yml"
    started = "create table if not exists shop.log (what string) using delta"
    text = project.read_text().replace(
        "seeds:\n  mini:\n", "seeds:\n  mini:\n    +post-hook: SEED\n"
    )
    text = text.replace("SEED", f'"{log.format("seed")}"')
    run.edit("dbt_project.yml", f'{text}on-run-start: ["{started}"]\n')

    def logged() -> list[str]:
        return sorted(row["what"] for row in run.warehouse.read("shop.log").to_pylist())

    run.build()
    assert logged() == ["model", "seed"]

    _deliver_more(run)
    run.refresh()
    run.refresh(selected=frozenset({"model.mini.totals"}))
    assert _counts(run, "totals") == {"a": 3, "b": 2}
    assert logged() == ["model", "seed"]

    run.edit("seeds/names.csv", "shop_id,name\na,Ann\n")
    run.refresh()
    assert logged() == ["model", "seed", "seed"]


def test_what_a_build_sets_stays_and_what_it_makes_by_itself_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    described = (
        "{{ config(persist_docs={'relation': true}, tblproperties={'team': 'sales'}) }} " + TOTALS
    )
    run = shop_project(
        spark,
        tmp_path,
        {
            "totals": described,
        },
    )
    run.edit("models/_totals.yml", "models: [{name: totals, description: Sales of a shop}]\n")
    run.build()
    _deliver_more(run)
    run.refresh()

    metadata = DeltaTable(run.root / "warehouse" / "mini" / "totals").metadata()
    assert (metadata.description, metadata.configuration["team"]) == ("Sales of a shop", "sales")
    assert strategies(run.newest)["totals"] == "signed"


def test_a_table_of_a_custom_materialization_is_made_when_its_inputs_change(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(
        spark,
        tmp_path,
        {
            "custom": f"{{{{ config(materialized='noted') }}}} {TOTALS}",
            "of_custom": "select sum(n) as n from {{ ref('custom') }}",
            "fixed": "{{ config(materialized='noted') }} select 7 as n",
            "looked": "{{ config(materialized='looked') }} select 8 as n",
            "of_looked": "select n from {{ ref('looked') }}",
        },
    )
    (run.project / "macros").mkdir()
    run.edit(
        "macros/noted.sql",
        "{% materialization noted, adapter='spark' %}{% call statement('main') %}"
        "{{ create_table_as(false, this, sql) }}{% endcall %}"
        "{{ return({'relations': [this]}) }}{% endmaterialization %}"
        "{% materialization looked, adapter='spark' %}{% call statement('main') %}"
        "create or replace view {{ this }} as {{ sql }}{% endcall %}"
        "{{ return({'relations': [this]}) }}{% endmaterialization %}",
    )
    run.build()
    assert run.rows("mini.of_custom") == [{"n": 3}]
    first = run.newest.models["model.mini.fixed"]
    _deliver_more(run)
    run.refresh()

    assert _counts(run, "custom") == {"a": 3, "b": 2}
    assert run.rows("mini.of_custom") == [{"n": 5}]
    assert reasons(run.newest)["custom"] == "OWN_MATERIALIZATION"
    # It reads nothing.
    assert run.newest.models["model.mini.fixed"].version == first.version
    # A view stores no rows.
    assert "looked" not in strategies(run.newest)
    assert run.rows("mini.of_looked") == [{"n": 8}]
    comparisons = {it.model: it for it in run.verify()}
    assert comparisons["of_custom"].is_equal
    assert comparisons["of_custom"].note == ""
    assert exit_code([comparisons["custom"]]) == 3

    # dbt beside it.
    run.runtime.dbt.build(only=["model.mini.custom"], data_tests=False)
    run.refresh()
    assert reasons(run.newest)["custom"] == "OWN_MATERIALIZATION"
    run.edit("models/custom.sql", f"{{{{ config(materialized='noted') }}}} {TOTALS} limit 1")
    run.refresh()
    assert len(run.rows("mini.custom")) == 1
    assert reasons(run.newest)["custom"] == "FINGERPRINT_CHANGED"
    assert "of_custom" not in run.differing()


def test_a_model_that_breaks_its_contract_is_refused_as_dbt_refuses_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = shop_project(spark, tmp_path, {"totals": TOTALS, "other": TOTALS}, attempts=1)
    run.edit(
        "models/_totals.yml",
        "version: 2\nmodels:\n  - name: totals\n    config: {contract: {enforced: true}}\n"
        "    columns:\n      - {name: shop_id, data_type: string}\n"
        "      - {name: n, data_type: bigint}\n"
        '      - {name: sales, data_type: "decimal(20,2)"}\n',
    )
    run.build()
    run.edit("models/totals.sql", TOTALS.replace("sum(amount)", "cast(sum(amount) as double)"))
    _deliver_more(run)

    assert run.refresh().exit_code == 1

    message = run.newest.set_aside["model.mini.totals"].message
    assert "models/totals.sql: its enforced contract is violated" in message
    assert "sales is double, not decimal(20,2)" in message
    assert _counts(run, "totals") == {"a": 2, "b": 1}
    assert _counts(run, "other") == {"a": 3, "b": 2}

    run.edit("models/totals.sql", TOTALS.replace("count(*)", "cast(count(*) as bigint)"))
    assert run.refresh().exit_code == 0
    assert _counts(run, "totals") == {"a": 3, "b": 2}


def test_columns_are_in_the_order_in_which_a_build_has_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """That of the SQL, or of an enforced contract, also in readers by place."""
    by_shop = "{{ config(partition_by='shop_id') }} " + TOTALS + " having count(*) > 0 limit 100"
    run = shop_project(
        spark,
        tmp_path,
        {
            "totals": TOTALS,
            "all_totals": "select * from {{ ref('totals') }}",
            "united": "select * from {{ ref('totals') }}"
            " union all select shop_id, n, sales from {{ ref('totals') }} where false",
            "by_shop": by_shop,
        },
    )
    run.build()
    run.edit(
        "models/_later.yml",
        "models:\n  - name: later\n    config: {contract: {enforced: true}}\n    columns:\n"
        "      - {name: n, data_type: bigint}\n      - {name: shop_id, data_type: string}\n",
    )
    run.edit("models/later.sql", f"select shop_id, count(*) as n from {ORDERS} group by 1")
    run.edit("models/totals.sql", f"select sales, shop_id, n from ({TOTALS}) as t")
    run.edit(
        "models/united.sql",
        "select * from {{ ref('totals') }}"
        " union all select sales, shop_id, n from {{ ref('totals') }} where false",
    )

    run.refresh()
    replaced = _replaced(run)
    refreshed = {name: _columns(run, name) for name in (*replaced, "later")}
    _deliver_more(run)
    run.refresh()

    assert refreshed["totals"] == refreshed["all_totals"] == ["sales", "shop_id", "n"]
    assert refreshed["later"] == ["n", "shop_id"]
    assert run.differing() == []
    # Once.
    assert _replaced(run) == replaced
    run.build()
    assert {name: _columns(run, name) for name in refreshed} == refreshed


def _columns(run: ProjectRun, name: str) -> list[str]:
    return [*run.warehouse.arrow_schema(f"mini.{name}").names]


def _replaced(run: ProjectRun) -> dict[str, int]:
    """Return how often Spark has replaced each table."""
    history = {
        name: DeltaTable(run.warehouse.path(f"mini.{name}")).history()
        for name in ("totals", "all_totals", "united", "by_shop")
    }
    return {
        name: sum("REPLACE" in commit["operation"] for commit in commits)
        for name, commits in history.items()
    }


def test_a_model_of_microbatches_is_its_select_over_all_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    batched = (
        "{{ config(materialized='incremental', incremental_strategy='microbatch', batch_size='day',"
        " event_time='ordered_at', begin='2026-03-06', partition_by='day') }}"
        f" select order_id, ordered_at, date(ordered_at) as day from {ORDERS}"
    )
    run = shop_project(spark, tmp_path, {"batched": batched})
    run.build()
    assert {row["order_id"] for row in run.rows("mini.batched")} == {1, 2, 3}

    _deliver_more(run)
    run.refresh()

    assert {row["order_id"] for row in run.rows("mini.batched")} == {1, 2, 3, 4, 5}
    assert run.differing() == []


def test_verify_compiles_on_the_tables_and_in_the_run_of_the_snapshot(
    spark: SparkSession, tmp_path: Path
) -> None:
    pivoted = (
        "{% set methods = run_query('select distinct method from ' ~ source('shop', 'orders'))"
        ".columns[0].values() if execute else [] %}select shop_id"
        "{% for it in methods %}, count_if(method = '{{ it }}') as {{ it }}{% endfor %}"
        f" from {ORDERS} group by shop_id"
    )
    late = f"select order_id from {ORDERS} where ordered_at < timestamp'{{{{ run_started_at }}}}'"
    run = shop_project(spark, tmp_path, {"pivoted": pivoted, "late": late})
    run.edit("tests/few_orders.sql", f"select 1 from {ORDERS} having count(*) > 3")
    run.refresh()
    first = run.newest
    _deliver_more(run)
    assert run.refresh().exit_code == 1
    assert run.newest.status == "held"

    def compiled_as_of(snapshot: Snapshot) -> dict[str, Any]:
        # As in a separate process; the files stay.
        for schema in ("mini", "shop"):
            for table in spark.catalog.listTables(schema):
                kind = "view" if table.tableType == "VIEW" else "table"
                spark.sql(f"drop {kind} {schema}.{table.name}")
        project, _ = load_as_of(spark, run.runtime.settings, snapshot)
        return {model.name: model.compiled_code for model in project.models.values()}

    before, after = compiled_as_of(first), compiled_as_of(run.newest)

    assert "voucher" not in before["pivoted"]
    assert "voucher" in after["pivoted"]
    assert str(first.started_at) in before["late"]
    assert str(run.newest.started_at) in after["late"]
