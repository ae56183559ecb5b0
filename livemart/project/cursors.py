"""Gives dbt-spark's `session` method cursors on one given Spark session, or on none at all.

Used by `Dbt`, and by plain dbt in another terminal. dbt-spark asks
`SparkSession.builder.enableHiveSupport()` for a session at every statement. Here the session is
given, so that nothing decides twice which Spark is used; and while a project is only compiled there
may be none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from livemart.failpoints import failpoint
from livemart.project.session_spec import as_sent, bare_statement
from livemart.project.sessions import set_all
from livemart.spark_sql import unquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SessionFactory = Callable[[], "SparkSession"]
_ENDS_WITH_SEMICOLON = re.compile(r";\s*\Z")
# In the text of a type, where names of fields have a colon behind them.
_TIME = re.compile(r"(?<!\w)(?:date|timestamp|timestamp_ntz)(?![\w:])")
_PART = r"(?:`(?:[^`./]|``)+`|\w+)"
_MAKES = re.compile(
    rf"create\s+(?:or\s+replace\s+)?table\s+(?:{_PART}\s*\.\s*)?({_PART})\s*\.\s*({_PART})"
    r"(?!\s*\.|\w)",
    re.IGNORECASE,
)


class SparkNeeded(Exception):
    """A statement of the project wants Spark while it is compiled without it."""

    def __init__(self, sql: str) -> None:
        excerpt = " ".join(sql.split())[:200]
        super().__init__(f"the project asks the database while it is compiled: {excerpt}")


class StatementFailed(Exception):
    """A statement that Spark refused. dbt-spark reads the message, PySpark's own errors hide it."""


@contextmanager
def _errors_for_dbt() -> Iterator[None]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise StatementFailed(str(error)) from error
    except Py4JJavaError as error:
        # Spark has no condition for it. The stack holds its causes, between hundreds of places.
        lines = str(error).splitlines()
        causes = [line for line in lines if not line.lstrip().startswith(("at ", "... "))]
        raise StatementFailed("\n".join(causes)) from error


class Cursor(Protocol):
    """A cursor as dbt-spark expects it."""

    @property
    def description(self) -> Sequence[tuple[Any, ...]]: ...
    def execute(self, sql: str, *parameters: Any) -> None: ...
    def fetchall(self) -> Sequence[Sequence[Any]] | None: ...
    def fetchone(self) -> Sequence[Any] | None: ...
    def close(self) -> None: ...


class SparkCursor:
    """A cursor over one Spark session, asked for at the first statement."""

    def __init__(self, session: SessionFactory, parameters: Mapping[str, str]) -> None:
        self._session = session
        self._parameters = parameters
        self._frame: DataFrame | None = None
        self._rows: list[Row] | None = None

    @property
    def description(self) -> Sequence[tuple[Any, ...]]:
        if self._frame is None:
            return []
        return [
            (field.name, field.dataType.simpleString(), None, None, None, None, field.nullable)
            for field in self._frame.schema.fields
        ]

    def execute(self, sql: str, *parameters: Any) -> None:
        if parameters:
            sql %= parameters
        spark = self._session()
        set_all(spark, self._parameters)
        self._rows = None
        with _errors_for_dbt():
            self._frame = spark.sql(_ENDS_WITH_SEMICOLON.sub("", as_sent(sql)))
        failpoint("dbt.statement")

    def fetchall(self) -> Sequence[Sequence[Any]] | None:
        if self._rows is None and self._frame is not None:
            with _errors_for_dbt():
                self._rows = _rows_of(self._frame)
        return self._rows

    def fetchone(self) -> Sequence[Any] | None:
        if self._rows is None and self._frame is not None:
            with _errors_for_dbt():
                self._rows = _rows_of(self._frame.limit(1))
        return self._rows.pop(0) if self._rows else None

    def close(self) -> None:
        self._frame = None
        self._rows = None


def _rows_of(frame: DataFrame) -> list[Row]:
    """Return all rows; columns of times are text if Python does not have one of them."""
    try:
        return frame.collect()
    except (OverflowError, ValueError):
        # Two columns may have one name.
        numbered = frame.toDF(*map(str, range(len(frame.columns))))
        shown = [
            f"cast(`{name}` as string)" if _TIME.search(kind) else f"`{name}`"
            for name, kind in numbered.dtypes
        ]
        return numbered.selectExpr(*shown).toDF(*frame.columns).collect()


class MakingCursor(SparkCursor):
    """A cursor that notes in `tables` each table, `schema.identifier`, that a statement makes.

    Packages that watch data keep what a test counts in such tables, under a name that says when: in
    a run of dbt's they last until its end.
    """

    def __init__(
        self, session: SessionFactory, parameters: Mapping[str, str], tables: list[str]
    ) -> None:
        super().__init__(session, parameters)
        self._tables = tables

    def execute(self, sql: str, *parameters: object) -> None:
        super().execute(sql, *parameters)
        relation = made_relation(sql)
        if relation is not None and relation not in self._tables:
            self._tables.append(relation)


class NoCursor:
    """A cursor where there is no Spark.

    Raises:
        SparkNeeded: for any statement.
    """

    description: Sequence[tuple[Any, ...]] = ()

    def execute(self, sql: str, *parameters: Any) -> None:
        raise SparkNeeded(sql)

    def fetchall(self) -> Sequence[Sequence[Any]] | None:
        return None

    def fetchone(self) -> Sequence[Any] | None:
        return None

    def close(self) -> None: ...


class Connection:
    """A connection as dbt-spark's `session` method opens it: it only makes cursors."""

    def __init__(self, make_cursor: Callable[[Mapping[str, str]], Cursor]) -> None:
        self._make_cursor = make_cursor
        self._parameters: Mapping[str, str] = {}

    def __call__(self, *, server_side_parameters: Mapping[str, str] | None = None) -> Connection:
        """Return a connection, as dbt-spark's class of this name does."""
        opened = Connection(self._make_cursor)
        opened._parameters = server_side_parameters or {}
        return opened

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        return self._make_cursor(self._parameters)


def made_relation(statement: str) -> str | None:
    """Return the table, in lower case, that a statement makes, whatever was there.

    One that it makes `if not exists` is to stay, and so is not meant. Nor is one without a schema.

    >>> made_relation("/* dbt */ create or replace table `Watch`.`n__7` using delta as select 1")
    'watch.n__7'
    """
    if (match := _MAKES.match(bare_statement(statement))) is None:
        return None
    return ".".join(unquoted(part).lower() for part in match.groups())
