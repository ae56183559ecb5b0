"""Old files go with the first micro-batch of a day, and cost no refresh its change (10 s)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.aged_tables import age, parquet_files
from tests.integration.mini import Mini, sale
from tests.project_run import strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_stream_of_yesterday_goes_on_from_what_is_left(mini: Mini, spark: SparkSession) -> None:
    for number in range(2):
        mini.deliver("sales", sale(f"s{number}"), sale("s", minutes=-1, updated=number))
        mini.refresh()
        spark.table("mini.shop_totals").count()
    warehouse = mini.root / "warehouse"
    for log in warehouse.glob("*/*/_delta_log"):
        age(log.parent, days=8)
    before = len(parquet_files(warehouse))
    mini.now += timedelta(days=1)
    mini.deliver("sales", sale("s", "b", minutes=-1, updated=9), sale("s9"))

    mini.refresh()

    assert "full" not in strategies(mini.newest).values()
    assert len(parquet_files(warehouse)) < before
    mini.deliver("sales", sale("s9", "b", updated=9))
    mini.refresh()
    assert "full" not in strategies(mini.newest).values()
    assert mini.differing() == []
    # A session that has read the tables before finds what is left as well.
    assert spark.table("mini.shop_totals").count() == len(mini.rows("mini.shop_totals"))
