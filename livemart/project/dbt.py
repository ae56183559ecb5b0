"""Compiles and builds a project by dbt, and reads it again when its SQL or its answers change.

Used by every command that reads the project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import structlog

from livemart.errors import ConfigError, ConfigErrors, LivemartError, nearest
from livemart.project.compiled_project import CompiledProject
from livemart.project.cursors import (
    Cursor,
    MakingCursor,
    NoCursor,
    SessionFactory,
    SparkCursor,
    SparkNeeded,
)
from livemart.project.dbt_attachment import ENGINE_PACKAGES, current_node
from livemart.project.dbt_invocations import DbtInvocations
from livemart.project.graph import Project
from livemart.project.hooks.dbt_hooks import NO_HOOKS, HookLog, RecordingCursor, render_hooks
from livemart.project.hooks.run_end import TestEnd, UnendedRun, has_end_hooks
from livemart.project.manifest import read_manifest
from livemart.project.node_results import NodeProgress, NodeResult, node_result
from livemart.project.profiles import find_profiles
from livemart.project.questions import Question, QuestionLog
from livemart.project.run_values import CANONICAL, OTHER, RunValues
from livemart.project.sessions import NodeSessions, new_session, run_statements
from livemart.project.yaml_places import by_line
from livemart.settings import Selection, selection_empty
from livemart.storage.location import StoragePlace

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from pyspark.sql import SparkSession

# Without its artifacts: a compile is nothing that was done.
_COMPILE = (
    *("compile", "--full-refresh", "--no-populate-cache"),
    *("--no-fail-fast", "--no-write-json"),
)
# By dbt's words for what a selection by state lacks: the next step if a state is named.
_STATE_HINT = (
    "name the folder of an earlier manifest.json with --state DIR, such as a copy of target from "
    "before the change"
)
_STATE_HINTS = {
    "state selector method": _STATE_HINT,
    "No comparison run_results": "put run_results.json of that run into the folder of --state",
    "state comparison freshness": "select by source_status with dbt alone: a refresh of livemart "
    "computes only what new records change",
}


class Dbt:
    """dbt on one project, in this process, on the session that `session` gives.

    Args:
        project_dir: folder of `dbt_project.yml`.
        profiles_dir: folder of `profiles.yml`; None looks in the project's `profiles/`, then in the
            project's folder, then leaves the search to dbt.
        target: target of the profile; None is the profile's own.
        vars: dbt variables, over those of the project.
        warehouse: root of all tables; needed to build.
        target_dir: where artifacts go, and in a folder below what dbt writes for itself; None is
            the project's `target`.
        session: gives the Spark session when a statement needs one; None compiles without Spark.
        progress: called when a node begins or ends, and with what dbt prints of it, from dbt's
            threads.
        is_table: whether the warehouse has a table of this name.

    `is_repeatable`: whether the loaded project follows from its files alone, and would be compiled
    to the same again. A node that asks the warehouse or mentions the run prevents this. So does a
    batch that needs dbt: for a hook to render, or for a table that dbt alone writes.

    `artifact`: `manifest.json` as it was written, None if it could not be.
    """

    def __init__(
        self,
        project_dir: Path,
        profiles_dir: Path | None = None,
        *,
        target: str | None = None,
        vars: Mapping[str, object] | None = None,
        warehouse: StoragePlace | None = None,
        target_dir: Path | None = None,
        session: SessionFactory | None = None,
        progress: Callable[[NodeProgress], None] | None = None,
        is_table: Callable[[str], bool] = lambda relation: False,
    ) -> None:
        self.project_dir = project_dir.resolve()
        self.profiles_dir = find_profiles(self.project_dir, profiles_dir)
        self.target_dir = target_dir or self.project_dir / "target"
        self._is_table = is_table
        self._session = session and self._noting(session)
        self._dbt = DbtInvocations(
            self.project_dir,
            self.profiles_dir,
            self.target_dir,
            target=target,
            vars=dict(vars or {}),
            warehouse=warehouse.resolve() if isinstance(warehouse, Path) else warehouse,
            progress=progress,
        )
        self._loaded: CompiledProject | None = None
        # The values of the run that SQL gets from now on.
        self.run = RunValues(str(uuid4()), datetime.now(UTC))
        self._unended = UnendedRun()
        # Tests whose macros write while they are compiled: a batch compiles them, for real.
        self.writing: frozenset[str] = frozenset()
        # The tables that those of them made which were compiled last.
        self.made_tables: dict[str, list[str]] = {}
        self._has_asked = False
        # Why Spark cannot be started; dbt would report it as a mistake of each node that asks.
        self._unstarted: LivemartError | None = None
        # As another process has compiled it, and the files that it was read from.
        self._resumed: tuple[Project, frozenset[str]] | None = None
        self.is_repeatable = False
        self.artifact: bytes | None = None

    @property
    def project(self) -> Project:
        """The project as it was compiled last; a build and `compile_again` renew it."""
        if self._loaded is None and self._resumed is not None:
            return self._resumed[0]
        assert self._loaded is not None, "the project is not loaded"
        return self._loaded.project

    def resume(self, project: Project, files: frozenset[str], artifact: bytes) -> Project:
        """Go on with the project as another process has compiled it from the same files.

        dbt itself is not even imported, until something has to be built.

        Args:
            project: is repeatable.
            artifact: dbt's `manifest.json`, which is written as by `load`.
        """
        self._resumed = project, files
        self.is_repeatable = True
        self._write_manifest(lambda draft: draft.write_bytes(artifact))
        return project

    def _noting(self, session: SessionFactory) -> SessionFactory:
        """Return a factory of the session that notes its use, and tries to start it once."""

        def noted() -> SparkSession:
            self._has_asked = True
            if self._unstarted is not None:
                raise self._unstarted
            try:
                return session()
            except LivemartError as error:
                self._unstarted = error
                raise

        return noted

    def check_profile(self) -> None:
        """Check the profile alone; see `DbtInvocations.check_profile`."""
        self._dbt.check_profile()

    def load(self) -> Project:
        """Parse and compile the project as for a full refresh, and check its settings for livemart.

        A node that asked the warehouse and could not be compiled is not compiled yet: what it asks
        for may be made by the next batch. Writes dbt's `manifest.json`.

        Raises:
            ConfigError: DBT_FAILED, with dbt's own message, or DBT_NEEDS_SPARK, if a model asks the
                database while it is compiled and there is no session; all mistakes at once.
            LivemartError: why Spark cannot be started, if a node asks it.
        """
        self.check_profile()
        self._unstarted = None
        self._has_asked = self.is_repeatable = False
        hooks, questions = HookLog(), QuestionLog(self.run)
        sent: dict[str, list[str]] = {}
        cursor = self._compiling_cursor(hooks, sent)
        self._dbt.manifest = None
        with self._dbt.held(cursor, questions, lambda task: render_hooks(task, hooks)):
            manifest = self._dbt.parsed()
            credentials = self._dbt.credentials()
            result = self._dbt.invoke(_COMPILE)
            if self._unstarted is not None:
                raise self._unstarted
            read = CompiledProject(
                str(self.project_dir),
                manifest,
                schema=str(credentials.schema),
                parameters=credentials.server_side_parameters or {},
                hooks=hooks.hooks,
                is_table=self._is_table,
            )
            read.take(_ended(result), questions)
            self.writing = frozenset(unique_id for unique_id, texts in sent.items() if texts)
            errors: list[ConfigError] = []
            for unique_id, message in read.refused.items():
                # An analysis is none of a mart's nodes: dbt compiles it by hand.
                if unique_id in hooks.unrendered or _is_analysis(unique_id):
                    continue
                if unique_id in self.writing:
                    # The table that it would have written does not exist.
                    continue
                if self._session is None or not read.questions_of(unique_id):
                    errors.append(self._dbt.uncompiled(manifest.expect(unique_id), message))
            if result.exception is not None:
                errors.append(self._dbt.failed(result.exception))
            mistakes = read.renew()
            if not (errors or mistakes):
                self._write_manifest(lambda path: manifest.writable_manifest().write(str(path)))
        if errors or mistakes:
            refused = {error.message: error for error in errors}
            in_order = [refused[message] for message in sorted(refused, key=by_line)]
            raise ConfigErrors([*in_order, *mistakes])
        if run_dependent := read.run_dependent:
            self._take_samples(read, run_dependent, cursor)
            read.renew()
        if not any(
            key.startswith(f"model.{manifest.metadata.project_name}.")
            for key in read.project.models
        ):
            for path in self._dbt.missing_model_paths():
                structlog.get_logger().warning(
                    "model_path_missing", path=path, hint="correct model-paths in dbt_project.yml"
                )
        self._loaded = read
        self.is_repeatable = (
            not (self._has_asked or self.writing or run_dependent)
            and all(map(_is_analysis, read.refused))
            and replace(hooks.hooks, functions=()) == NO_HOOKS
            and not any(
                model.is_of_dbt or model.is_custom for model in read.project.models.values()
            )
        )
        return read.project

    def _write_manifest(self, write: Callable[[Path], object]) -> None:
        """Write dbt's own artifact, never visible by half; a full disk stops nothing."""
        path = self.target_dir / "manifest.json"
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(draft)
            self.artifact = draft.read_bytes()
            draft.replace(path)
        except OSError as error:
            structlog.get_logger().warning("artifact_not_written", path=path, error=str(error))
            with suppress(OSError):
                draft.unlink()

    def files_read(self) -> frozenset[str]:
        """Return the paths of the files that the project was read from, its packages' as well.

        Not those of dbt itself, of its plugins and of livemart, which come with their versions.
        """
        if self._dbt.manifest is None and self._resumed is not None:
            return self._resumed[1]
        project, paths = self._dbt.manifest.metadata.project_name, set[str]()
        for file in self._dbt.manifest.files.values():
            package, path = file.project_name, file.path
            # A file that has not changed was read where the project was then.
            if package == project:
                paths.add(str(self.project_dir / path.original_file_path))
            elif package not in ENGINE_PACKAGES and "site-packages" not in path.project_root:
                paths.add(str(path.full_path))
        return frozenset(paths)

    def parse(self) -> tuple[Project, list[ConfigError]]:
        """Return the project without compiled SQL, and every mistake in its `meta`.

        Raises:
            ConfigError: DBT_FAILED, with dbt's own message; PROFILE_NOT_SESSION.
        """
        self.check_profile()
        with self._dbt.held(lambda parameters: NoCursor(), QuestionLog(self.run)):
            manifest = self._dbt.parsed()
            credentials = self._dbt.credentials()
        return read_manifest(
            manifest,
            {},
            directory=str(self.project_dir),
            target_schema=str(credentials.schema),
            parameters=credentials.server_side_parameters or {},
        )

    def compile_again(self, unique_ids: Collection[str]) -> Project:
        """Return the project with some nodes compiled on the warehouse as it is now.

        Args:
            unique_ids: of models and tests; one that dbt refuses is `uncompiled`.

        Raises:
            ConfigError: DBT_FAILED, if dbt could not begin: the project may be half edited.
        """
        self.made_tables = {unique_id: [] for unique_id in self.writing.intersection(unique_ids)}
        loaded = self._compiled(unique_ids)
        self._take_samples_again(loaded, loaded.run_dependent & set(unique_ids))
        loaded.renew()
        return loaded.project

    def compile_for_run(self) -> Project:
        """Return the project with all that differs from run to run compiled as of `run`.

        Raises:
            ConfigError: DBT_FAILED, as `compile_again`.
        """
        loaded = self._compiled(self.run_dependent - self.writing)
        # With other answers it is other SQL in every run.
        self._take_samples_again(loaded, loaded.run_dependent & loaded.asking)
        loaded.renew()
        return loaded.project

    def _compiled(self, unique_ids: Collection[str]) -> CompiledProject:
        """Compile some nodes as of `run`."""
        loaded = self._loaded
        assert loaded is not None, "the project is not loaded"
        cursor = self._cursor_beside(loaded)
        result, questions = self._compiled_as_in(self.run, unique_ids, cursor)
        compiled = loaded.take(_ended(result), questions)
        if result.exception is not None or not compiled.issuperset(unique_ids):
            raise self._dbt.failed(result.exception or "dbt has not compiled what it was asked to")
        return loaded

    def _cursor_beside(self, loaded: CompiledProject) -> Callable[[Mapping[str, str]], Cursor]:
        """Return a factory of cursors on a session beside the engine's own.

        SQL of the project may leave settings and views behind.
        """
        session = self._session
        assert session is not None, "a project is compiled again where there is Spark"

        @cache
        def spark() -> SparkSession:
            return new_session(session(), loaded.project.session)

        def cursor(parameters: Mapping[str, str]) -> Cursor:
            tables = self.made_tables.get(current_node() or "")
            if tables is None:
                return SparkCursor(spark, parameters)
            return MakingCursor(spark, parameters, tables)

        return cursor

    def _take_samples_again(self, loaded: CompiledProject, unique_ids: Collection[str]) -> None:
        if unique_ids:
            self._take_samples(loaded, unique_ids, self._cursor_beside(loaded))

    def _take_samples(
        self,
        loaded: CompiledProject,
        unique_ids: Collection[str],
        make_cursor: Callable[[Mapping[str, str]], Cursor],
    ) -> None:
        """Note the SQL of some nodes in two fixed runs; writes of a macro are left out."""

        def reading(parameters: Mapping[str, str]) -> Cursor:
            return RecordingCursor(make_cursor(parameters), [], defines=True)

        texts: list[dict[str, str]] = []
        for run in (CANONICAL, OTHER):
            result, _ = self._compiled_as_in(run, unique_ids, reading)
            if result.exception is not None:
                raise self._dbt.failed(result.exception)
            nodes = [ended.node for ended in _ended(result)]
            texts.append({node.unique_id: node.compiled_code or "" for node in nodes})
        loaded.samples |= {key: tuple(text.get(key, "") for text in texts) for key in unique_ids}

    def _compiled_as_in(
        self,
        run: RunValues,
        unique_ids: Collection[str],
        make_cursor: Callable[[Mapping[str, str]], Cursor],
    ) -> tuple[dbtRunnerResult, QuestionLog]:
        """Compile some nodes as in a run; return dbt's result, and their questions."""
        questions = QuestionLog(run)
        with self._dbt.held(make_cursor, questions, only=unique_ids):
            self._dbt.parsed()
            return self._dbt.invoke(_COMPILE), questions

    @property
    def run_dependent(self) -> frozenset[str]:
        """The nodes whose SQL may differ from run to run, by unique id."""
        return self._loaded.run_dependent if self._loaded is not None else frozenset()

    def keep_answers(self, unique_id: str, questions: tuple[Question, ...]) -> None:
        """Note the present answers to a node's questions, from which its SQL was made."""
        if self._loaded is not None:
            self._loaded.keep_answers(unique_id, questions)

    def build(
        self,
        *,
        full_refresh: bool = True,
        unit_tests: bool = False,
        data_tests: bool = True,
        only: Collection[str] | None = None,
        ends: bool = True,
    ) -> dict[str, NodeResult]:
        """Build seeds, models and dbt snapshots, and run tests, in dependency order.

        Args:
            full_refresh: create tables again; dbt adds to those of incremental models otherwise.
            only: unique ids of the nodes to build; all if None.
            ends: run the hooks of on-run-end; else `end_run` does.

        Returns:
            One result per node, by unique id, in the order in which they ended. A failing node is
            a result, not an exception.

        Raises:
            ConfigError: DBT_FAILED, if dbt could not begin.
        """
        if self._loaded is None and self._resumed is not None:
            self.load()
        arguments = ["build"]
        for kind, is_included in (("unit_test", unit_tests), ("test", data_tests)):
            if not is_included:
                arguments += ["--exclude-resource-type", kind]
        if full_refresh:
            arguments.append("--full-refresh")
        questions = QuestionLog(self.run, builds="in full" if full_refresh else "more")
        self._unended = UnendedRun()
        keeping = [] if ends else self._unended.keeping()
        with self._dbt.held(self._building_cursor(), questions, only=only, others=keeping):
            self._dbt.parsed()
            result = self._dbt.invoke(arguments)
        ended = getattr(result.result, "results", None)
        if ended is None:
            raise self._dbt.failed(result.exception)
        if (loaded := self._loaded) is not None:
            if loaded.take_built(ended, questions):
                self.is_repeatable = False
                # All is built: whether what it asked makes other SQL in other runs is seen later.
                with suppress(ConfigError):
                    self._take_samples_again(loaded, loaded.run_dependent & loaded.asking)
                loaded.renew()
            elif any(model.is_custom for model in loaded.project.models.values()):
                # There may be tables of theirs now.
                loaded.renew()
        return {item.unique_id: item for item in map(node_result, ended)}

    def end_run(self, tests: Mapping[str, TestEnd]) -> dict[str, NodeResult]:
        """Run the hooks of on-run-end for the last build, which was kept from them.

        Args:
            tests: how the data tests ended, by unique id.

        Returns:
            The result of each hook, by unique id.

        Raises:
            ConfigError: DBT_FAILED, if a hook cannot be rendered.
        """
        unended, self._unended = self._unended, UnendedRun()
        nodes = [it.node.unique_id for it in unended.results if it.node.unique_id in self._built]
        if not nodes or not has_end_hooks(self._dbt.manifest):
            return {}
        ending = unended.ending(self._dbt.manifest, self.project, tests)
        questions = QuestionLog(self.run, builds="in full")
        # dbt runs no hook where it selects no node.
        with self._dbt.held(self._building_cursor(), questions, only=nodes[:1], others=ending):
            result = self._dbt.invoke(["build", "--full-refresh"])
        if result.exception is not None:
            raise self._dbt.failed(result.exception)
        return {item.unique_id: item for item in map(node_result, _ended(result))}

    @property
    def _built(self) -> set[str]:
        """The unique ids of all nodes that dbt may build."""
        kinds = ("model", "seed", "snapshot")
        nodes = self._dbt.manifest.nodes.items()
        return {key for key, node in nodes if str(node.resource_type) in kinds and not node.empty}

    def selection(self, selection: Selection) -> frozenset[str]:
        """Return the unique ids of the models, seeds and dbt snapshots that a selection names.

        Raises:
            ConfigError: DBT_FAILED, if dbt does not understand the selection; SELECTION_EMPTY, if
                it names no node.
        """
        arguments = ["list", *selection.arguments]
        for kind in ("model", "seed", "snapshot"):
            arguments += ["--resource-type", kind]
        with self._dbt.held(lambda parameters: NoCursor(), QuestionLog(self.run)):
            self._dbt.parsed()
            result = self._dbt.invoke(
                [*arguments, "--output", "json", "--output-keys", "unique_id"]
            )
        if not result.success or not isinstance(result.result, list):
            failed = self._dbt.failed(result.exception)
            for words, hint in _STATE_HINTS.items():
                if words in failed.message:
                    failed.hint = _STATE_HINT if selection.state is None else hint
            if "Could not find selector" in failed.message:
                failed.hint = "name a selector of selectors.yml, or define this one there"
            raise failed
        # dbt lists a blank model, and builds none.
        chosen = self._built.intersection(json.loads(line)["unique_id"] for line in result.result)
        names = [self._dbt.manifest.nodes[key].name for key in self._built]
        if not chosen:
            words = " ".join(nearest(word, names) for word in selection.select).strip()
            raise selection_empty(selection, f"names no model, seed or dbt snapshot{words}")
        for word in self._dbt.unmatched:
            near = nearest(word, names).removeprefix(", ") or None
            structlog.get_logger().warning("selection_names_nothing", word=word, hint=near)
        return frozenset(chosen)

    def _building_cursor(self) -> Callable[[Mapping[str, str]], Cursor]:
        if self._session is None:
            raise SparkNeeded("a build")
        sessions = NodeSessions(self._session)
        if self._loaded is not None:
            project = self._loaded.project
            specs = {key: model.session_in_dbt for key, model in project.models.items()}
            # The others share that of their spec: they have no hook that defines anything, or only
            # set before they begin what the session has already.
            alone = frozenset(key for key, model in project.models.items() if model.is_alone_in_dbt)
            sessions = NodeSessions(self._session, current_node, specs, alone, project.session)
        return lambda parameters: SparkCursor(sessions, parameters)

    def _compiling_cursor(
        self, hooks: HookLog, sent: dict[str, list[str]]
    ) -> Callable[[Mapping[str, str]], Cursor]:
        """Return a factory of cursors for a first look: writes of tests go into `sent`."""
        session = self._session
        if session is None:
            return lambda parameters: hooks.cursor(NoCursor(), current_node())
        from pyspark.errors import PySparkException

        sessions = NodeSessions(session)

        def begun() -> SparkSession:
            spark = sessions()
            while hooks.pending:
                # The batch may still make its inputs; the node that asks for it gets the error.
                with suppress(PySparkException):
                    run_statements(spark, [hooks.pending.pop(0)], {})
            return spark

        def cursor(parameters: Mapping[str, str]) -> Cursor:
            node, spark_cursor = current_node(), SparkCursor(begun, parameters)
            if node is not None and _is_analysis(node):
                # It fills no table, so it is no reason to start Spark.
                return NoCursor()
            if node is not None and node.startswith("test."):
                return RecordingCursor(spark_cursor, sent.setdefault(node, []), defines=True)
            return hooks.cursor(spark_cursor, node)

        return cursor


def _is_analysis(unique_id: str) -> bool:
    return unique_id.startswith("analysis.")


def _ended(result: dbtRunnerResult) -> Sequence[Any]:
    """Return dbt's results of nodes; none if it could not begin."""
    ended: Sequence[Any] = getattr(result.result, "results", ())
    return ended
