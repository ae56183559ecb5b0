"""Opens the warm process: lock, Java and jars, session, project, catalog, in this order.

Used by every command that reads or writes the tables of a project. They all stay open between
micro-batches, and are closed in reverse order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import InitVar, dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from livemart.delta.warehouse import Warehouse
from livemart.errors import ConfigErrors, RefreshError
from livemart.refresh.context import BatchMemory
from livemart.run.events import ReportEvent, StepBegan
from livemart.run.input_files import (
    Look,
    ProjectFiles,
    has_little_data,
    is_small_refresh,
    project_files,
    waiting_files,
)
from livemart.run.target_folder import target_folder
from livemart.settings import Settings, selection_empty
from livemart.state.last_pass import forget_pass
from livemart.state.places import StateFolder
from livemart.state.refusals import clear_refusal
from livemart.state.snapshots import SnapshotLog
from livemart.storage.location import Location, StoragePlace
from livemart.storage.opening import open_storage

# The rest is imported where it is used: much of it loads while the JVM starts.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from livemart.check.proofs import Prover
    from livemart.plan.project_plans import ProjectPlans
    from livemart.project.cursors import SessionFactory
    from livemart.project.dbt import Dbt
    from livemart.project.graph import Model, Project
    from livemart.project.node_results import NodeProgress
    from livemart.run.project_cache.cache import ProjectCache


@dataclass
class Runtime:
    """Everything that stays warm between micro-batches, until the project is edited."""

    settings: Settings
    spark: SparkSession
    warehouse: Warehouse
    dbt: Dbt
    project: Project
    log: SnapshotLog
    files: ProjectFiles
    """Those of the project."""
    read_at: Look
    """A look at the files from before they were read."""
    between_batches: BatchMemory = field(default_factory=BatchMemory)
    """Survives an edit of the project."""
    cache: ProjectCache | None = None
    """Keeps the project for the next command."""
    planned: InitVar[ProjectPlans | None] = None
    """Plans that exist already: those that the cache gave, or those of an edited project."""
    plans: ProjectPlans = field(init=False)
    prover: Prover = field(init=False)

    def __post_init__(self, planned: ProjectPlans | None) -> None:
        from livemart.check.proofs import Prover
        from livemart.plan.project_plans import ProjectPlans

        columns = self.warehouse.column_kinds
        self.plans = planned.resumed(columns) if planned else ProjectPlans(self.project, columns)
        self.prover = Prover(self.plans, self.between_batches.own_faults)

    def session(self, model: Model) -> SparkSession:
        """Return the session in which the model's SQL has its meaning."""
        from livemart.project.sessions import session_of

        return session_of(self.spark, model.session)

    def adopt(self, project: Project) -> None:
        """Go on with the SQL that dbt has compiled meanwhile."""
        from livemart.plan.project_plans import ProjectPlans

        self.project = project
        self.plans = ProjectPlans(project, self.warehouse.column_kinds, self.plans)
        self.prover = self.prover.renewed(self.plans)

    def is_as_looked_at(self) -> bool:
        """Return True if the project was read from the files of `read_at`, unedited since.

        dbt may read files that a look does not see: outside of the project, or hidden.
        """
        paths = {os.path.realpath(path) for path in self.read_at}
        read = map(os.path.realpath, self.dbt.files_read())
        return paths.issuperset(read) and self.files.look() == self.read_at

    def keep_project(self) -> None:
        """Keep the project as it was compiled and planned for the next command."""
        from livemart.run.project_cache.cache import CachedProject

        dbt = self.dbt
        if self.cache is None or not dbt.is_repeatable or dbt.artifact is None:
            return
        if self.is_as_looked_at():
            cached = CachedProject(self.project, dbt.files_read(), dbt.artifact, self.plans)
            self.cache.write(cached)

    @property
    def checkpoint(self) -> Path | Location:
        """Spark's checkpoint of the landing stream."""
        return StateFolder(self.settings.warehouse).checkpoint

    @cached_property
    def left_out(self) -> frozenset[str]:
        """The stored queries of models that the settings do not select, by unique id.

        Raises:
            ConfigError: SELECTION_EMPTY; DBT_FAILED, if dbt does not understand the selection.
        """
        selection = self.settings.selection
        if not selection:
            return frozenset()
        chosen = self.dbt.selection(selection)
        stored = self.plans.stored
        left_out = {key for key, query in stored.items() if query.owner.unique_id not in chosen}
        if left_out == stored.keys():
            raise selection_empty(selection, "names no model that has a table")
        return frozenset(left_out)

    @property
    def landed_relations(self) -> list[str]:
        """The tables that landing fills."""
        return [source.relation for source in self.project.sources.values() if source.stream]

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint of every model, by unique id."""
        return {unique_id: plan.fingerprint for unique_id, plan in self.plans.models.items()}


def load_runtime(
    settings: Settings, start: SessionFactory, report: ReportEvent, *, builds: bool = False
) -> Runtime:
    """Read the project, and only then ask for the session, unless a model asks for it.

    The caller holds the warehouse.

    Raises:
        ConfigError: whatever is wrong with the project.
        PlanError: POLICY_NOT_MET.
        RefreshError: MODEL_FAILED, of models that name a column which no source declares.
    """
    from livemart.plan.project_plans import require_policies
    from livemart.plan.table_columns import require_table_columns
    from livemart.plan.undeclared_columns import require_declared
    from livemart.run.leftovers import clear_leftovers
    from livemart.run.project_cache.cache import ProjectCache
    from livemart.spark.catalog import register

    warehouse = Warehouse(settings.warehouse, settings.cache_bytes)
    session = compiling_session(start, settings.warehouse, before=warehouse.written_beside)
    dbt = open_dbt(settings, session, report)
    report(StepBegan("reading the project"))
    files = project_files(settings)
    read_at = files.look()
    log = SnapshotLog(settings.warehouse)
    cache = ProjectCache(settings, read_at)
    cached = None
    # If dbt has work in any case, it reads the project, and does so beside Spark.
    if not (builds or settings.selection or log.newest() is None):
        cached = cache.read()
    if cached is not None:
        project = dbt.resume(cached.project, cached.files, cached.artifact)
    else:
        project = dbt.load()
    spark = start()
    clear_leftovers(settings.warehouse, project)
    # Plans are made while Spark registers tables and views.
    with ThreadPoolExecutor(1, "catalog") as thread:
        registering = thread.submit(register, spark, settings.warehouse, project)
        runtime = Runtime(
            settings,
            spark,
            warehouse,
            dbt,
            project,
            log,
            files,
            read_at,
            cache=cache,
            planned=cached.plans if cached else None,
        )
    registering.result()
    require_policies(project, runtime.plans.stored)
    require_declared(runtime.plans)
    if builds:
        # A refresh sets such a model aside, and goes on with the others.
        require_table_columns(project)
    clear_refusal(settings.warehouse)
    return runtime


def reread(runtime: Runtime) -> Runtime:
    """Return the warm process with its project as it is written now; `runtime` is unchanged.

    Raises:
        ConfigError: whatever is wrong with the project.
        PlanError: POLICY_NOT_MET.
        RefreshError: MODEL_UNREADABLE, naming every edited model that Spark cannot read;
            MODEL_FAILED, as `load_runtime`.
    """
    from livemart.plan.project_plans import ProjectPlans, require_policies
    from livemart.plan.table_columns import require_table_columns
    from livemart.plan.undeclared_columns import require_declared

    session = compiling_session(
        lambda: runtime.spark,
        runtime.settings.warehouse,
        before=runtime.warehouse.written_beside,
    )
    dbt = open_dbt(runtime.settings, session)
    dbt.run = runtime.dbt.run
    read_at = runtime.files.look()
    project = dbt.load()
    # An edit plans the models that it changes, and those that read them.
    plans = ProjectPlans(project, runtime.warehouse.column_kinds, runtime.plans)
    edited = replace(runtime, dbt=dbt, project=project, read_at=read_at, cache=None, planned=plans)
    require_policies(edited.project, edited.plans.stored)
    require_declared(edited.plans)
    require_table_columns(project)
    require_readable(edited, runtime)
    return edited


def require_readable(edited: Runtime, before: Runtime) -> None:
    """Let Spark read the edited models, as far as their inputs are unchanged.

    Raises:
        RefreshError: MODEL_UNREADABLE.
    """
    from livemart.spark.model_errors import analysis_error

    fingerprints, messages = before.fingerprints, []
    edited_too: set[str] = set()
    plain = edited.spark.newSession()
    for unique_id, model in edited.project.models.items():
        is_edited = fingerprints.get(unique_id) != edited.fingerprints[unique_id]
        if any(parent in edited_too for parent in model.depends_on) or any(
            edited.project.sources[parent] != before.project.sources.get(parent)
            for parent in model.depends_on
            if parent in edited.project.sources
        ):
            edited_too.add(unique_id)
        elif is_edited:
            edited_too.add(unique_id)
            session = plain if model.session.is_plain else edited.session(model)
            message = analysis_error(session, model)
            questions = edited.project.questions.get(unique_id, ())
            if model.uncompiled and not any(question.is_lacking for question in questions):
                message = f"{model.file}: {model.uncompiled}"
            # The batch may make a table that does not exist yet.
            if message and "TABLE_OR_VIEW_NOT_FOUND" not in message:
                messages.append(message)
    if messages:
        raise RefreshError(
            "MODEL_UNREADABLE",
            "\n".join(messages),
            hint="correct the model; livemart then reads it again",
        )


@contextmanager
def open_runtime(
    settings: Settings,
    report: ReportEvent,
    *,
    has_guests: bool = False,
    is_short: bool = False,
    builds: bool = False,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Runtime]:
    """Hold the warehouse and everything needed to write it, until the block ends.

    Spark starts while dbt reads the project: two processes, two cores.

    Args:
        settings: of this run.
        report: takes the events of the start.
        has_guests: let a dbt in another terminal join over Spark Connect.
        is_short: the process ends within a minute or so, if its models handle few rows.
        builds: dbt is to build the project.
        meanwhile: is called while Spark starts.

    Raises:
        StateError: RUNNER_LIVES, if another runner holds the warehouse.
        ConfigError: whatever is wrong with Java, the jars or the project.
    """
    from livemart.spark.connect import connect_port, connect_settings
    from livemart.spark.jars import require_jars
    from livemart.spark.java import require_java
    from livemart.spark.session import open_session, prepare_environment
    from livemart.state.lock import hold_warehouse

    if not isinstance(settings.landing, Path):
        # A bucket that is missing or refuses is known before Spark starts.
        open_storage(settings.landing).names(most=1)
    files = waiting_files(settings) if is_short else None
    is_small = files is not None and not builds and is_small_refresh(settings, files)
    if not is_small:
        # The pass before a small refresh has read this project, and dbt does so again: Spark need
        # not wait for dbt to be loaded.
        check_project(settings)
        is_short = files is not None and has_little_data(settings, files)
    with hold_warehouse(settings.warehouse) as lock, ThreadPoolExecutor(1, "spark") as thread:
        forget_pass(settings.warehouse)
        report(StepBegan("starting Spark"))
        guests = connect_settings(settings.warehouse) if has_guests else None
        # Here, where a signal breaks a download off; and dbt changes the folder meanwhile.
        require_java()
        jars = require_jars(settings.jars, Location.of(settings.farthest).scheme)
        prepare_environment(settings)
        folder = Path.cwd()
        # While there is one thread: its modules import each other in a circle.
        import_module("pyspark.sql")
        starting = thread.submit(
            open_session, settings, guests, lock=lock, jars=jars, is_short=is_short, folder=folder
        )
        try:
            meanwhile()
            runtime = load_runtime(settings, starting.result, report, builds=builds)
            if has_guests:
                # Only now: a guest must find every table registered.
                lock.announce_connect(connect_port(runtime.spark))
            yield runtime
        finally:
            if starting.exception() is None:
                starting.result().stop()


def check_project(settings: Settings) -> None:
    """Check profile and YAML before anything is started or made.

    dbt keeps what it has parsed, so that reading the project beside Spark takes less.

    Raises:
        ConfigError: DBT_PROJECT_NOT_FOUND, PROFILES_NOT_FOUND, PROFILE_NOT_SESSION and the like;
            DBT_FAILED; every mistake in the project's settings for livemart at once.
    """
    _, mistakes = open_dbt(settings, None).parse()
    if mistakes:
        raise ConfigErrors(mistakes)


def open_dbt(
    settings: Settings,
    session: SessionFactory | None,
    progress: Callable[[NodeProgress], None] | None = None,
) -> Dbt:
    """Return the dbt of a run: its project, target and variables."""
    from livemart.project.dbt import Dbt

    return Dbt(
        settings.project_dir,
        settings.profiles_dir,
        target=settings.target,
        vars=settings.vars,
        warehouse=settings.warehouse,
        target_dir=target_folder(settings),
        session=session,
        progress=progress,
        is_table=Warehouse(settings.warehouse).exists,
    )


def compiling_session(
    start: SessionFactory,
    warehouse: StoragePlace,
    versions: Callable[[], Mapping[str, int]] = lambda: {},
    before: Callable[[], None] = lambda: None,
) -> SessionFactory:
    """Return a function that gives dbt a session, for models that ask for tables while compiling.

    Args:
        start: gives the engine's session.
        warehouse: holds the tables.
        versions: of tables, by relation, if not the newest are asked.
        before: called before dbt uses the session in a command, whose statements may write.
    """
    from livemart.spark.catalog import register

    @cache
    def registered() -> SparkSession:
        spark = start()
        register(spark, warehouse, versions=versions())
        return spark

    def session() -> SparkSession:
        before()
        return registered()

    return session


def load_plans(
    settings: Settings, report: ReportEvent
) -> tuple[Project, ProjectPlans, frozenset[str] | None]:
    """Return the project, its plans, and the unique ids that the settings select (None: all).

    Spark is started only for a project that asks it something while it is compiled, or holds SQL
    that the planner cannot read.

    Raises:
        ConfigError: whatever is wrong with the project.
        PlanError: SYNTAX_ERROR.
    """
    from livemart.plan.project_plans import ProjectPlans
    from livemart.run.syntax import refuse_syntax_errors
    from livemart.spark.session import open_session

    with ExitStack() as stack:

        @cache
        def start() -> SparkSession:
            report(StepBegan("starting Spark, for a model that only Spark can compile or read"))
            spark = open_session(settings, is_short=True)
            stack.callback(spark.stop)
            return spark

        session = compiling_session(start, settings.warehouse)
        dbt = open_dbt(settings, session)
        report(StepBegan("reading the project"))
        project = dbt.load()
        refuse_syntax_errors(project, session)
        selection = settings.selection
        chosen = dbt.selection(selection) if selection else None
    plans = ProjectPlans(project, Warehouse(settings.warehouse).column_kinds)
    return project, plans, chosen
