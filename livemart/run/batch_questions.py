"""Repeats, in a batch, the questions that nodes asked the warehouse while they were compiled.

Used by `BatchRunner`. Once all that a model reads is refreshed, its questions are asked again if a
table that they name has changed. With another answer the model is compiled again: it stays
incremental as long as its SQL stays the same. With other SQL it waits, and so do the models that
read it; once all others have ended the batch begins again, and the finished models stay.

Data tests may make tables while they are compiled. In a run of dbt's a package drops them at its
end. A refresh has no such end, and the checks still read them: they are dropped once the tests have
made others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any

import structlog

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigError
from livemart.plan.project_plans import broken_policies, views_of
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.determinism import require_deterministic
from livemart.plan.sql.flatten import flatten
from livemart.plan.sql.parse import parse
from livemart.project.cursors import SparkCursor
from livemart.project.graph import Project
from livemart.project.questions import Question, ask, columns_question, relation_question
from livemart.project.sessions import session_of
from livemart.refresh.context import SqlChanged
from livemart.refresh.inputs import PinnedInputs
from livemart.run.runtime import Runtime
from livemart.spark.catalog import name_of, register
from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.places import StateFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NotCompiledError(Exception):
    """A model that dbt could not even try to compile again."""


class BatchQuestions:
    """The questions of one batch, asked once each; several threads may ask.

    `lost` holds, by unique id of a stored model, why it cannot be computed. Either dbt cannot
    compile it or a view that it reads, or its policy forbids the SQL that it has now. A thread
    holds `one_dbt` while it lets dbt work in the middle of a batch.

    Args:
        runtime: the warm process.
        asks_all: answers may be older than the frontier.
    """

    def __init__(self, runtime: Runtime, *, asks_all: bool) -> None:
        self.lost: dict[str, str] = {}
        self._runtime = runtime
        self._asks_all = asks_all
        self.one_dbt = RLock()
        self._has_begun = False
        # True for a node whose questions were asked whatever has changed.
        self._asked: dict[str, bool] = {}
        # Those with other SQL, which `runtime` has not adopted yet.
        self._changed: set[str] = set()

    def ask(self, unique_id: str, inputs: PinnedInputs, *, asks_all: bool) -> None:
        """Ask the questions of a model and of the views in it again.

        Args:
            unique_id: of a stored model; all that it reads is refreshed.
            inputs: of the batch.
            asks_all: the answers may be older than the frontier.

        Raises:
            SqlChanged: with other SQL; `Dbt` has it.
            NotCompiledError: with dbt's message.
        """
        if self._changed:
            with self.one_dbt:
                if not self._changed.isdisjoint(self._project.parts(unique_id)):
                    raise SqlChanged(unique_id)
        self._ask(self._project.asking(unique_id), unique_id, inputs, asks_all=asks_all)

    def ask_views(self, inputs: PinnedInputs) -> None:
        """Ask the questions of views again that no stored model reads by `ref`.

        Raises:
            SqlChanged: see `ask`.
        """
        project = self._project
        for unique_id, model in project.models.items():
            if not model.is_stored and unique_id in project.questions:
                # The next batch asks it again.
                with suppress(NotCompiledError):
                    self._ask([unique_id], unique_id, inputs, asks_all=False)

    def _ask(
        self, asking: Iterable[str], reader: str, inputs: PinnedInputs, *, asks_all: bool
    ) -> None:
        for node in asking:
            with self.one_dbt:
                asks_all |= self._asks_all
                was_asked_all = self._asked.get(node)
                if was_asked_all or (was_asked_all is not None and not asks_all):
                    continue
                project = self._project
                questions = project.questions.get(node, ())
                refreshed = _refreshed_before(project, reader)
                is_due = bool(project.node(node).uncompiled) or any(
                    self._answered(project, question) != question
                    for question in questions
                    if asks_all or self._may_differ(project, question, inputs, refreshed)
                )
                is_other = is_due and bool(self._compile_again([node]))
                self._asked[node] = asks_all or is_due
                if is_other:
                    self._changed.add(node)
                    raise SqlChanged(node)

    def begin_run(self) -> None:
        """Compile the nodes that mention the run as of this batch, once.

        Raises:
            SqlChanged: it has other SQL now.
        """
        runtime = self._runtime
        if self._has_begun or not (run_dependent := runtime.dbt.run_dependent):
            return
        self._has_begun = True
        try:
            project = runtime.dbt.compile_for_run()
        except ConfigError as error:
            # An edit of the project costs the batch the models whose rows depend on its run, and
            # not the stream. All others have the stamps of the run before.
            for unique_id, plan in runtime.plans.models.items():
                if plan.varies_with_run:
                    self.lost[unique_id] = error.message
            return
        for node in run_dependent:
            if message := project.node(node).uncompiled:
                self._lose_readers(project, node, f"{project.node(node).file}: {message}")
        self._remake_views(project, run_dependent)
        if project != runtime.project:
            raise SqlChanged

    def ask_for_tests(self) -> frozenset[str]:
        """Compile the tests again whose questions have another answer; return those changed.

        Tests that write while they are compiled are compiled only here, once in each batch. Tables
        that they made in an earlier one are dropped.
        """
        project = self._project
        due = [
            unique_id
            for unique_id, test in project.tests.items()
            if unique_id in self._runtime.dbt.writing
            or (
                (questions := project.questions.get(unique_id))
                and (test.uncompiled or any(self._answered(project, it) != it for it in questions))
            )
        ]
        runtime = self._runtime
        try:
            changed = self._compile_again(due) if due else frozenset()
        except NotCompiledError:
            return frozenset()
        renew_test_tables(runtime.spark, runtime.warehouse, self._project, runtime.dbt.made_tables)
        return changed

    def begin_again(self) -> None:
        """Replace the SQL of the models by the SQL that dbt has now.

        A model whose policy forbids the new SQL is lost.
        """
        runtime = self._runtime
        self._changed.clear()
        if runtime.dbt.project == runtime.project:
            return
        runtime.adopt(runtime.dbt.project)
        for unique_id, message in broken_policies(runtime.project, runtime.plans.stored).items():
            self.lost.setdefault(unique_id, message)

    @property
    def _project(self) -> Project:
        return self._runtime.dbt.project

    def _compile_again(self, nodes: Collection[str]) -> frozenset[str]:
        """Compile nodes again; return those whose SQL has changed or cannot be compiled."""
        runtime, before = self._runtime, self._runtime.project
        # dbt finds in the catalog the tables of this batch, and views with their newest columns.
        register(runtime.spark, runtime.settings.warehouse, self._project, remakes_views=True)
        message = ""
        try:
            project = runtime.dbt.compile_again(nodes)
        except ConfigError as error:
            message = error.message
        if message:
            # A fault of these nodes, not of the configuration that runs.
            raise NotCompiledError(message)
        changed = set()
        for node in nodes:
            compiled = project.node(node)
            if compiled.compiled_code != before.node(node).compiled_code or compiled.uncompiled:
                changed.add(node)
            else:
                runtime.dbt.keep_answers(
                    node,
                    tuple(self._compared(project, it) for it in project.questions.get(node, ())),
                )
            if compiled.uncompiled:
                self._lose_readers(project, node, f"{compiled.file}: {compiled.uncompiled}")
        self._remake_views(project, changed)
        return frozenset(changed)

    def _remake_views(self, project: Project, nodes: Iterable[str]) -> None:
        """Let Spark know the views among nodes that have been compiled again."""
        models = [project.models[node] for node in nodes if node in project.models]
        if not all(model.is_stored for model in models):
            register(self._runtime.spark, self._runtime.settings.warehouse, project)
            # The rows of another view may change without a new version of a table.
            self._asks_all = True

    def _lose_readers(self, project: Project, part: str, message: str) -> None:
        for unique_id, model in project.models.items():
            if model.is_stored and part in project.parts(unique_id):
                self.lost[unique_id] = message

    def _compared(self, project: Project, question: Question) -> Question:
        """Return a question for later comparison: Spark and dbt may name a type differently."""
        if question.kind in ("columns", "relation"):
            return self._answered(project, question)
        return question

    def _may_differ(
        self, project: Project, question: Question, inputs: PinnedInputs, refreshed: Collection[str]
    ) -> bool:
        """Return True unless nothing that a question is about has changed since the frontier.

        `refreshed` are the relations that no batch changes after the node was asked.
        """
        if question.kind == "relation":
            return True
        relations = self._relations(project, question)
        return not relations or any(
            relation not in refreshed
            or inputs.old.get(relation) is None
            or inputs.old.get(relation) != inputs.new.get(relation)
            for relation in relations
        )

    def _relations(self, project: Project, question: Question) -> list[str]:
        """Return the tables that an answer comes from; none if they are not all of it."""
        views = views_of(project, project.session)
        text = question.about
        if question.kind == "columns":
            if text not in views:
                return [text]
            text = views[text]
        try:
            flat = flatten(text, views)
            require_deterministic(parse(flat.text))
        except Inapplicable:
            return []
        return list(flat.relations)

    def _answered(self, project: Project, question: Question) -> Question:
        """Return a question with its present answer."""
        match question.kind:
            case "columns":
                return columns_question(question.about, self._columns(project, question))
            case "relation":
                return relation_question(question.about, self._kind(project, question.about))
        return ask(SparkCursor(lambda: self._session(project), {}), question)

    def _session(self, project: Project) -> SparkSession:
        return session_of(self._runtime.spark, project.session)

    def _columns(self, project: Project, question: Question) -> list[tuple[str, str]]:
        """Return present names and types; Spark keeps those of a view from when it was made."""
        from pyspark.errors import AnalysisException

        runtime, relation = self._runtime, question.about
        views = views_of(project, project.session)
        sql = f"select * from {name_of(relation)}"
        if relation in views:
            try:
                sql = flatten(views[relation], views).render(lambda mention: mention.text)
            except Inapplicable:
                sql = views[relation]
        with suppress(AnalysisException):
            return self._session(project).sql(sql).dtypes
        # They may be of tables that this batch has made.
        register(runtime.spark, runtime.settings.warehouse, project)
        with suppress(AnalysisException):
            return self._session(project).sql(sql).dtypes
        return []

    def _kind(self, project: Project, relation: str) -> str | None:
        for model in project.models.values():
            if model.relation == relation and model.materialized == "view" and model.compiled_code:
                return "view"
        return "table" if self._runtime.warehouse.exists(relation) else None


def _refreshed_before(project: Project, unique_id: str) -> set[str]:
    """Return the relations that no longer change in this batch once a model begins."""
    relations = {source.relation for source in project.sources.values()}
    relations |= {it.relation for it in project.models.values() if it.materialized == "seed"}
    stack = [unique_id]
    while stack:
        for parent in project.models[stack.pop()].depends_on:
            if parent in project.models and project.models[parent].relation not in relations:
                stack.append(parent)
                relations.add(project.models[parent].relation)
    return relations


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
    warehouse.written_beside()
    spark.sql(f"drop table if exists {name_of(relation)}")
    # Spark leaves the files of a table that was given a location.
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    folder = jvm.org.apache.hadoop.fs.Path(warehouse.storage(relation).location.spark_url)
    files = folder.getFileSystem(session.sessionState().newHadoopConf())
    files.delete(folder, True)
    structlog.get_logger().debug("test_table_dropped", relation=relation)
