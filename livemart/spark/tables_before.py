"""Gives Spark the tables as they were before a micro-batch, so that a replay sees the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from livemart.delta.warehouse import Warehouse
from livemart.spark.types import spark_schema
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class TablesBefore:
    """Tables of a warehouse at given versions."""

    spark: SparkSession
    warehouse: Warehouse
    versions: Mapping[str, int]

    def frame(self, relation: str) -> DataFrame:
        """Return an earlier version of a table, with the columns and types that it has now."""
        from pyspark.sql import functions as sql

        path = self.warehouse.location(relation).spark_url
        reader = self.spark.read.format("delta")
        rows = reader.option("versionAsOf", self.versions[relation]).load(path)
        for field in spark_schema(self.warehouse.arrow_schema(relation)):
            if field.name not in rows.columns:
                rows = rows.withColumn(field.name, sql.lit(None).cast(field.dataType))
            elif rows.schema[field.name].dataType != field.dataType:
                rows = rows.withColumn(field.name, sql.col(quoted(field.name)).cast(field.dataType))
        return rows

    def has_rows(self, relation: str) -> bool:
        """Return whether a table held any row."""
        return self.warehouse.row_count(relation, self.versions[relation]) > 0
