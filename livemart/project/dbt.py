"""The only module that imports dbt: parse, compile and run a project, in this process.

dbt's runner keeps its state in globals of the process: one invocation at a time, whoever asks.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from livemart.errors import ConfigError, ConfigErrors
from livemart.project.graph import Project
from livemart.project.manifest import read_manifest
from livemart.project.statements import (
    CompilingCursor,
    Connection,
    Cursor,
    SessionFactory,
    SparkCursor,
    SparkNeeded,
)

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from pyspark.sql import SparkSession

NodeStatus = Literal["success", "warn", "error", "skipped"]
MACROS = Path(__file__).with_name("spark_macros")
_PACKAGE = "livemart_spark"
_WAREHOUSE = "LIVEMART_WAREHOUSE"  # read by the macros
_ONE_INVOCATION = threading.RLock()
_STATUS: Mapping[str, NodeStatus] = {
    "success": "success",
    "pass": "success",
    "no-op": "success",
    "warn": "warn",
    "skipped": "skipped",
}


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What became of one node. `failures` counts the rows a data test found, else None."""

    unique_id: str
    name: str
    kind: str
    status: NodeStatus
    message: str
    took_ms: int
    failures: int | None


@dataclass(frozen=True, slots=True)
class NodeProgress:
    """One node began or ended. `status` is None when it began."""

    unique_id: str
    status: NodeStatus | None


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

    def load(self) -> Project:
        """Parse and compile the project as for a full refresh, and check what it says to livemart.

        Raises:
            ConfigError: DBT_FAILED, with dbt's own message, or DBT_NEEDS_SPARK, if a model asks the
                database while it is compiled and there is no session; all mistakes at once.
        """
        with self._invocation(compiling=True):
            self._manifest = None
            manifest = self._parsed()
            target_schema = self._target_schema()
            result = self._invoke(["compile", "--full-refresh", "--no-populate-cache"])
            compiled: dict[str, str] = {}
            errors: list[ConfigError] = []
            for node in getattr(result.result, "results", ()):
                if str(node.status) == "success":
                    compiled[node.node.unique_id] = node.node.compiled_code
                elif str(node.status) != "skipped":
                    errors.append(_failed(str(node.message), self.project_dir))
            if result.exception is not None:
                errors.append(_failed(str(result.exception), self.project_dir))
            # Ephemeral models are compiled into their users; dbt reports no result of theirs.
            for unique_id, node in manifest.nodes.items():
                if unique_id not in compiled and node.is_ephemeral_model and node.compiled_code:
                    compiled[unique_id] = node.compiled_code
            project, mistakes = read_manifest(
                manifest,
                compiled,
                directory=str(self.project_dir),
                target_schema=target_schema,
            )
        if errors or mistakes:
            raise ConfigErrors([*errors, *mistakes])
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
        left_out = [("unit_test", unit_tests), ("test", data_tests)]
        for kind, wanted in left_out:
            if not wanted:
                arguments += ["--exclude-resource-type", kind]
        if full_refresh:
            arguments.append("--full-refresh")
        with self._invocation(compiling=False):
            self._parsed()
            result = self._invoke(arguments)
        ended = getattr(result.result, "results", None)
        if ended is None:
            raise _failed(str(result.exception), self.project_dir)
        return {item.unique_id: item for item in map(_node_result, ended)}

    def selection(self, select: Sequence[str] = (), exclude: Sequence[str] = ()) -> frozenset[str]:
        """Return the unique ids of the models, seeds and dbt snapshots that a selection names.

        Raises:
            ConfigError: DBT_FAILED, if dbt does not understand the selection.
        """
        arguments = ["list", *_listed("--select", select), *_listed("--exclude", exclude)]
        for kind in ("model", "seed", "snapshot"):
            arguments += ["--resource-type", kind]
        with self._invocation(compiling=True):
            self._parsed()
            result = self._invoke([*arguments, "--output", "json", "--output-keys", "unique_id"])
        if not result.success or not isinstance(result.result, list):
            raise _failed(str(result.exception), self.project_dir)
        return frozenset(json.loads(line)["unique_id"] for line in result.result)

    def _parsed(self) -> Any:
        """Return dbt's manifest, parsed once, with nothing compiled left in it."""
        if self._manifest is None:
            result = self._invoke(["parse", "--no-write-json"])
            if not result.success:
                raise _failed(str(result.exception), self.project_dir)
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
        runner = dbtRunner(manifest=self._manifest, callbacks=[self._on_event])
        try:
            result = runner.invoke([*arguments, *common])
        finally:
            _close_logs()
        if result.exception is not None and not isinstance(result.exception, Exception):
            # A signal is not a result.
            raise result.exception
        return result

    def _on_event(self, event: Any) -> None:
        if self._progress is None or event.info.name not in ("NodeStart", "NodeFinished"):
            return
        node = event.data.node_info
        ended = event.info.name == "NodeFinished"
        status = _STATUS.get(str(node.node_status), "error") if ended else None
        self._progress(NodeProgress(str(node.unique_id), status))

    def _target_schema(self) -> str:
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
        return str(profile.credentials.schema)

    @contextmanager
    def _invocation(self, *, compiling: bool) -> Iterator[None]:
        """Hold dbt, and let it open our cursors and know our macros."""
        session = _once(self._session) if self._session else None

        def cursor(parameters: Mapping[str, str]) -> Cursor:
            if compiling:
                return CompilingCursor(session, parameters)
            if session is None:
                raise SparkNeeded("a build")
            return SparkCursor(session, parameters)

        with _ONE_INVOCATION, attached(Connection(cursor), self._warehouse):
            yield


