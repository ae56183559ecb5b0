"""Keeps the records of a bulk load, parsed once by Spark's workers, as Parquet until they land."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING

from livemart.errors import ConfigError
from livemart.land.records.judge import Group
from livemart.land.records.worker import (
    NUMBERED_PARTS,
    STAGED_PARTS,
    Part,
    StageParts,
    require_staged,
)
from livemart.spark.types import spark_schema
from livemart.storage.location import Location, StoragePlace
from livemart.storage.scratch import empty_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def stage(
    spark: SparkSession, folder: StoragePlace, group: Group, parts: Sequence[Part]
) -> DataFrame:
    """Parse parts of a delivery in Spark's workers; return the judged records, kept as Parquet.

    Args:
        spark: the session; its workers can import this package, and see `folder`.
        folder: created here; the caller removes it.
        group: columns and rules.
        parts: each is one task.

    Raises:
        SourceError, OSError: of a part that cannot be read.
        ConfigError: EXECUTOR_UNFIT.
    """
    empty_folder(folder)
    rows = [(number, pickle.dumps(part)) for number, part in enumerate(parts)]
    tasks = spark.createDataFrame(rows, NUMBERED_PARTS).repartition(max(1, len(rows)))
    staged = tasks.mapInArrow(StageParts(group, folder), STAGED_PARTS).collect()
    for row in staged:
        if row.failure is not None:
            raise _seen_from_here(pickle.loads(row.failure))
    require_staged(folder, sum(row.records for row in staged))
    return spark.read.schema(spark_schema(group.judged)).parquet(Location.of(folder).spark_url)


def _seen_from_here(error: Exception) -> Exception:
    """Return the error of a part; of a file that this machine has, that an executor has it not."""
    if not isinstance(error, FileNotFoundError) or not os.path.exists(error.filename or ""):
        return error
    return ConfigError(
        "EXECUTOR_UNFIT",
        f"{error.filename}: an executor does not see this file of a large delivery",
        hint="let all machines see the landing folder at the same path, or let records arrive "
        "through a broker",
    )
