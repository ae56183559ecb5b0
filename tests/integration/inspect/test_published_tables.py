"""A Spark of somebody's own reads the version that is published, as the documentation shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.inspect.published_tables import published_tables
from tests.unit.docs.test_reading import SPARK
from tests.unit.inspect.small_mart import TOTALS, Mart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_reads_what_is_published_and_not_what_is_held(
    spark: SparkSession, tmp_path: Path
) -> None:
    mart = Mart(tmp_path / "warehouse")
    mart.batch()
    mart.batch(status="held")
    tables = {table.relation: table for table in published_tables(mart.root)}
    names: dict[str, Any] = {"spark": spark, "totals": tables[TOTALS]}

    exec(SPARK, names)

    assert [row["name"] for row in names["rows"].collect()] == ["v1"]
