"""One Spark session for all integration tests; each begins with an empty catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from livemart.spark.jars import delta_jars
from livemart.spark.session import create_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = create_session(tmp_path_factory.mktemp("catalog"), delta_jars(), memory="2g")
    yield session
    session.stop()


@pytest.fixture
def spark(spark_session: SparkSession) -> SparkSession:
    """The session with nothing in its catalog; the databases of earlier tests are gone."""
    for (name,) in spark_session.sql("show databases").collect():
        if name != "default":
            spark_session.sql(f"drop database `{name}` cascade")
    for table in spark_session.catalog.listTables():
        if table.isTemporary:
            spark_session.catalog.dropTempView(table.name)
    # Delta keeps a snapshot of every table that it has seen for an hour, a plan of megabytes each.
    jvm: Any = spark_session._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return spark_session
