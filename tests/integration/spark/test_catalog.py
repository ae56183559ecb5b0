"""A table is registered without a look at its log, and is what the statement would have made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.spark.catalog import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.shared_spark import SharedSpark


def _entry(spark: SparkSession, table: str) -> list[str]:
    jvm_session: Any = spark._jsparkSession
    entry = jvm_session.sessionState().catalog().externalCatalog().getTable("mart", table)
    lines = entry.toString().rstrip(")").splitlines()
    # Delta keeps partitions in its log, whatever the entry says.
    return [line for line in lines if "Created Time" not in line and "Provider: Cat" not in line]


# 3 s.
def test_an_entry_is_the_one_that_create_table_makes(
    shared_spark: SharedSpark, tmp_path: Path
) -> None:
    spark, warehouse = shared_spark.emptied(), tmp_path / "joe's ware house"
    folder = warehouse / "mart" / "totals"
    spark.sql("create database mart")
    spark.sql(
        f'create table mart.totals (n int, day date) using delta location "{folder}" '
        "partitioned by (day) comment 'all of them'"
    )
    spark.sql("insert into mart.totals values (1, date'2026-03-01')")
    spark = shared_spark.emptied()
    spark.sql("create database mart")
    spark.sql(f'create table mart.totals using delta location "{folder}"')
    expected, rows = _entry(spark, "totals"), spark.sql("describe mart.totals").collect()
    spark = shared_spark.emptied()

    assert register(spark, warehouse) == ["mart.totals"]

    assert _entry(spark, "totals") == expected
    assert spark.sql("describe mart.totals").collect() == rows
    assert [tuple(row) for row in spark.sql("select n from mart.totals").collect()] == [(1,)]
    spark.sql("alter table mart.totals add column m int")
    spark.sql("create or replace table mart.totals using delta as select 2 as n")
    spark.sql("drop table mart.totals")
