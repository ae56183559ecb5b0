"""Runs dbt on a project, in this process.

Used by every command that reads the project. dbt's runner keeps its state in globals of the
process, so there is one invocation at a time.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from warnings import catch_warnings, filterwarnings

import structlog

from livemart.errors import ConfigError, ConfigErrors, nearest
from livemart.project.compiled_project import CompiledProject
from livemart.project.cursors import (
    Connection,
    Cursor,
    NoCursor,
    SessionFactory,
    SparkCursor,
    SparkNeeded,
)
from livemart.project.dbt_attachment import (
    ENGINE_PACKAGES,
    Replacement,
    attached,
    current_node,
)
from livemart.project.graph import Project
from livemart.project.hooks.dbt_hooks import NO_HOOKS, HookLog, RecordingCursor, render_hooks
from livemart.project.hooks.run_end import TestEnd, UnendedRun, has_end_hooks
from livemart.project.made_tables import MakingCursor
from livemart.project.manifest import order_nodes, read_manifest
from livemart.project.node_results import (
    NodeProgress,
    NodeResult,
    as_compiled,
    node_progress,
    node_result,
)
from livemart.project.profiles import find_profiles, profiles_folder
from livemart.project.questions import Question, QuestionLog
from livemart.project.run_values import CANONICAL, OTHER, RunValues
from livemart.project.sessions import NodeSessions, new_session, run_statements
from livemart.settings import Selection, selection_empty
from livemart.storage.location import StoragePlace

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from dbt.config.renderer import ProfileRenderer
    from pyspark.sql import SparkSession

_ONE_INVOCATION = threading.RLock()
# Without its artifacts: a compile is nothing that was done.
_COMPILE = (
    *("compile", "--full-refresh", "--no-populate-cache"),
    *("--no-fail-fast", "--no-write-json"),
)


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

    `is_repeatable`: whether the project that was loaded follows from its files, and would be
    compiled to the same again. It is not if a node asks the warehouse or mentions the run, if there
    is a hook to render, or a table that dbt alone writes, for which a batch needs dbt. `artifact`:
    `manifest.json` as it was written, None if it could not be.
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
    ) -> None:
        self.project_dir = project_dir.resolve()
        self.profiles_dir = find_profiles(self.project_dir, profiles_dir)
        self.target_dir = target_dir or self.project_dir / "target"
        self._target = target
        self._vars = dict(vars or {})
        self._warehouse = warehouse.resolve() if isinstance(warehouse, Path) else warehouse
        self._session = session and self._noting(session)
        self._progress = progress
        self._manifest: Any = None
        self._loaded: CompiledProject | None = None
        # The values of the run that SQL gets from now on.
        self.run = RunValues(str(uuid4()), datetime.now(UTC))
        # The errors that the last invocation reported, besides the one that it raised.
        self._errors: list[str] = []
        self._is_compiling = False
        self._unended = UnendedRun()
        # Tests whose macros write while they are compiled: a batch compiles them, for real.
        self.writing: frozenset[str] = frozenset()
        # The tables that those of them made which were compiled last.
        self.made_tables: dict[str, list[str]] = {}
        self._has_asked = False
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
        """Return what gives a session, and notes that it was asked for."""

        def noted() -> SparkSession:
            self._has_asked = True
            return session()

        return noted

    def load(self) -> Project:
        """Parse and compile the project as for a full refresh, and check what it says to livemart.

        A node that asked the warehouse and could not be compiled is not compiled yet: what it asks
        for may be made by the next batch. Writes dbt's `manifest.json`.

        Raises:
            ConfigError: DBT_FAILED, with dbt's own message, or DBT_NEEDS_SPARK, if a model asks the
                database while it is compiled and there is no session; all mistakes at once.
        """
        self.check_profile()
        self._has_asked = self.is_repeatable = False
        hooks, questions = HookLog(), QuestionLog(self.run)
        sent: dict[str, list[str]] = {}
        cursor = self._compiling_cursor(hooks, sent)
        self._manifest = None
        with self._invocation(cursor, questions, lambda task: render_hooks(task, hooks)):
            manifest = self._parsed()
            credentials = self._credentials()
            result = self._invoke(_COMPILE)
            read = CompiledProject(
                str(self.project_dir),
                manifest,
                schema=str(credentials.schema),
                parameters=credentials.server_side_parameters or {},
                hooks=hooks.hooks,
            )
            read.take(_ended(result), questions)
            self.writing = frozenset(unique_id for unique_id, texts in sent.items() if texts)
            errors: list[ConfigError] = []
            for unique_id, message in read.refused.items():
                # An analysis is none of a mart's nodes: dbt compiles it by hand.
                if unique_id in hooks.unrendered or unique_id.startswith("analysis."):
                    continue
                if unique_id in self.writing:
                    # The table that it would have written does not exist.
                    continue
                if self._session is None or not read.questions_of(unique_id):
                    errors.append(self._failed(message))
            if result.exception is not None:
                errors.append(self._failed(result.exception))
            mistakes = read.renew()
            if not (errors or mistakes):
                self._write_manifest(lambda it: manifest.writable_manifest().write(str(it)))
        if errors or mistakes:
            raise ConfigErrors([*{str(error): error for error in errors}.values(), *mistakes])
        if run_dependent := read.run_dependent:
            self._take_samples(read, run_dependent, cursor)
            read.renew()
        self._loaded = read
        self.is_repeatable = (
            not (self._has_asked or self.writing or run_dependent or read.refused)
            and replace(hooks.hooks, functions=()) == NO_HOOKS
            and not any(model.is_of_dbt for model in read.project.models.values())
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

    def check_profile(self) -> None:
        """Check the profile alone, before anything is started for the project.

        dbt itself would first ask for the packages of another connection.

        Raises:
            ConfigError: PROFILE_NOT_SESSION; PROFILE_INCOMPLETE; DBT_FAILED with dbt's own words
                for what else is wrong with it.
        """
        from dbt.config.profile import Profile, read_profile
        from dbt.config.project import load_raw_project

        file = profiles_folder(self.project_dir, self.profiles_dir) / "profiles.yml"
        chosen = self._target or _dbt_variable("TARGET")
        with _rendering(self.project_dir, self._vars) as renderer:
            written = load_raw_project(str(self.project_dir)).get("profile")
            name = _dbt_variable("PROFILE") or renderer.render_value(written)
            profiles = read_profile(str(file.parent))
            if not isinstance(profile := profiles.get(name), dict):
                raise _no_profile(file, name, [key for key in profiles if key != "config"])
            target, output = Profile.render_profile(profile, name, chosen, renderer)
        where = f"{file}: profile {name}, target {target}"
        kind, method = output.get("type"), output.get("method")
        if kind != "spark" or method != "session":
            raise ConfigError(
                "PROFILE_NOT_SESSION",
                f"{where}: found type {kind}, method {method}",
                hint="use type spark with method session, as livemart gives dbt its Spark session; "
                "`livemart init --from-dbt` prints a target to paste",
            )
        if not output.get("schema"):
            raise ConfigError(
                "PROFILE_INCOMPLETE",
                f"{where}: no schema",
                hint="name the schema that models go to: `schema: analytics`",
            )

    def files_read(self) -> frozenset[str]:
        """Return the paths of the files that the project was read from, its packages' as well.

        Not those of dbt itself, of its plugins and of livemart, which come with their versions.
        """
        if self._manifest is None and self._resumed is not None:
            return self._resumed[1]
        project, paths = self._manifest.metadata.project_name, set[str]()
        for file in self._manifest.files.values():
            package, path = file.project_name, file.path
            # A file that has not changed was read where the project was then.
            if package == project:
                paths.add(str(self.project_dir / path.original_file_path))
            elif package not in ENGINE_PACKAGES and "site-packages" not in path.project_root:
                paths.add(str(path.full_path))
        return frozenset(paths)

    def parse(self) -> tuple[Project, list[ConfigError]]:
        """Return the project without compiled SQL, and every mistake in what its `meta` says.

        Raises:
            ConfigError: DBT_FAILED, with dbt's own message; PROFILE_NOT_SESSION.
        """
        self.check_profile()
        with self._invocation(lambda parameters: NoCursor(), QuestionLog(self.run)):
            manifest = self._parsed()
            credentials = self._credentials()
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
            raise self._failed(result.exception or "dbt has not compiled what it was asked to")
        return loaded

    def _cursor_beside(self, loaded: CompiledProject) -> Callable[[Mapping[str, str]], Cursor]:
        """Return what makes cursors on a session beside the engine's own.

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
        """Note the SQL of some nodes in two fixed runs; what a macro would write is not written."""

        def reading(parameters: Mapping[str, str]) -> Cursor:
            return RecordingCursor(make_cursor(parameters), [], defines=True)

        texts: list[dict[str, str]] = []
        for run in (CANONICAL, OTHER):
            result, _ = self._compiled_as_in(run, unique_ids, reading)
            if result.exception is not None:
                raise self._failed(result.exception)
            nodes = [ended.node for ended in _ended(result)]
            texts.append({node.unique_id: node.compiled_code or "" for node in nodes})
        loaded.samples |= {key: tuple(text.get(key, "") for text in texts) for key in unique_ids}

    def _compiled_as_in(
        self,
        run: RunValues,
        unique_ids: Collection[str],
        make_cursor: Callable[[Mapping[str, str]], Cursor],
    ) -> tuple[dbtRunnerResult, QuestionLog]:
        """Compile some nodes as in a run; return dbt's result, and what they asked."""
        questions = QuestionLog(run)
        with self._invocation(make_cursor, questions, only=unique_ids):
            self._parsed()
            return self._invoke(_COMPILE), questions

    @property
    def run_dependent(self) -> frozenset[str]:
        """The nodes whose SQL may differ from run to run, by unique id."""
        return self._loaded.run_dependent if self._loaded is not None else frozenset()

    def keep_answers(self, unique_id: str, questions: tuple[Question, ...]) -> None:
        """Note what a node's questions are answered now, where its SQL is that of these answers."""
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
        with self._invocation(self._building_cursor(), questions, only=only, others=keeping):
            self._parsed()
            result = self._invoke(arguments)
        ended = getattr(result.result, "results", None)
        if ended is None:
            raise self._failed(result.exception)
        if (loaded := self._loaded) is not None and loaded.take_built(ended, questions):
            self.is_repeatable = False
            # All is built: whether what it asked makes other SQL in other runs is seen later.
            with suppress(ConfigError):
                self._take_samples_again(loaded, loaded.run_dependent & loaded.asking)
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
        if not nodes or not has_end_hooks(self._manifest):
            return {}
        ending = unended.ending(self._manifest, self.project, tests)
        questions = QuestionLog(self.run, builds="in full")
        # dbt runs no hook where it selects no node.
        with self._invocation(self._building_cursor(), questions, only=nodes[:1], others=ending):
            result = self._invoke(["build", "--full-refresh"])
        if result.exception is not None:
            raise self._failed(result.exception)
        return {item.unique_id: item for item in map(node_result, _ended(result))}

    @property
    def _built(self) -> Collection[str]:
        """The unique ids of all nodes that dbt may select."""
        kinds = ("model", "seed", "snapshot")
        nodes = self._manifest.nodes.items()
        return {key for key, node in nodes if str(node.resource_type) in kinds}

    def selection(self, selection: Selection) -> frozenset[str]:
        """Return the unique ids of the models, seeds and dbt snapshots that a selection names.

        Raises:
            ConfigError: DBT_FAILED, if dbt does not understand the selection; SELECTION_EMPTY, if
                it names no node.
        """
        arguments = ["list", *selection.arguments]
        for kind in ("model", "seed", "snapshot"):
            arguments += ["--resource-type", kind]
        with self._invocation(lambda parameters: NoCursor(), QuestionLog(self.run)):
            self._parsed()
            result = self._invoke([*arguments, "--output", "json", "--output-keys", "unique_id"])
        if not result.success or not isinstance(result.result, list):
            failed = self._failed(result.exception)
            if selection.state is None and "state selector method" in failed.message:
                failed.hint = (
                    "name the folder of an earlier manifest.json with --state DIR, such as a copy "
                    "of target from before the change"
                )
            raise failed
        chosen = frozenset(json.loads(line)["unique_id"] for line in result.result)
        if not chosen:
            names = [node.name for node in self._manifest.nodes.values()]
            words = " ".join(nearest(word, names) for word in selection.select).strip()
            raise selection_empty(selection, f"names no model that has a table{words}")
        return chosen

    def _parsed(self) -> Any:
        """Return dbt's manifest, parsed once, with nothing compiled left in it."""
        if self._manifest is None:
            result = self._invoke(["parse", "--no-write-json"])
            if not result.success:
                raise self._failed(result.exception)
            self._manifest = result.result
            order_nodes(self._manifest)
        # Else dbt takes the ephemeral inputs of a node for injected already, and leaves them out.
        for node in self._manifest.nodes.values():
            if getattr(node, "compiled", False) and str(node.resource_type) != "seed":
                node.compiled = False
                node.compiled_code = None
                node._pre_injected_sql = None
                node.extra_ctes_injected = False
                node.extra_ctes = []
        return self._manifest

    def _invoke(self, arguments: Sequence[str]) -> dbtRunnerResult:
        from dbt.cli.main import dbtRunner

        common = [
            *("--project-dir", str(self.project_dir)),
            *("--target-path", str(self.target_dir / "livemart")),
            *("--log-path", str(self.target_dir / "logs")),
            *("--log-level", "none", "--log-level-file", "info", "--no-print"),
            *("--no-send-anonymous-usage-stats", "--no-use-colors"),
        ]
        if self.profiles_dir is not None:
            common += ["--profiles-dir", str(self.profiles_dir)]
        if self._target is not None:
            common += ["--target", self._target]
        if self._vars:
            common += ["--vars", json.dumps(self._vars, default=str)]
        self._errors, self._is_compiling = [], arguments[0] == "compile"
        runner = dbtRunner(manifest=self._manifest, callbacks=[self._on_event])
        try:
            with catch_warnings():
                # The seeds of a folder may share `column_types`: each has some of the columns.
                filterwarnings("ignore", ".* does not match the name of any column", RuntimeWarning)
                result = runner.invoke([*arguments, *common])
        finally:
            _close_logs()
        if result.exception is not None and not isinstance(result.exception, Exception):
            # A signal is not a result.
            raise result.exception
        return result

    def _failed(self, error: object) -> ConfigError:
        """Return an error of dbt's with the reasons that it gave before, each once."""
        text = str(error).strip()
        reasons = [text]
        for said in self._errors:
            if said not in "\n".join(reasons) and text not in said:
                reasons.append(said)
        message = "\n".join(reasons)
        if "asks the database while it is compiled" in message:
            return ConfigError(
                "DBT_NEEDS_SPARK", message, hint="give it a Spark session, as `plan` and `build` do"
            )
        return _dbt_failed(message, self.project_dir)

    def _on_event(self, event: Any) -> None:
        if event.info.level == "error" and (said := str(event.info.msg).strip()):
            self._errors.append(said)
        if self._progress is None or (progress := node_progress(event)) is None:
            return
        if not self._is_compiling:
            self._progress(progress)
        elif progress.line is None:
            self._progress(as_compiled(progress))

    def _credentials(self) -> Any:
        """Return what the profile says of the target."""
        from dbt.config.runtime import load_profile

        return load_profile(str(self.project_dir), self._vars, None, self._target).credentials

    @contextmanager
    def _invocation(
        self,
        make_cursor: Callable[[Mapping[str, str]], Cursor],
        questions: QuestionLog,
        before_compile: Callable[[Any], None] | None = None,
        only: Collection[str] | None = None,
        others: Sequence[Replacement] = (),
    ) -> Iterator[None]:
        """Hold dbt, and let it open our cursors, know our macros and take down questions."""
        connection = Connection(lambda parameters: questions.cursor(make_cursor(parameters)))
        with (
            _ONE_INVOCATION,
            attached(connection, self._warehouse, questions, before_compile, only, others),
        ):
            yield

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
        """Return what makes cursors for a first look: what tests would write goes into `sent`."""
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
            if node is not None and node.startswith("test."):
                return RecordingCursor(spark_cursor, sent.setdefault(node, []), defines=True)
            return hooks.cursor(spark_cursor, node)

        return cursor


