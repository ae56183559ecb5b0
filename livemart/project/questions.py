"""Notes the questions of a node to the warehouse while dbt compiles it: its SQL depends on them.

Used by `Dbt`, in a build as when a project is only compiled. Every question is answered from the
warehouse as it is, but the node's own table is reported as absent: a model is compiled as
for a full refresh. Rows that Spark may give in any order are given in one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from livemart.project.cursors import Cursor, StatementFailed
from livemart.project.run_values import RunValues
from livemart.project.session_spec import bare_statement, is_asking

_ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)
# Constructs by which Spark may give rows in another order than that of their files.
_SHUFFLES = re.compile(
    r"\b(?:distinct|group\s+by|join|union|intersect|except|minus|having|over|exists|in\s*\(\s*select)"
    r"\b",
    re.IGNORECASE,
)
_LISTS_TABLES = re.compile(r"show\s+tables?\b", re.IGNORECASE)
_NOT_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a node and the digest of its answer.

    `about` is a statement (`rows`, or `schema` if no row was looked at) or `schema.identifier` of a
    relation (`columns`, or `relation`: whether it exists). `is_lacking`: a table that it is about
    is not there.
    """

    kind: Literal["rows", "schema", "columns", "relation"]
    about: str
    answer: str
    is_lacking: bool = False


def columns_question(relation: str, columns: Iterable[tuple[str, str]]) -> Question:
    """Return the question for the names and types of a relation; without any it is not there."""
    answer = [(name, data_type.lower()) for name, data_type in columns]
    return Question("columns", relation, _digest(answer), is_lacking=not answer)


def relation_question(relation: str, kind: str | None) -> Question:
    """Return the question for the kind of a relation: `table`, `view`, None if it is missing."""
    return Question("relation", relation, _digest(kind), is_lacking=kind is None)


def ask(cursor: Cursor, question: Question) -> Question:
    """Return a question of a statement with the answer that a cursor gives now."""
    sql = question.about
    try:
        _execute(cursor, sql)
        if question.kind == "schema":
            return _schema_question(sql, cursor)
        return _rows_question(sql, cursor, _in_order(sql, cursor.fetchall()))
    except StatementFailed as error:
        return _refused_question(sql, error)


def _schema_question(sql: str, cursor: Cursor) -> Question:
    return Question("schema", sql, _digest(list(cursor.description)))


def _rows_question(sql: str, cursor: Cursor, rows: Sequence[Sequence[Any]]) -> Question:
    if _LISTS_TABLES.match(sql):
        # The rest says when each was made.
        rows = [tuple(row)[:2] for row in rows]
    return Question("rows", sql, _digest([list(cursor.description), rows]))


def _refused_question(sql: str, error: StatementFailed) -> Question:
    first_line = str(error).partition("\n")[0]
    is_lacking = any(condition in first_line for condition in _NOT_THERE)
    return Question("rows", sql, _digest(f"refused: {first_line}"), is_lacking)


def _execute(cursor: Cursor, sql: str) -> None:
    """Run a statement; where its order leaves ties, all its columns break them."""
    cursor.execute(sql)
    columns = len(cursor.description)
    if columns and _is_ordered(sql, ends_with_order=True):
        places = ", ".join(str(place + 1) for place in range(columns))
        try:
            cursor.execute(f"{sql}\n, {places}")
        except StatementFailed:
            # A column without an order: a map.
            cursor.execute(sql)


def _in_order(sql: str, rows: Sequence[Sequence[Any]] | None) -> list[Sequence[Any]]:
    """Return rows in one order each time, where Spark may give them in any.

    The columns of a pivot would change their places otherwise.
    """
    answered = list(rows or ())
    if _SHUFFLES.search(sql) and not _is_ordered(sql):
        answered.sort(key=repr)
    return answered


def _is_ordered(sql: str, *, ends_with_order: bool = False) -> bool:
    """Return True if a statement orders its own rows, and does nothing else behind that.

    >>> _is_ordered("select distinct a from (select * from t order by b) as q")
    False
    >>> _is_ordered("select a from t order by b limit 1", ends_with_order=True)
    False
    """
    if not _ORDER.search(sql):
        return False
    import sqlglot

    try:
        parts = sqlglot.parse_one(sql, dialect="spark").args
    except sqlglot.errors.SqlglotError:
        return not ends_with_order
    is_last = not any(parts.get(name) for name in ("limit", "offset"))
    return parts.get("order") is not None and (is_last or not ends_with_order)


