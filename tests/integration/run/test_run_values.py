"""A row is stamped by the run that wrote it; which rows there are is decided by that of a batch."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.project.run_values import run_of
from tests.integration.run.shop import FIRST, ORDERS, THEN, order, shop_project
from tests.project_run import ProjectRun, reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAMPS = (
    "'{{ invocation_id }}' as Run, cast('{{ run_started_at }}' as timestamp) as loaded_at,"
    " '{{ modules.datetime.datetime.now().date() }}' as day"
)
MODELS = {
    "staged": "{{ config(materialized='view') }} with q as"
    f" (select *, '{{{{ invocation_id }}}}' as run from {ORDERS}) select * from q",
    # Rows without a key, of which some are equal.
    "methods": f"select method, {STAMPS} from {ORDERS}",
    "totals": f"select shop_id, count(*) as n, sum(amount) as amount, {STAMPS}"
    f" from {ORDERS} group by shop_id",
    "most": f"select {STAMPS}, shop_id, max(amount) as MostOfAll from {ORDERS} group by shop_id",
    "running": "select order_id, shop_id, run, sum(amount) over (partition by shop_id"
    " order by ordered_at range between interval 2 days preceding and current row) as amount"
    " from {{ ref('staged') }}",
    "above": "select shop_id, loaded_at, amount from {{ ref('totals') }} where n > 0",
    # Written to another partition each day.
    "loads": "{{ config(partition_by='load_day') }} select order_id, method,"
    " '{{ run_started_at.date() }}' as load_day, '{{ invocation_id }}' as Run"
    f" from {ORDERS};",
    "late": f"select order_id from {ORDERS} where ordered_at >= timestamp'"
    "{{ (run_started_at - modules.datetime.timedelta(days=3650)).strftime('%Y-%m-%d %H:%M:%S') }}'",
}

MORE = {
    "everything": "select count(*) as n, sum(amount) as amount, '{{ invocation_id }}' as run from"
    f" {ORDERS}",
    "shipped": f"select shop_id, count(*) as n from {ORDERS} {{% if run_started_at.year > 2010 %}}"
    " where method <> 'cash' {% endif %} group by shop_id",
    "filtered": "{{ config(materialized='view') }} select * from"
    f" {ORDERS} where ordered_at < '{{{{ run_started_at }}}}'",
    "of_filtered": "select shop_id, max(amount) as most from {{ ref('filtered') }} group by 1",
}


def _stamps(run: ProjectRun, name: str, *columns: str) -> dict[Any, str]:
    return {tuple(row[it] for it in columns): row["Run"] for row in run.rows(f"mini.{name}")}


def _id(run: ProjectRun) -> str:
    newest = run.newest
    return run_of(newest.epoch, newest.batch_id, newest.started_at).invocation_id


# 15 s.
@pytest.mark.extended
def test_a_row_is_stamped_by_the_run_that_wrote_it(spark: SparkSession, tmp_path: Path) -> None:
    names = ("staged", "methods", "totals", "running", "above", "loads", "late")
    run = shop_project(spark, tmp_path, {name: MODELS[name] for name in names})
    run.build()
    built = _id(run)
    assert set(_stamps(run, "totals", "shop_id").values()) == {built}

    run.restart()
    run.deliver("orders", order(*THEN[0]))
    run.refresh()
    refreshed = _id(run)

    assert refreshed != built
    assert _stamps(run, "totals", "shop_id") == {("a",): refreshed, ("b",): built}
    assert _stamps(run, "loads", "order_id")[1,] == built
    assert _stamps(run, "loads", "order_id")[4,] == refreshed
    assert _stamps(run, "methods", "method") == {
        ("card",): built,
        ("cash",): built,
        ("voucher",): refreshed,
    }
    full = {name for name, it in strategies(run.newest).items() if it == "full"}
    assert full == {"late"}
    assert reasons(run.newest)["late"] == "VARIES_WITH_RUN"

    # One of two equal rows goes, with the stamp that it has.
    run.deliver("orders", order(*FIRST[2], later=1, op="d"))
    run.refresh()

    assert len(run.rows("mini.methods")) == 3
    assert _stamps(run, "totals", "shop_id") == {("a",): refreshed}
    compared = {it.model.rpartition(".")[2]: it for it in run.verify()}
    assert {name for name, it in compared.items() if not it.is_equal} == set()
    assert "not compared: Run, loaded_at, day" in compared["totals"].note


@pytest.mark.extended
@pytest.mark.parametrize("lane", ["small", "large"])
def test_stamps_in_both_lanes(spark: SparkSession, tmp_path: Path, lane: str) -> None:
    run = shop_project(spark, tmp_path, MODELS | MORE, lane=lane)
    run.refresh()
    for row in THEN:
        run.deliver("orders", order(*row))
        run.restart()
        run.refresh()
        assert run.differing() == []
    run.deliver("orders", order(*FIRST[2], later=1, op="d"))
    run.refresh()
    run.replay()

    assert run.differing() == []
    varying = {"late", "everything", "shipped", "of_filtered"}
    assert {name for name, it in strategies(run.newest).items() if it == "full"} <= varying
    moments = {row["loaded_at"] for row in run.rows("mini.totals")}
    assert len(moments) == 2
    assert max(moments) <= datetime.now(UTC)
