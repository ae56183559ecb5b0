"""A second session, like the process's own, whose statements are planned for few rows.

Compiling generated code and planning again half-way take longer than reading some ten thousand
rows: a statement of a small batch takes half the time without them. What a session knows (views,
functions, settings) it shares from when it was made; the catalog is one for both.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from livemart.spark.arrow_views import to_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# More rows than this are worth generated code.
MOST_ROWS = 100_000
_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    # From the 129th group on, sketches would be made by sorting instead of by hashing.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10000",
    # Each broadcast is a job of its own; in one partition nothing needs to be sent anywhere.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Rows that a plan holds are compared, hashed and sent with it; so they stay outside, in Arrow.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
}
_EXCLUDED = "spark.sql.optimizer.excludedRules"
# They look at the whole plan again and again for what only statements on files have.
_RULES_FOR_FILES = (
    "org.apache.spark.sql.delta.metric.OptimizeConditionalIncrementMetric",
    "org.apache.spark.sql.delta.stats.PrepareDeltaScan",
    "org.apache.spark.sql.delta.optimizer.RangePartitionIdRewrite",
)
_CLONES: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()
_LOCK = Lock()


def few_rows_session(spark: SparkSession) -> SparkSession:
    """Return the session for few rows that belongs to `spark`, made at first use."""
    with _LOCK:
        found = _CLONES.get(spark)
        if found is None:
            # Not newSession: what dbt's hooks and profiles have set holds here, too.
            inner = spark._jsparkSession.cloneSession()
            found = type(spark)(spark.sparkContext, inner)
            for name, value in _SETTINGS.items():
                found.conf.set(name, value)
            excluded = [found.conf.get(_EXCLUDED, ""), *_RULES_FOR_FILES]
            found.conf.set(_EXCLUDED, ",".join(filter(None, excluded)))
            _CLONES[spark] = found
        return found


def session_for(spark: SparkSession, rows: int) -> SparkSession:
    """Return the session for a statement that reads so many rows."""
    return few_rows_session(spark) if rows <= MOST_ROWS else spark


def to_view_of(spark: SparkSession, name: str, rows: pa.Table) -> None:
    """Give either session a view of rows, laid out as its statements are planned."""
    with _LOCK:
        is_for_few = any(spark is clone for clone in _CLONES.values())
    to_view(spark, name, rows, in_one_part=is_for_few)


class ArrowViews:
    """Rows in memory under names; the session of a statement gets them when it is known."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tables: dict[str, pa.Table] = {}
        self._registered: set[tuple[SparkSession, str]] = set()

    def __len__(self) -> int:
        return len(self._tables)

    def add(self, name: str, rows: pa.Table) -> str:
        """Give rows a name, and return it; they take the place of what had it before."""
        if self._tables.get(name, rows) is not rows:
            for pair in [pair for pair in self._registered if pair[1] == name]:
                pair[0].catalog.dropTempView(name)
                self._registered.discard(pair)
        self._tables[name] = rows
        return name

    def session(self, other_rows: int | None) -> SparkSession:
        """Return the session for a statement over all that was named; it has the views.

        Args:
            other_rows: how many rows the statement reads besides; None if nobody counted.
        """
        spark = self._spark
        if other_rows is not None:
            own_rows = sum(rows.num_rows for rows in self._tables.values())
            spark = session_for(spark, own_rows + other_rows)
        for name, rows in self._tables.items():
            if (spark, name) not in self._registered:
                to_view_of(spark, name, rows)
                self._registered.add((spark, name))
        return spark

    def close(self) -> None:
        for spark, name in self._registered:
            spark.catalog.dropTempView(name)
        self._registered.clear()
        self._tables.clear()
