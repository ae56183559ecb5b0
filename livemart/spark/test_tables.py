"""Drops the tables that data tests made while they were compiled, once they have made others.

Used by `BatchQuestions`. In a run of dbt's a package drops them at its end; a refresh has no such
end, and the checks still read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from livemart.delta.warehouse import Warehouse
from livemart.project.graph import Project
from livemart.spark.catalog import name_of
from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.places import StateFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def renew_test_tables(
    spark: SparkSession,
    warehouse: Warehouse,
    project: Project,
    tables: Mapping[str, Sequence[str]],
) -> None:
    """Drop the tables of earlier batches that no test has made again, and keep note of these.

    A batch that was killed in between runs again, as the same run: it makes the same names.

    Args:
        spark: with its own JVM.
        warehouse: holds the tables.
        project: its models and sources are never dropped.
        tables: the relations that each test has made in this batch, by unique id.
    """
    place = StateFolder(warehouse.place).test_tables
    now = sorted({relation for relations in tables.values() for relation in relations})
    before = read_state_file(place, list[str]) or []
    if now == before:
        return
    of_project = {model.relation for model in project.models.values()}
    of_project |= {source.relation for source in project.sources.values()}
    for relation in before:
        if relation not in now and relation not in of_project:
            _drop(spark, warehouse, relation)
    write_state_file(place, now)


def _drop(spark: SparkSession, warehouse: Warehouse, relation: str) -> None:
    spark.sql(f"drop table if exists {name_of(relation)}")
    # Spark leaves the files of a table that was given a location.
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    folder = jvm.org.apache.hadoop.fs.Path(warehouse.storage(relation).location.spark_url)
    files = folder.getFileSystem(session.sessionState().newHadoopConf())
    files.delete(folder, True)
    structlog.get_logger().debug("test_table_dropped", relation=relation)
