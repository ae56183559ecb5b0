"""A live stream follows its project: edits are used, and unusable ones are reported."""

from __future__ import annotations

import pytest

from livemart.state.refusals import read_refusal
from tests.integration.mini import Mini, sale
from tests.project_run import strategies
from tests.waits import wait_until

TOTALS = "models/shop_totals.sql"
WITH_LARGEST = """
select shop_id, count(*) as sale_count, sum(amount) as sales_amount, max(amount) as largest
from {{ ref('stg_shop__sales') }} group by 1
"""
WITH_SMALLEST = WITH_LARGEST.replace("max(amount) as largest", "min(amount) as smallest")
SHOP_TOTALS = "model.mini.shop_totals"


def edit(mini: Mini, path: str, text: str) -> None:
    """Save a file while the stream runs."""
    (mini.project / path).write_text(text)


def columns(mini: Mini) -> set[str]:
    state = mini.newest.models[SHOP_TOTALS]
    return set(mini.warehouse.read("mini.shop_totals", state.version).column_names)


def test_a_stream_follows_an_edit_of_its_project(mini: Mini) -> None:
    with mini.streaming():
        edit(mini, TOTALS, WITH_LARGEST)
        edit(mini, "models/shop_list.sql", "select distinct shop_id from {{ ref('shop_totals') }}")
        wait_until(lambda: "model.mini.shop_list" in mini.newest.models)
        assert "largest" in columns(mini)
        assert "shop_totals changed region" in mini.watcher.edits
        assert any(text.startswith("shop_list new") for text in mini.watcher.edits)


@pytest.mark.extended
def test_a_stream_goes_on_after_edits_that_it_refused(mini: Mini) -> None:
    with mini.streaming():
        edit(mini, TOTALS, WITH_LARGEST)
        edit(mini, "models/shop_list.sql", "select distinct shop_id from {{ ref('shop_totals') }}")
        wait_until(lambda: "model.mini.shop_list" in mini.newest.models)
        edit(mini, TOTALS, WITH_LARGEST.replace("amount", "amuont"))
        wait_until(lambda: len(mini.watcher.refusals) == 1)
        refusal = read_refusal(mini.root / "warehouse")
        assert refusal is not None
        assert refusal.files == (TOTALS,)
        assert TOTALS in refusal.message and "amuont" in refusal.message
        mini.deliver("sales", sale("3", "c"))
        wait_until(lambda: mini.totals().get("c") == (1, "1.00"))
        assert "largest" in columns(mini)

        edit(mini, TOTALS, "{{ nothing_that_exists() }}")
        edit(mini, "models/_more.yml", "version: 2\nmodels: [{name: shop_list, columns: 3}]\n")
        wait_until(lambda: len(mini.watcher.refusals) >= 2)
        (mini.project / "models/_more.yml").unlink()
        edit(mini, TOTALS, WITH_SMALLEST)
        wait_until(lambda: "smallest" in columns(mini))
        assert read_refusal(mini.root / "warehouse") is None
        mini.deliver("sales", sale("4", "c", "0.50"))
        wait_until(lambda: mini.totals().get("c") == (2, "1.50"))
    assert strategies(mini.newest)["shop_totals"] == "region"
    mini.restart()
    mini.pipeline()
    assert mini.differing() == []


@pytest.mark.extended
def test_a_table_built_beside_the_stream_is_not_put_back_while_an_edit_is_refused(
    mini: Mini,
) -> None:
    with mini.streaming():
        edit(mini, "models/_more.yml", "not: [yaml")
        wait_until(lambda: len(mini.watcher.refusals) == 1)
        session = mini.spark.newSession()
        session.sql(
            "create or replace table mini.shop_totals using delta as "
            "select shop_id, 1L as sale_count, cast(7 as decimal(38,2)) as sales_amount, 3 as other"
            f" from delta.`{mini.root}/warehouse/mini/shop_totals`"
        )
        mini.deliver("sales", sale("3", "c"))
        wait_until(lambda: SHOP_TOTALS in mini.newest.set_aside)
        assert "other" in mini.warehouse.read("mini.shop_totals").column_names
        assert mini.totals()["a"] == (2, "2.00")

        (mini.project / "models/_more.yml").unlink()
        wait_until(lambda: not mini.newest.set_aside)
        assert mini.totals()["c"] == (1, "1.00")


def test_sources_that_do_not_fit_their_tables_leave_the_stream_on_those_before(mini: Mini) -> None:
    path = "models/_sources.yml"
    good = (mini.project / path).read_text()
    with mini.streaming():
        edit(mini, path, good.replace("decimal(10,2)", "string"))
        wait_until(lambda: len(mini.watcher.refusals) == 1)
        assert "LANDED_COLUMN_CHANGED" in mini.watcher.refusals[0]
        mini.deliver("sales", sale("3", "c"))
        wait_until(lambda: mini.totals().get("c") == (1, "1.00"))
