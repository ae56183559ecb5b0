"""Old files go with the first micro-batch of a day, and cost no refresh its change (10 s)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.aged_tables import age, parquet_files
from tests.integration.mini import Mini, sale
from tests.project_run import strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_stream_of_yesterday_goes_on_from_what_is_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = Mini(spark, tmp_path)
    for number in range(3):
        run.deliver("sales", sale(f"s{number}"), sale("s", minutes=-1, updated=number))
        _ = run.refresh() if number else run.build()
        spark.table("mini.shop_totals").count()
    warehouse = tmp_path / "warehouse"
    for log in warehouse.glob("*/*/_delta_log"):
        age(log.parent, days=8)
    before = len(parquet_files(warehouse))
    run.now += timedelta(days=1)
    run.deliver("sales", sale("s", "b", minutes=-1, updated=9), sale("s9"))

    run.refresh()

    assert "full" not in strategies(run.newest).values()
    assert len(parquet_files(warehouse)) < before
    run.deliver("sales", sale("s9", "b", updated=9))
    run.refresh()
    assert "full" not in strategies(run.newest).values()
    assert run.differing() == []
    # A session that has read the tables before finds what is left as well.
    assert spark.table("mini.shop_totals").count() == len(run.rows("mini.shop_totals"))
