"""Windows and sessions that a model stores mean the same in a build, a refresh and a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bag_histories import bag_of
from tests.integration.mini import PROJECT, Mini, sale, visit
from tests.project_run import reasons

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES = (PROJECT / "models" / "_sources.yml").read_text()
_SALES = "{{ source('shop', 'sales') }}"
_SESSION = "session_window(visited_at, '10 minutes')"
_MODELS = {
    "hours": "select shop_id, window(sold_at, '1 hour') as hour, count(*) as n"
    f" from {_SALES} group by shop_id, window(sold_at, '1 hour')",
    "times": "select shop_id, window_time(hour) as at, n from {{ ref('hours') }}",
    "quarters": "select window(hour, '6 hours').start as at, sum(n) as n from {{ ref('hours') }}"
    " group by window(hour, '6 hours')",
    "of_one_query": "select window(hour, '6 hours').start as at, sum(n) as n from (select shop_id,"
    f" window(sold_at, '1 hour') as hour, count(*) as n from {_SALES}"
    " group by shop_id, window(sold_at, '1 hour')) group by window(hour, '6 hours')",
    "sessions": f"select shop_id, {_SESSION} as period, count(*) as n"
    f" from {{{{ source('shop', 'visits') }}}} group by shop_id, {_SESSION}",
    "seen": "{{ config(materialized='view') }} select shop_id, period as at, n"
    " from {{ ref('sessions') }}",
    "at_once": "select at, count(*) as n from {{ ref('seen') }} group by at",
    "distinct_sessions": "select distinct period from {{ ref('sessions') }}",
    "merged": "select period, sum(n) as n from (select shop_id,"
    f" {_SESSION} as period, count(*) as n from {{{{ source('shop', 'visits') }}}}"
    f" group by shop_id, {_SESSION}) group by period",
}


@pytest.mark.extended
@pytest.mark.parametrize("lane", ["small", "large"])
def test_stored_windows_mean_the_same_on_every_way(
    spark: SparkSession, tmp_path: Path, lane: str
) -> None:
    mini = Mini(spark, tmp_path, flags={"lane": lane})
    mini.replace(_SOURCES, **_MODELS)
    mini.deliver("sales", sale("1"), sale("2", "b", minutes=-80))
    mini.deliver("visits", visit("a", -60), visit("b", -55), visit("b", -20))
    mini.build()
    assert mini.differing() == []
    batches = (([sale("3", "b")], [visit("a", -25)]), ([sale("2", "b", op="d")], [visit("b", -48)]))
    for sales, visits in batches:
        mini.deliver("sales", *sales)
        mini.deliver("visits", *visits)

        mini.refresh()

        assert mini.differing() == []
        assert "STRATEGY_FAILED" not in reasons(mini.newest).values()
    # Sessions of two shops overlap, and each stays the one that its shop had.
    assert len(mini.rows("mini.at_once")) == len(mini.rows("mini.sessions"))
    stored = [name for name in _MODELS if name != "seen"]
    refreshed = {name: bag_of(mini.warehouse.read(f"mini.{name}")) for name in stored}

    mini.build()

    assert {name: bag_of(mini.warehouse.read(f"mini.{name}")) for name in stored} == refreshed
