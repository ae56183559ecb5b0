"""Keeps the records of a bulk load, parsed once by Spark's workers, as Parquet until they land."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from livemart.land.records.judge import Group
from livemart.land.records.worker import NUMBERED_PARTS, STAGED_PARTS, Part, StageParts
from livemart.spark.types import spark_schema
from livemart.storage.scratch import empty_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stage(spark: SparkSession, folder: Path, group: Group, parts: Sequence[Part]) -> DataFrame:
    """Parse parts of a delivery in Spark's workers; return the judged records, kept as Parquet.

    Args:
        spark: the session; its workers can import this package, and see `folder`.
        folder: created here; the caller removes it.
        group: columns and rules.
        parts: each is one task.

    Raises:
        SourceError, OSError: of a part that cannot be read.
    """
    empty_folder(folder)
    rows = [(number, pickle.dumps(part)) for number, part in enumerate(parts)]
    tasks = spark.createDataFrame(rows, NUMBERED_PARTS).repartition(max(1, len(rows)))
    staged = tasks.mapInArrow(StageParts(group, folder), STAGED_PARTS)
    for row in staged.where("failure is not null").collect():
        raise pickle.loads(row.failure)
    return spark.read.schema(spark_schema(group.judged)).parquet(str(folder))
