"""A second session, like the process's own, whose statements are planned for few rows.

Compiling generated code and planning again half-way take longer than reading some ten thousand
rows: a statement of a small batch takes half the time without them. What a session knows (views,
functions, settings) it shares from when it was made; the catalog is one for both.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

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
}
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
            _CLONES[spark] = found
        return found


def session_for(spark: SparkSession, rows: int) -> SparkSession:
    """Return the session for a statement that reads so many rows."""
    return few_rows_session(spark) if rows <= MOST_ROWS else spark
