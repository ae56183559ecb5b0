"""Keeps the tables that recomputed SQL reads, of one snapshot, each under its own name.

Used by `verify`. Sources and inputs are the tables of the snapshot; a model is the rows that came
out of its SQL now, until the caller names its stored rows instead.

Near some words of SQL that only Spark reads, rows that differ are no certain fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.delta.warehouse import Warehouse
from livemart.errors import LivemartError
from livemart.limits import FEW_STATEMENT_ROWS
from livemart.plan.project_plans import ProjectPlans, views_of
from livemart.plan.relations.aggregate_calls import ORDER_DEPENDENT
from livemart.plan.sql.determinism import (
    APPROXIMATE_AGGREGATES,
    BARE_FUNCTIONS,
    FILE_COLUMN,
    SPECIAL_TIMES,
    VOLATILE_FUNCTIONS,
)
from livemart.plan.sql.flatten import Flat
from livemart.plan.stored_queries import StoredQuery
from livemart.plan.strategies.ties import TYING_WORDS
from livemart.project.graph import Project
from livemart.project.sessions import session_of
from livemart.run.draft import table_versions
from livemart.spark.arrow_views import rows_of, to_frame
from livemart.spark.large_lane import with_plain_sessions
from livemart.spark.named_tables import flatten_by_spark
from livemart.spark.quick_session import is_quick, session_for
from livemart.state.snapshots import Snapshot
from livemart.storage.location import Location, StoragePlace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's note on a column of windows.
_WINDOW = "spark.timeWindow"
_WORD = re.compile(r"[a-z_]\w*")
_CALL = re.compile(r"([a-z_]\w*)\s*\(")
_TIME = re.compile(rf"'\s*({'|'.join(sorted(SPECIAL_TIMES))})\b")
_UNSURE_WORDS = TYING_WORDS | BARE_FUNCTIONS | {FILE_COLUMN}
_UNSURE_CALLS = VOLATILE_FUNCTIONS | ORDER_DEPENDENT | APPROXIMATE_AGGREGATES | {"unix_timestamp"}


@dataclass(eq=False)
class RecomputedTables:
    """The tables of a snapshot, as SQL that recomputes its models reads them."""

    spark: SparkSession
    warehouse: Warehouse
    project: Project
    snapshot: Snapshot
    scratch: StoragePlace
    """An empty folder, for recomputed models of many rows."""

    def __post_init__(self) -> None:
        self._versions = table_versions(self.project.models, self.snapshot)
        # The view of each table, by relation.
        self.names: dict[str, str] = {}
        self.columns: dict[str, tuple[str, ...]] = {}
        self._recomputed = 0
        # By relation, for models that were recomputed.
        self.approximate: dict[str, Mapping[str, str]] = {}
        self.stored = ProjectPlans(self.project, self._stored_columns).stored

    def session(self, query: StoredQuery) -> SparkSession:
        """Return the session that recomputes a query: the one for few rows if it reads few.

        Raises:
            PySparkException: a statement of its session fails.
        """
        spark, flat = session_of(self.spark, query.session), query.plan.whole
        if flat is None:
            return spark if query.made_by == "sql" else self._session(spark, [query.relation])
        # The stored rows are compared in this session, too.
        relations = [query.relation, *flat.relations]
        return self._session(spark, relations, len(flat.occurrences), flat.text)

    def read(self, session: SparkSession, relation: str, version: int) -> DataFrame:
        """Return the rows of a table at a version."""
        if is_quick(session):
            # Spark makes a state of each table before it reads: longer than all of the rest.
            with suppress(LivemartError, pa.ArrowException):
                return to_frame(session, self.warehouse.read(relation, version)).coalesce(1)
        path = self.warehouse.location(relation).spark_url
        return session.read.format("delta").option("versionAsOf", version).load(path)

    def name_source(self, relation: str, version: int) -> None:
        """Let SQL read a source as it was in the snapshot."""
        session = self._session(self.spark, [relation])
        self.name(relation, self.read(session, relation, version))

    def name(self, relation: str, rows: DataFrame) -> None:
        """Let SQL that runs from now on read these rows as a table."""
        # A seed that models read as a source is named twice.
        name = self.names.get(relation, f"global_temp.livemart_verify_{len(self.names)}")
        # Models are computed in several sessions, and all of them see it.
        rows.createOrReplaceGlobalTempView(name.rpartition(".")[2])
        self.names[relation] = name
        self.columns[relation] = tuple(rows.columns)

    def flat(self, session: SparkSession, query: StoredQuery) -> tuple[Flat, tuple[str, ...]]:
        """Return the text of a query, and for which words two runs of it may differ unseen.

        Raises:
            Inapplicable: its tables cannot be replaced by recomputed ones.
        """
        if query.plan.whole is not None:
            # The whole SQL of a model that is cut, too: the rows of a stage are not trusted.
            return query.plan.whole, ()
        assert query.owner.compiled_code is not None
        views = views_of(self.project, query.session)
        flat, temporary = flatten_by_spark(session, query.owner.compiled_code, views)
        estimated = {
            function
            for relation in flat.relations
            for function in self.approximate.get(relation, {}).values()
        }
        return flat, (*unsure_words(flat.text), *sorted(estimated), *sorted(temporary))

    def run(self, session: SparkSession, flat: Flat) -> DataFrame:
        """Return the rows of a flat text over the named tables."""
        return session.sql(flat.render(lambda mention: self.names[mention.relation]))

    def recompute(
        self,
        session: SparkSession,
        relation: str,
        flat: Flat,
        approximate: Mapping[str, str],
    ) -> DataFrame:
        """Run the SQL of a model on the named tables, and name its rows.

        The rows are computed once: models above them read them, and a comparison reads them twice.
        The session for few rows keeps them in memory, which is faster than to store them.
        """
        # A model may be recomputed as a whole and then by its last step.
        self._recomputed += 1
        path = Location.of(self.scratch / f"{relation}__{self._recomputed}").spark_url
        result = with_plain_sessions(self.run(session, flat))
        types = {name.lower(): kind for name, kind in result.dtypes}
        # By texts alone: Delta does not hold every text of a partition as it was given. By times
        # none: Spark would store some timestamps as others.
        partitions = [
            name
            for name in self.warehouse.partition_columns(relation)
            if types.get(name.lower()) == "string"
        ]
        recomputed = None if partitions else self._in_memory(session, result)
        if recomputed is None:
            result.write.format("delta").partitionBy(*partitions).save(path)
            recomputed = session.read.format("delta").load(path)
        self.name(relation, recomputed)
        self.approximate[relation] = approximate
        return recomputed

    def close(self) -> None:
        """Forget the names, which outlive a session."""
        for name in self.names.values():
            self.spark.catalog.dropGlobalTempView(name.rpartition(".")[2])

    def _in_memory(self, session: SparkSession, result: DataFrame) -> DataFrame | None:
        """Return the rows as a frame that holds them; None if they are many or more than rows.

        Arrow has neither all types nor the note by which Spark recognizes a column of windows.

        Only the session for few rows does this.
        """
        from pyspark.errors import PySparkException

        if not is_quick(session) or any(_WINDOW in (it.metadata or {}) for it in result.schema):
            return None
        try:
            rows = rows_of(result.limit(FEW_STATEMENT_ROWS + 1))
            if rows.num_rows > FEW_STATEMENT_ROWS:
                return None
            frame = to_frame(session, rows).coalesce(1)
        except (PySparkException, pa.ArrowException):
            # Rows that Arrow cannot hold; or an error of the model's, which writing it will raise.
            return None
        return frame if frame.dtypes == result.dtypes else None

    def _session(
        self, spark: SparkSession, relations: Sequence[str], places: int = 1, text: str = ""
    ) -> SparkSession:
        if not self._versions.keys() >= set(relations):
            return spark
        try:
            tables = [self.warehouse.files(name, self._versions[name]) for name in relations]
            return session_for(spark, tables, places, [text])
        except LivemartError:
            # Only Spark may be able to read a table, and count its rows.
            return spark

    def _stored_columns(self, relation: str) -> dict[str, str] | None:
        """Return the columns of a table of the snapshot: those that the runner has planned with."""
        if (version := self._versions.get(relation)) is not None:
            with suppress(LivemartError):
                return self.warehouse.column_kinds(relation, version)
        return None


def unsure_words(text: str) -> tuple[str, ...]:
    """Return the words of a text for which two runs over the same rows may differ, sorted.

    They may be more than really do: a column, a text or a comment may hold one of them.

    >>> unsure_words("from t |> extend Rand (7) as r |> aggregate max(first) |> limit 3")
    ('limit', 'rand')
    >>> unsure_words("select js:a from t where x > date'2026-01-01'")
    ()
    """
    text = text.lower()
    words = _UNSURE_WORDS.intersection(_WORD.findall(text))
    calls = _UNSURE_CALLS.intersection(_CALL.findall(text))
    return tuple(sorted({*words, *calls, *_TIME.findall(text)}))
