"""Parses, compiles and runs a project with dbt, in this process.

Used by every command that reads the project. dbt's runner keeps its state in globals of the
process, so there is one invocation at a time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.errors import ConfigError, ConfigErrors
from livemart.project.cursors import (
    CompilingCursor,
    Connection,
    Cursor,
    SessionFactory,
    SparkCursor,
    SparkNeeded,
)
from livemart.project.dbt_attachment import attached, current_node
from livemart.project.dbt_hooks import HookLog, render_hooks
from livemart.project.graph import Project
from livemart.project.manifest import read_manifest
from livemart.project.node_results import NodeProgress, NodeResult, node_progress, node_result
from livemart.project.node_sessions import sessions_in_a_build
from livemart.project.profiles import find_profiles
from livemart.project.sessions import NodeSessions, run_statements

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from pyspark.sql import SparkSession

_ONE_INVOCATION = threading.RLock()


class Dbt:
    """dbt on one project, in this process, on the session that `session` gives.

    Args:
        project_dir: folder of `dbt_project.yml`.
        profiles_dir: folder of `profiles.yml`; None looks in the project's `profiles/`, then in the
            project's folder, then leaves the search to dbt.
        target: target of the profile; None is the profile's own.
        vars: dbt variables, over those of the project.
        warehouse: root of all tables; needed to build.
        session: gives the Spark session when a statement needs one; None compiles without Spark.
        progress: called when a node begins or ends, from dbt's threads.
    """

    def __init__(
        self,
        project_dir: Path,
        profiles_dir: Path | None = None,
        *,
        target: str | None = None,
        vars: Mapping[str, object] | None = None,
        warehouse: Path | None = None,
        session: SessionFactory | None = None,
        progress: Callable[[NodeProgress], None] | None = None,
    ) -> None:
        self.project_dir = project_dir.resolve()
        self.profiles_dir = find_profiles(self.project_dir, profiles_dir)
        self._target = target
        self._vars = dict(vars or {})
        self._warehouse = warehouse.resolve() if warehouse else None
        self._session = session
        self._progress = progress
        self._manifest: Any = None
        # As it was read last.
        self._project: Project | None = None
        # What the last invocation said of errors, besides what it raised.
        self._errors: list[str] = []

    def load(self) -> Project:
        """Parse and compile the project as for a full refresh, and check what it says to livemart.

        Raises:
            ConfigError: DBT_FAILED, with dbt's own message, or DBT_NEEDS_SPARK, if a model asks the
                database while it is compiled and there is no session; all mistakes at once.
        """
        hooks = HookLog()
        with self._invocation(hooks):
            self._manifest = None
            manifest = self._parsed()
            credentials = self._credentials()
            result = self._invoke(["compile", "--full-refresh", "--no-populate-cache"])
            compiled: dict[str, str] = {}
            errors: list[ConfigError] = []
            for node in getattr(result.result, "results", ()):
                if str(node.status) == "success":
                    compiled[node.node.unique_id] = node.node.compiled_code
                elif str(node.status) != "skipped" and node.node.unique_id not in hooks.unrendered:
                    errors.append(self._failed(node.message))
            if result.exception is not None:
                errors.append(self._failed(result.exception))
            # Ephemeral models are compiled into their users; dbt reports no result of theirs.
            for unique_id, node in manifest.nodes.items():
                if unique_id not in compiled and node.is_ephemeral_model and node.compiled_code:
                    compiled[unique_id] = node.compiled_code
            project, mistakes = read_manifest(
                manifest,
                compiled,
                directory=str(self.project_dir),
                target_schema=str(credentials.schema),
                parameters=credentials.server_side_parameters,
                hooks=hooks.hooks,
            )
        if errors or mistakes:
            raise ConfigErrors([*errors, *mistakes])
        self._project = project
        return project

    def build(
        self,
        select: Sequence[str] = (),
        exclude: Sequence[str] = (),
        *,
        full_refresh: bool = True,
        unit_tests: bool = False,
        data_tests: bool = True,
    ) -> dict[str, NodeResult]:
        """Build seeds, models and dbt snapshots, and run tests, in dependency order.

        Returns:
            One result per node, by unique id, in the order in which they ended. A failing node is
            a result, not an exception.

        Raises:
            ConfigError: DBT_FAILED, if dbt could not begin.
        """
        arguments = ["build", *_listed("--select", select), *_listed("--exclude", exclude)]
        for kind, is_included in (("unit_test", unit_tests), ("test", data_tests)):
            if not is_included:
                arguments += ["--exclude-resource-type", kind]
        if full_refresh:
            arguments.append("--full-refresh")
        with self._invocation(None):
            self._parsed()
            result = self._invoke(arguments)
        ended = getattr(result.result, "results", None)
        if ended is None:
            raise self._failed(result.exception)
        return {item.unique_id: item for item in map(node_result, ended)}

    def selection(self, select: Sequence[str] = (), exclude: Sequence[str] = ()) -> frozenset[str]:
        """Return the unique ids of the models, seeds and dbt snapshots that a selection names.

        Raises:
            ConfigError: DBT_FAILED, if dbt does not understand the selection.
        """
        arguments = ["list", *_listed("--select", select), *_listed("--exclude", exclude)]
        for kind in ("model", "seed", "snapshot"):
            arguments += ["--resource-type", kind]
        with self._invocation(HookLog()):
            self._parsed()
            result = self._invoke([*arguments, "--output", "json", "--output-keys", "unique_id"])
        if not result.success or not isinstance(result.result, list):
            raise self._failed(result.exception)
        return frozenset(json.loads(line)["unique_id"] for line in result.result)

    def _parsed(self) -> Any:
        """Return dbt's manifest, parsed once, with nothing compiled left in it."""
        if self._manifest is None:
            result = self._invoke(["parse", "--no-write-json"])
            if not result.success:
                raise self._failed(result.exception)
            self._manifest = result.result
        # Else dbt takes the ephemeral inputs of a node for injected already, and leaves them out.
        for node in self._manifest.nodes.values():
            if getattr(node, "compiled", False) and str(node.resource_type) != "seed":
                node.compiled = False
                node.compiled_code = None
                node.extra_ctes_injected = False
                node.extra_ctes = []
        return self._manifest

    def _invoke(self, arguments: Sequence[str]) -> dbtRunnerResult:
        from dbt.cli.main import dbtRunner

        common = [
            *("--project-dir", str(self.project_dir)),
            *("--target-path", str(Path("target", "livemart"))),
            *("--log-path", str(self.project_dir / "target" / "logs")),
            *("--log-level", "none", "--log-level-file", "info", "--no-print"),
            *("--no-send-anonymous-usage-stats", "--no-use-colors"),
        ]
        if self.profiles_dir is not None:
            common += ["--profiles-dir", str(self.profiles_dir)]
        if self._target is not None:
            common += ["--target", self._target]
        if self._vars:
            common += ["--vars", json.dumps(self._vars, default=str)]
        self._errors = []
        runner = dbtRunner(manifest=self._manifest, callbacks=[self._on_event])
        try:
            result = runner.invoke([*arguments, *common])
        finally:
            _close_logs()
        if result.exception is not None and not isinstance(result.exception, Exception):
            # A signal is not a result.
            raise result.exception
        return result

    def _failed(self, told: object) -> ConfigError:
        """Return an error of dbt's with the reasons that it gave before, each once."""
        text = str(told).strip()
        reasons = [text]
        for said in self._errors:
            if said not in "\n".join(reasons) and text not in said:
                reasons.append(said)
        message = "\n".join(reasons)
        if "asks the database while it is compiled" in message:
            return ConfigError(
                "DBT_NEEDS_SPARK", message, hint="give it a Spark session, as `plan` and `build` do"
            )
        place = self.project_dir
        return ConfigError(
            "DBT_FAILED",
            message.replace(f"{place}/", ""),
            hint="mend what it names",
        )

    def _on_event(self, event: Any) -> None:
        if event.info.level == "error" and (said := str(event.info.msg).strip()):
            self._errors.append(said)
        if self._progress is not None and (progress := node_progress(event)) is not None:
            self._progress(progress)

    def _credentials(self) -> Any:
        """Return what the profile says of the target.

        Raises:
            ConfigError: PROFILE_NOT_SESSION.
        """
        from dbt.config.runtime import load_profile

        profile = load_profile(str(self.project_dir), self._vars, None, self._target)
        method = getattr(profile.credentials, "method", None)
        if profile.credentials.type != "spark" or str(method) != "session":
            raise ConfigError(
                "PROFILE_NOT_SESSION",
                f"profile {profile.profile_name}, target {profile.target_name}: found type "
                f"{profile.credentials.type}, method {method}",
                hint="use type spark with method session; livemart gives dbt its Spark session",
            )
        return profile.credentials

    @contextmanager
    def _invocation(self, hooks: HookLog | None) -> Iterator[None]:
        """Hold dbt, and let it open our cursors and know our macros.

        Args:
            hooks: takes down the hooks of a project that is only compiled; None to build it.
        """
        if hooks is None:
            connection = Connection(self._building_cursor())
            with _ONE_INVOCATION, attached(connection, self._warehouse):
                yield
            return
        connection = Connection(self._compiling_cursor(hooks))
        with (
            _ONE_INVOCATION,
            attached(connection, self._warehouse, lambda task: render_hooks(task, hooks)),
        ):
            yield

    def _building_cursor(self) -> Callable[[Mapping[str, str]], Cursor]:
        if self._session is None:
            raise SparkNeeded("a build")
        sessions = NodeSessions(self._session)
        if (project := self._project) is not None:
            specs, alone = sessions_in_a_build(project)
            sessions = NodeSessions(self._session, current_node, specs, alone, project.session)
        return lambda parameters: SparkCursor(sessions, parameters)

    def _compiling_cursor(self, hooks: HookLog) -> Callable[[Mapping[str, str]], Cursor]:
        session = self._session
        if session is None:
            return lambda parameters: hooks.cursor(
                CompilingCursor(None, parameters), current_node()
            )
        from pyspark.errors import PySparkException

        sessions = NodeSessions(session)

        def begun() -> SparkSession:
            spark = sessions()
            while hooks.pending:
                # What it needs may be made by the batch; who asks for it is told.
                with suppress(PySparkException):
                    run_statements(spark, [hooks.pending.pop(0)], {})
            return spark

        return lambda parameters: hooks.cursor(CompilingCursor(begun, parameters), current_node())


def _close_logs() -> None:
    """Close the log file of an invocation, which dbt leaves to the garbage collector."""
    from dbt_common.events.event_manager_client import cleanup_event_logger, get_event_manager

    manager: Any = get_event_manager()
    for logger in manager.loggers:
        for handler in [*logger._python_logger.handlers]:
            handler.close()
            logger._python_logger.removeHandler(handler)
    cleanup_event_logger()


def _listed(flag: str, words: Sequence[str]) -> list[str]:
    return [flag, *words] if words else []