def reserved_names() -> frozenset[str]:
    """Return the words that dbt takes for no project's name."""
    from dbt.contracts.project import BANNED_PROJECT_NAMES

    return frozenset(BANNED_PROJECT_NAMES)


def _ended(result: dbtRunnerResult) -> Sequence[Any]:
    """Return dbt's results of nodes; none if it could not begin."""
    ended: Sequence[Any] = getattr(result.result, "results", ())
    return ended


def _close_logs() -> None:
    """Close the log file of an invocation, which dbt leaves to the garbage collector."""
    from dbt_common.events.event_manager_client import cleanup_event_logger, get_event_manager

    manager: Any = get_event_manager()
    for logger in manager.loggers:
        for handler in [*logger._python_logger.handlers]:
            handler.close()
            logger._python_logger.removeHandler(handler)
    cleanup_event_logger()


def render_in_project(text: str, project_dir: Path, variables: Mapping[str, object]) -> str:
    """Return a text of `dbt_project.yml` as dbt renders it.

    Raises:
        ConfigError: DBT_FAILED, if it cannot be rendered.
    """
    with _rendering(project_dir, variables) as renderer:
        return str(renderer.render_value(text))


@contextmanager
def _rendering(project_dir: Path, variables: Mapping[str, object]) -> Iterator[ProfileRenderer]:
    """Hold dbt, and yield what renders its configuration; its errors are ours."""
    from dbt.config.renderer import ProfileRenderer
    from dbt_common.context import set_invocation_context
    from dbt_common.exceptions import DbtBaseException

    with _ONE_INVOCATION:
        try:
            set_invocation_context(os.environ)
            yield ProfileRenderer(dict(variables))
        except DbtBaseException as error:
            raise _dbt_failed(str(error).strip(), project_dir) from error


def _dbt_failed(message: str, project_dir: Path) -> ConfigError:
    return ConfigError(
        "DBT_FAILED",
        message.replace(f"{project_dir}/", ""),
        hint="correct the mistake that dbt reports",
    )


def _no_profile(file: Path, name: object, names: Sequence[str]) -> ConfigError:
    if name is None:
        return ConfigError(
            "PROFILE_INCOMPLETE",
            "dbt_project.yml: no profile",
            hint=f"write `profile:` and a name of {file}: {', '.join(names) or 'none is there'}",
        )
    return ConfigError(
        "PROFILE_INCOMPLETE",
        f"{file}: no profile {name}{nearest(str(name), names)}",
        hint=f"write the name after `profile:` in dbt_project.yml; {file.name} has "
        f"{', '.join(names) or 'none'}",
    )


def _dbt_variable(name: str) -> str | None:
    """Return what the environment says of a flag of dbt's."""
    return os.environ.get(f"DBT_ENGINE_{name}") or os.environ.get(f"DBT_{name}")