def _digest(answer: object) -> str:
    return sha256(repr(answer).encode()).hexdigest()


@dataclass(slots=True)
class AskingNode:
    """A node that dbt compiles in this thread, with its questions so far.

    `relation` is its own, `schema.identifier` in lower case.
    """

    unique_id: str
    relation: str
    questions: list[Question] = field(default_factory=list)
    _depth: int = 0

    @property
    def is_on_the_way(self) -> bool:
        """True while dbt asks something to answer a question of the node's."""
        return self._depth > 0

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Take down nothing that is asked in the block."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def note(self, question: Question) -> None:
        """Take a question down; of one that was asked before, the last answer counts.

        The rows of a statement say all that its columns do.
        """
        if self.is_on_the_way:
            return
        asked = {question.kind, "schema"} if question.kind == "rows" else {question.kind}
        self.questions = [
            it for it in self.questions if it.about != question.about or it.kind not in asked
        ]
        self.questions.append(question)


class QuestionLog:
    """The questions of the nodes of one dbt invocation, by unique id; several threads at once.

    `run`: the values of the run; `builds`: the compiled nodes are then built, in full or not.
    """

    def __init__(self, run: RunValues, *, builds: Literal["no", "in full", "more"] = "no") -> None:
        self.run = run
        self.builds = builds
        self.asked: dict[str, tuple[Question, ...]] = {}
        self._here = threading.local()

    def hides_own_table(self, config: Any) -> bool:
        """Return True if dbt reports to a node of this config that its own table does not exist."""
        builds_more = self.builds == "in full" and getattr(config, "full_refresh", None) is False
        return self.builds != "more" and not builds_more

    @property
    def node(self) -> AskingNode | None:
        """The node that dbt compiles in this thread, None if it compiles none."""
        return getattr(self._here, "node", None)

    @contextmanager
    def compiling(self, unique_id: str, relation: str) -> Iterator[None]:
        """Note the questions that are asked in the block as those of a node."""
        before = self.node
        self._here.node = node = AskingNode(unique_id, relation)
        try:
            yield
        finally:
            self._here.node = before
            self.asked[unique_id] = tuple(node.questions)

    def cursor(self, cursor: Cursor) -> Cursor:
        """Return a cursor that takes down the statements of the node that is compiled."""
        return _NotingCursor(cursor, self)


class _NotingCursor:
    def __init__(self, cursor: Cursor, log: QuestionLog) -> None:
        self._cursor = cursor
        self._log = log
        self._sql = ""
        self._rows: list[Sequence[Any]] | None = None

    @property
    def _node(self) -> AskingNode | None:
        node = self._log.node
        return None if node is None or node.is_on_the_way else node

    @property
    def description(self) -> Sequence[tuple[Any, ...]]:
        return self._cursor.description

    def execute(self, sql: str, *parameters: Any) -> None:
        node, self._rows = self._node, None
        if parameters:
            sql %= parameters
        self._sql = bare_statement(sql) if node is not None and is_asking(sql) else ""
        if not self._sql:
            self._cursor.execute(sql)
            return
        try:
            _execute(self._cursor, self._sql)
        except StatementFailed as error:
            self._note(_refused_question(self._sql, error))
            raise
        self._note(_schema_question(self._sql, self._cursor))

    def fetchall(self) -> Sequence[Sequence[Any]] | None:
        if not self._sql:
            return self._cursor.fetchall()
        if self._rows is None:
            self._rows = _in_order(self._sql, self._cursor.fetchall())
            self._note(_rows_question(self._sql, self._cursor, self._rows))
        return self._rows

    def fetchone(self) -> Sequence[Any] | None:
        if not self._sql:
            return self._cursor.fetchone()
        rows = [*(self.fetchall() or ())]
        self._rows = rows[1:]
        return rows[0] if rows else None

    def close(self) -> None:
        self._cursor.close()

    def _note(self, question: Question) -> None:
        if (node := self._node) is not None:
            node.note(question)