@contextmanager
def attached(connection: Connection, warehouse: Path | None) -> Iterator[None]:
    """Let dbt-spark open `connection`, know livemart's macros, and report every compile error."""
    from dbt.adapters.spark import session as spark_session
    from dbt.task.compile import CompileTask

    _know_macros()
    before = os.environ.get(_WAREHOUSE)
    if warehouse is not None:
        os.environ[_WAREHOUSE] = str(warehouse)
    try:
        with (
            _replaced(spark_session, "Connection", connection),
            _replaced(CompileTask, "raise_on_first_error", lambda task: False),
        ):
            yield
    finally:
        if before is not None:
            os.environ[_WAREHOUSE] = before
        else:
            os.environ.pop(_WAREHOUSE, None)


def attach(session: SessionFactory, warehouse: Path) -> None:
    """Let the dbt of this process work on `warehouse` through `session`, for good."""
    from dbt.adapters.spark import session as spark_session
    from dbt_common.context import get_invocation_context

    _know_macros()
    # dbt has copied the environment before it calls a plugin.
    environment: Any = get_invocation_context().env
    environment[_WAREHOUSE] = str(warehouse)
    module: Any = spark_session
    module.Connection = Connection(lambda parameters: SparkCursor(session, parameters))


def is_attached() -> bool:
    """Return True if the dbt of this process opens livemart's connections already."""
    from dbt.adapters.spark import session as spark_session

    return isinstance(spark_session.Connection, Connection)


def _know_macros() -> None:
    """Add livemart's macros to those that come with dbt, once."""
    from dbt.adapters.factory import FACTORY

    factory: Any = FACTORY
    if _PACKAGE in factory.packages:
        return
    factory.packages[_PACKAGE] = MACROS
    names = factory.get_adapter_package_names
    # The first of dbt's internal packages wins; the project's own macros beat them all.
    factory.get_adapter_package_names = lambda name: [_PACKAGE, *names(name)]


def _once(session: SessionFactory) -> SessionFactory:
    """Return a session of dbt's own beside that of `session`, made at the first call.

    Both share tables and caches, but neither settings nor temporary views: dbt-spark leaves some
    behind (`partitionOverwriteMode`), and a transaction id of the engine's must not reach dbt.
    """
    made: list[SparkSession] = []
    lock = threading.Lock()

    def own() -> SparkSession:
        with lock:
            if not made:
                made.append(session().newSession())
            return made[0]

    return own


@contextmanager
def _replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def load_project(
    project_dir: Path,
    profiles_dir: Path | None = None,
    *,
    target: str | None = None,
    vars: Mapping[str, object] | None = None,
    session: SessionFactory | None = None,
) -> Project:
    """Parse and compile a project; see `Dbt.load`."""
    return Dbt(project_dir, profiles_dir, target=target, vars=vars, session=session).load()


def find_profiles(project_dir: Path, profiles_dir: Path | None) -> Path | None:
    """Return the folder of `profiles.yml`, or None to leave the search to dbt.

    Raises:
        ConfigError: PROFILES_NOT_FOUND, if `profiles_dir` has none; DBT_PROJECT_NOT_FOUND, if
            `project_dir` is no dbt project.
    """
    if not (project_dir / "dbt_project.yml").is_file():
        raise ConfigError(
            "DBT_PROJECT_NOT_FOUND",
            f"{project_dir}: no dbt_project.yml",
            hint="name the folder of a dbt project with --project-dir",
        )
    if profiles_dir is not None:
        if not (profiles_dir / "profiles.yml").is_file():
            raise ConfigError(
                "PROFILES_NOT_FOUND",
                f"--profiles-dir {profiles_dir}: no profiles.yml",
                hint="name the folder that holds profiles.yml",
            )
        return profiles_dir.resolve()
    for folder in (project_dir / "profiles", project_dir):
        if (folder / "profiles.yml").is_file():
            return folder.resolve()
    return None


def _close_logs() -> None:
    """Close the log file of an invocation, which dbt leaves to the garbage collector."""
    from dbt_common.events.event_manager_client import cleanup_event_logger, get_event_manager

    manager: Any = get_event_manager()
    for logger in manager.loggers:
        for handler in [*logger._python_logger.handlers]:
            handler.close()
            logger._python_logger.removeHandler(handler)
    cleanup_event_logger()


def _node_result(result: Any) -> NodeResult:
    return NodeResult(
        unique_id=result.node.unique_id,
        name=result.node.name,
        kind=str(getattr(result.node.resource_type, "value", result.node.resource_type)),
        status=_STATUS.get(str(result.status), "error"),
        message=str(result.message or ""),
        took_ms=round(result.execution_time * 1000),
        failures=result.failures,
    )


def _failed(message: str, project_dir: Path) -> ConfigError:
    text = message.strip()
    if "asks the database while it is compiled" in text:
        return ConfigError(
            "DBT_NEEDS_SPARK", text, hint="run `build` once: it compiles with Spark at hand"
        )
    return ConfigError(
        "DBT_FAILED",
        text.replace(f"{project_dir}/", ""),
        hint=f"mend the project; `dbt parse --project-dir {project_dir}` gives the same message",
    )


def _listed(flag: str, words: Sequence[str]) -> list[str]:
    return [flag, *words] if words else []
