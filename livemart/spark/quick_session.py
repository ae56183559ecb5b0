"""Gives a second session whose statements are planned for few rows; else it is like the first.

Compiling generated code and planning again half-way take longer than reading some ten thousand
rows: a statement of a small batch takes half the time without them. A statement that has run before
finds its code compiled, and takes a third less with it. It shares the views, functions and settings
that a session has when it is made; the catalog is one for all.

The rows are the same, but for maps. Spark 4.2 sorts the entries of a key of GROUP BY, and its
generated code reads the slot of a NULL value as it is. `map(d, 1)` keeps a key of -0.0 in generated
code alone. A build generates code, so statements that name or make maps do, too. Those that may
group by them are interpreted, in a build as well (project/declared/map_columns).

Statements that pair all rows of unions are not for it: see `_pairs_unions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa

from livemart.arrow.variants import holds_type
from livemart.limits import FEW_HANDLED_ROWS, FEW_STATEMENT_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODE = "spark.sql.codegen.factoryMode"
_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    _MODE: "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    # From the 129th group on, sketches would be made by sorting instead of by hashing.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10000",
    # Each broadcast is a separate job; in one partition nothing needs to be sent anywhere.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Rows that a plan holds are compared, hashed and sent with it; so they stay outside, in Arrow.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    # Spark takes them for the largest there are, and would shuffle both sides of each join.
    "spark.sql.defaultSizeInBytes": "1",
}
_EXCLUDED = "spark.sql.optimizer.excludedRules"
# They look at the whole plan again and again for what only statements on files have.
_RULES_FOR_FILES = (
    "org.apache.spark.sql.delta.metric.OptimizeConditionalIncrementMetric",
    "org.apache.spark.sql.delta.stats.PrepareDeltaScan",
    "org.apache.spark.sql.delta.optimizer.RangePartitionIdRewrite",
)
# Code for single expressions: Spark keeps it by its text, which includes literals. Code for whole
# stages costs more than few rows pay for.
_COMPILED = {_MODE: "FALLBACK"}
# By session, those for statements that are new, and that have run before.
_CLONES: WeakKeyDictionary[SparkSession, dict[bool, SparkSession]] = WeakKeyDictionary()
_LOCK = Lock()
# `map(..)`, `map_from_arrays(..)`, `str_to_map(..)`, `cast(.. as map<..>)`, in a string, too.
_MAP = re.compile(r"\bmap|_map\b", re.IGNORECASE)


_UNION = re.compile(r"\bunion\b", re.IGNORECASE)
# Pairs rows without an equality, or may do so: a comma behind the first item of FROM.
_PAIRS = re.compile(
    r"\bcross\s+join\b|\bon\s+\(*\s*(?:true\b|1\s*=\s*1\b)"
    r"|\bfrom\s+(?:`[^`]*`|[\w.])+(?:\s+(?:as\s+)?(?:`[^`]*`|\w+))?\s*,",
    re.IGNORECASE,
)

# Compares rows by all their columns, named or not.
_ALL_COLUMNS = r"\bdistinct\s+(?:(?:`[^`]*`|\w+)\.)*\*|\b(?:intersect|except|union(?!\s+all\b))\b"


class ReadRows(Protocol):
    """An input of a statement: a table at one version, or rows in memory.

    `is_plain`: every session of Spark can read it.
    """

    @property
    def is_plain(self) -> bool: ...
    @property
    def row_count(self) -> int: ...
    @property
    def schema(self) -> pa.Schema: ...


def few_rows_session(spark: SparkSession, *, is_repeated: bool = False) -> SparkSession:
    """Return the session for few rows that belongs to `spark`, made at first use.

    `is_repeated`: for statements that have run before, names of views aside.
    """
    with _LOCK:
        clones = _CLONES.setdefault(spark, {})
        session = clones.get(is_repeated)
        if session is None:
            # Not newSession: what dbt's hooks and profiles have set holds here, too.
            inner = spark._jsparkSession.cloneSession()
            session = type(spark)(spark.sparkContext, inner)
            # Where a build is interpreted, so is each statement.
            is_compiled = is_repeated and spark.conf.get(_MODE) != _SETTINGS[_MODE]
            for name, value in (_SETTINGS | (_COMPILED if is_compiled else {})).items():
                session.conf.set(name, value)
            excluded = [session.conf.get(_EXCLUDED, ""), *_RULES_FOR_FILES]
            session.conf.set(_EXCLUDED, ",".join(filter(None, excluded)))
            clones[is_repeated] = session
        return session


def is_quick(spark: SparkSession) -> bool:
    """Return True for a session that `few_rows_session` gave."""
    with _LOCK:
        return any(spark is clone for clones in _CLONES.values() for clone in clones.values())


def session_for(
    spark: SparkSession,
    read: Iterable[ReadRows],
    places: int,
    texts: Sequence[str],
    *,
    is_repeated: bool = False,
) -> SparkSession:
    """Return the session for statements: `spark` itself, or its `few_rows_session`.

    Args:
        spark: the usual session.
        read: all that the statements read.
        places: the most places of one statement that read any of it.
        texts: of the statements.
        is_repeated: see `few_rows_session`.
    """
    tables = list(dict.fromkeys(read))
    if not all(table.is_plain for table in tables):
        return spark
    rows = sum(table.row_count for table in tables)
    if rows > FEW_STATEMENT_ROWS or any(map(_pairs_unions, texts)):
        return spark
    # A statement that has run before finds its code compiled.
    if not is_repeated and (rows * places > FEW_HANDLED_ROWS or _has_maps(tables, texts)):
        return spark
    return few_rows_session(spark, is_repeated=is_repeated)


def _pairs_unions(text: str) -> bool:
    """Return True if a statement has a union, and pairs rows without an equality.

    Without broadcasts Spark runs a task for each pair of branches. The date spine of dbt_utils
    pairs twelve unions of two: 4,096 tasks, 15 s for 4,096 rows; with broadcasts it takes 0.3 s.
    """
    return bool(_UNION.search(text) and _PAIRS.search(text))


def _has_maps(tables: Sequence[ReadRows], texts: Iterable[str]) -> bool:
    """Return True unless statements neither make a map nor name a column that holds one.

    Every landed table has such a column, `_rescued_data`: to read the table is not to read it.
    """
    fields = (field for table in tables for field in table.schema)
    names = {re.escape(field.name) for field in fields if holds_type(field.type, pa.types.is_map)}
    words = [_MAP.pattern]
    if names:
        words += [_ALL_COLUMNS, rf"(?<!\w)(?:{'|'.join(sorted(names))})(?!\w)"]
    is_any = re.compile("|".join(words), re.IGNORECASE)
    return any(map(is_any.search, texts))
