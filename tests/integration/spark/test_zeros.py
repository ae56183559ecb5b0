"""Both zeros are one number for a filter, in whatever file they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from livemart.spark.quick_session import few_rows_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _found(spark: SparkSession, path: Path, condition: str) -> int:
    return spark.read.format("delta").load(str(path)).where(condition).count()


@pytest.mark.extended
@pytest.mark.parametrize("is_vectorized", ["true", "false"])
def test_a_filter_on_zero_finds_what_a_dictionary_holds_as_negative_zero(
    spark: SparkSession, tmp_path: Path, is_vectorized: str
) -> None:
    """Spark 4.2 hands the filter to Parquet, which compares a dictionary's values by their bits."""
    rows = spark.sql("select -0.0D as d, struct(-0.0D as x) as s from range(100)")
    rows.coalesce(1).write.format("delta").save(str(tmp_path))
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", is_vectorized)

    for session in (spark, few_rows_session(spark)):
        for condition in ("d = 0.0D", "d in (0.0D, 1.0D)", "s.x = 0.0D"):
            assert _found(session, tmp_path, condition) == 100
    if spark.version == "4.2.0":  # when this fails, the reason for the setting is gone
        spark.conf.set("parquet.filter.dictionary.enabled", "true")
        assert _found(spark, tmp_path, "d = 0.0D") == 0
