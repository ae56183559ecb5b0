"""Records of a bulk load, parsed once by Spark's workers and kept as Parquet until they land."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from livemart.land.records.judge import Group
from livemart.land.records.worker import PICKLED_PARTS, ParseParts, Part
from livemart.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stage(spark: SparkSession, folder: Path, group: Group, parts: Sequence[Part]) -> DataFrame:
    """Parse parts of a delivery in Spark's workers; return the judged records, kept as Parquet.

    Args:
        spark: the session; its workers can import this package.
        folder: made anew; the caller removes it.
        group: columns and rules.
        parts: each is one task.
    """
    shutil.rmtree(folder, ignore_errors=True)
    rows = [(pickle.dumps(part),) for part in parts]
    tasks = spark.createDataFrame(rows, PICKLED_PARTS).repartition(max(1, len(rows)))
    parsed = tasks.mapInArrow(ParseParts(group), spark_schema(group.judged))
    parsed.write.mode("overwrite").parquet(str(folder))
    return spark.read.parquet(str(folder))
