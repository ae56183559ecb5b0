"""Every SQL sample of the documentation is run by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from livemart.plan.sql.flatten import Occurrence, flatten
from tests.sql_samples import SAMPLES, TYPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _row(mention: Occurrence) -> str:
    columns = (f"cast(null as {kind}) as {name}" for name, kind in TYPES[mention.relation].items())
    return f"(select {', '.join(columns)})"


@pytest.mark.extended
def test_spark_runs_every_sample(spark: SparkSession) -> None:
    for place, sql in SAMPLES.items():
        rows = spark.sql(flatten(sql, {}).render(_row)).collect()
        assert len(rows) <= 1, place
