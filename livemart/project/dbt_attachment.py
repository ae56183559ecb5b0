"""Attaches livemart to the dbt-spark of this process: connections, macros, every mistake at once.

Used by `Dbt` for one invocation at a time, and for good by plain dbt: in a prepared terminal all of
it, in any other the clock's macros alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from livemart.project.cursors import Connection, SessionFactory, SparkCursor
from livemart.project.questions import QuestionLog, columns_question, relation_question
from livemart.storage.location import Location, StoragePlace

SPARK_MACROS = Path(__file__).with_name("spark_macros")
CLOCK_MACROS = Path(__file__).with_name("clock_macros")
CLOCK_PACKAGE = "livemart_clock"
_SPARK_PACKAGE = "livemart_spark"
ENGINE_PACKAGES = frozenset({CLOCK_PACKAGE, _SPARK_PACKAGE})
_CLOCK_NAMES = ("as_of", "pane_start", "window_start")
_WAREHOUSE = "LIVEMART_WAREHOUSE"  # read by the macros
# Settings that dbt reads from the environment as if they were flags. They would leave out rows or
# nodes of a mart, or take them from another one.
_NARROWING = (
    *("DEFER", "DEFER_STATE", "DEFER_TO_STATE", "FAVOR_STATE", "FAVOR_STATE_MODE"),
    *("STATE", "ARTIFACT_STATE_PATH", "EMPTY", "SAMPLE", "EVENT_TIME_START", "EVENT_TIME_END"),
    *("RESOURCE_TYPES", "EXCLUDE_RESOURCE_TYPES", "INDIRECT_SELECTION"),
)
# Whose attribute it is, its name, and the value in its place.
Replacement = tuple[Any, str, object]


@contextmanager
def attached(
    connection: Connection,
    warehouse: StoragePlace | None,
    questions: QuestionLog,
    before_compile: Callable[[Any], None] | None = None,
    only: Collection[str] | None = None,
    others: Sequence[Replacement] = (),
) -> Iterator[None]:
    """Let dbt-spark open `connection`, know livemart's macros, and report every compile error.

    A model of strategy microbatch is one select like any other: dbt would cut it into batches by
    the time of day. If a default selector or the environment asks dbt for fewer rows or nodes, it
    is ignored.

    Args:
        connection: is opened for every node.
        before_compile: is called with dbt's task before the first node is compiled.
        only: unique ids of the nodes that dbt works on, if not those that its arguments select: a
            selector cannot name every node.
        others: what else replaces dbt's own.
    """
    from dbt.adapters.spark import session as spark_session
    from dbt.adapters.spark.relation import SparkRelation
    from dbt.config.project import Project
    from dbt.contracts.graph.manifest import Manifest
    from dbt.graph.selector import NodeSelector
    from dbt.parser.manifest import ManifestLoader
    from dbt.task.compile import CompileTask

    _know_all()
    replacements: list[Replacement] = [
        (spark_session, "Connection", connection),
        # dbt-spark refuses a database without a word on its place: `database_mistakes` has it.
        (SparkRelation, "__post_init__", lambda relation: None),
        (Manifest, "use_microbatch_batches", lambda *_, **__: False),
        (Project, "get_default_selector_name", lambda _: None),
        (ManifestLoader, "skip_partial_parsing_because_of_macros", _reading_all(ManifestLoader)),
        (CompileTask, "raise_on_first_error", lambda task: False),
        (CompileTask, "_mark_dependent_errors", _going_on_after_errors(CompileTask)),
        *_taking_down(questions),
        *others,
    ]
    if only is not None:
        replacements.append((NodeSelector, "get_selected", lambda *_, **__: set(only)))
    if before_compile is not None:
        replacements.append((CompileTask, "before_run", _calling(before_compile, CompileTask)))
    narrowing = (f"{prefix}{name}" for prefix in ("DBT_", "DBT_ENGINE_") for name in _NARROWING)
    names = (_WAREHOUSE, *narrowing)
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    if warehouse is not None:
        os.environ[_WAREHOUSE] = Location.of(warehouse).spark_url
    elif _WAREHOUSE in before:
        os.environ[_WAREHOUSE] = before[_WAREHOUSE]
    try:
        with _replaced(replacements):
            yield
    finally:
        os.environ.pop(_WAREHOUSE, None)
        os.environ.update(before)


@contextmanager
def every_parse_error() -> Iterator[list[Exception]]:
    """Let dbt read all files, and yield the list of their errors; dbt stops at the first.

    It stops after a step that has errors: the next one would complain of what they leave out. The
    steps are YAML and macros, then nodes, then what nodes name, then their descriptions. In YAML
    each entry, test and hook is read by itself.
    """
    from dbt.parser import (
        base,
        docs,
        fixtures,
        functions,
        generic_test,
        hooks,
        macros,
        read_files,
        schema_generic_tests,
        schema_yaml_readers,
        schemas,
        snapshots,
        sources,
        unit_tests,
    )
    from dbt.parser import manifest as parsed

    errors: list[Exception] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            try:
                return function(*arguments, **options)
            except Exception as error:
                errors.append(error)
                for node in (*arguments, *options.values()):
                    # dbt disables a node whose names it does not find: no reader would find it.
                    config: Any = getattr(node, "config", None)
                    if hasattr(config, "enabled"):
                        config.enabled = True

        return noted

    def ending(step: Callable[..., Any]) -> Callable[..., Any]:
        def begun(*arguments: Any, **options: Any) -> Any:
            if errors:
                # Not one of them: it would lead to this place instead of to its file.
                raise RuntimeError("dbt cannot read all files")
            return step(*arguments, **options)

        return begun

    def each_entry(parse: Callable[..., Any]) -> Callable[..., Any]:
        def read(reader: Any) -> Any:
            block, entries = reader.yaml, reader.yaml.data.get(reader.key)
            # dbt itself only warns of a wrong entry of `data_tests`.
            if not isinstance(entries, list) or reader.key == "data_tests":
                return parse(reader)
            whole = schemas.ParseResult()
            for entry in entries:
                reader.yaml = replace(block, data={reader.key: [entry]})
                if (result := noting(parse)(reader)) is not None:
                    whole.test_blocks += result.test_blocks
                    whole.versioned_test_blocks += result.versioned_test_blocks
            reader.yaml = block
            return whole

        return read

    def each_test(find: Callable[..., Any]) -> Callable[..., Any]:
        # One that dbt cannot read is None.
        read = noting(lambda *arguments: [it for it in find(*arguments) if it is not None])
        return lambda *arguments: read(*arguments) or []

    parsers: tuple[Any, ...] = (
        *(base.SQLParser, docs.DocumentationParser, fixtures.FixtureParser),
        *(functions.FunctionParser, generic_test.GenericTestParser, macros.MacroParser),
        *(schemas.SchemaParser, snapshots.SnapshotParser),
    )
    loader: Any = parsed.ManifestLoader
    names = (
        *("_process_sources_for_node", "_process_sources_for_exposure", "_process_refs"),
        *("_process_docs_for_node", "_process_docs_for_source", "_process_docs_for_macro"),
        *("_process_docs_for_exposure", "_process_docs_for_metrics"),
        *("_process_docs_for_semantic_model", "_process_docs_for_saved_query"),
        *("_process_metrics_for_node", "_process_functions_for_node", "_process_metric_node"),
        *("invalid_target_fail_unless_test", "process_models_for_unit_test"),
    )
    checks = (
        *("check_valid_group_config_node", "check_valid_access_property"),
        *("check_valid_snapshot_config", "check_valid_microbatch_config"),
    )
    readers: tuple[Any, ...] = (
        *(schemas.SourceParser, schemas.PatchParser, unit_tests.UnitTestParser),
        *(schema_yaml_readers.ExposureParser, schema_yaml_readers.MetricParser),
        *(schema_yaml_readers.GroupParser, schema_yaml_readers.SemanticModelParser),
        schema_yaml_readers.SavedQueryParser,
    )
    steps = (
        *("build_macro_resolver", "cleanup_disabled", "process_unit_tests", "process_metrics"),
        "write_manifest_for_partial_parse",
    )
    places = [
        *((parser, "parse_file") for parser in parsers),
        *((parsed, name) for name in names),
        *((loader, name) for name in checks),
        (read_files, "load_source_file"),
        (hooks.HookParser, "parse_node"),
        (schema_generic_tests.SchemaGenericTestParser, "parse_test"),
        (sources.SourcePatcher, "parse_source_test"),
    ]
    patcher: Any = sources.SourcePatcher
    replacements = [
        *((owner, name, noting(getattr(owner, name))) for owner, name in places),
        *((reader, "parse", each_entry(reader.parse)) for reader in readers),
        (patcher, "get_source_tests", each_test(patcher.get_source_tests)),
        *((loader, name, ending(getattr(loader, name))) for name in steps),
    ]
    with _replaced(replacements):
        yield errors


def attach(session: SessionFactory, warehouse: StoragePlace) -> None:
    """Let the dbt of this process work on `warehouse` through `session`, until it ends."""
    from dbt.adapters.spark import session as spark_session
    from dbt_common.context import get_invocation_context

    _know_all()
    # dbt has copied the environment before it calls a plugin.
    environment: Any = get_invocation_context().env
    environment[_WAREHOUSE] = Location.of(warehouse).spark_url
    module: Any = spark_session
    module.Connection = Connection(lambda parameters: SparkCursor(session, parameters))


def is_attached() -> bool:
    """Return True if the dbt of this process opens livemart's connections already."""
    from dbt.adapters.spark import session as spark_session

    return isinstance(spark_session.Connection, Connection)


def know_clock() -> None:
    """Let the dbt of this process know the clock's macros and its source, in projects on Spark.

    A project's own macros of these names, and its own declaration of the source, come first.
    """
    from dbt.parser.partial import special_override_macros

    _know(CLOCK_PACKAGE, CLOCK_MACROS)
    # dbt keeps a parsed model when a macro is added that hides one of an internal package, except
    # for these names: then it reads the whole project again.
    special_override_macros.extend(
        name for name in _CLOCK_NAMES if name not in special_override_macros
    )


def _know_all() -> None:
    know_clock()
    _know(_SPARK_PACKAGE, SPARK_MACROS)


def _know(package: str, folder: Path) -> None:
    """Add a package to those that come with dbt-spark, once."""
    from dbt.adapters.factory import FACTORY

    factory: Any = FACTORY
    if package in factory.packages:
        return
    factory.packages[package] = folder
    names = factory.get_adapter_package_names
    # The first of dbt's internal packages wins; the project's own macros beat them all.
    factory.get_adapter_package_names = lambda name: (
        [package, *names(name)] if name == "spark" else names(name)
    )


def current_node() -> str | None:
    """Return the unique id of the node that dbt runs in this thread, None if it is none."""
    from dbt_common.events.contextvars import get_node_info

    node: str | None = get_node_info().get("unique_id")
    return node


def _going_on_after_errors(kind: Any) -> Callable[..., None]:
    """Return replacements by which dbt compiles readers of a node that it cannot compile."""
    mark = kind._mark_dependent_errors

    def marked(task: Any, *arguments: Any) -> None:
        if type(task) is not kind:
            mark(task, *arguments)

    return marked


def _reading_all(kind: Any) -> Callable[[Any], bool]:
    """Return a replacement by which dbt reads all files again if one was added or deleted.

    dbt 1.11.16 would read the new file alone, without its entry in YAML that has not changed. The
    node would have no contract, description or data tests (dbt-core 10461).
    """
    is_all = kind.skip_partial_parsing_because_of_macros

    def is_all_read(loader: Any) -> bool:
        files = loader.partial_parser.file_diff
        changes = ("added", "deleted", "deleted_schema_files")
        return any(files[change] for change in changes) or bool(is_all(loader))

    return is_all_read


def _taking_down(log: QuestionLog) -> list[Replacement]:
    """Return replacements by which `log` knows the compiled node and its questions to the catalog.

    Nodes get the run of the log.

    dbt's own list of relations is passed over: it is not that of this moment.
    """
    from dbt import compilation
    from dbt.adapters.spark.impl import SparkAdapter
    from dbt.task import run as run_task

    adapters: Any = SparkAdapter
    module: Any = compilation
    compiler: Any = module.Compiler
    compile_code = compiler._compile_code
    create_context = module.generate_runtime_model_context
    get_relation = adapters.get_relation
    get_columns, list_relations = adapters.get_columns_in_relation, adapters.list_relations

    def compiled(self: Any, node: Any, *arguments: Any, **options: Any) -> Any:
        # Also a table that a unit test gives in the place of a model's input is ephemeral.
        is_table = log.hides_own_table(node.config) and not node.is_ephemeral_model
        relation = f"{node.schema}.{node.alias}".lower() if is_table else ""
        with log.compiling(node.unique_id, relation):
            return compile_code(self, node, *arguments, **options)

    def context(node: Any, *arguments: Any, **options: Any) -> Any:
        values = create_context(node, *arguments, **options)
        if str(node.resource_type) == "operation":
            # A hook of the run: what it writes says when it was done.
            log.run.name_in(values)
        else:
            log.run.put_into(values)
        return values

    def materializing_context(*arguments: Any, **options: Any) -> Any:
        values = create_context(*arguments, **options)
        log.run.name_in(values)
        return values

    def relation(self: Any, database: str, schema: str, identifier: str) -> Any:
        if (node := log.node) is None:
            return get_relation(self, database, schema, identifier)
        name = f"{schema}.{identifier}".lower()
        if name == node.relation:
            return None
        with node.answering():
            answer = get_relation(self, database, schema, identifier)
        kind = str(answer.type or "") if answer is not None else None
        node.note(relation_question(name, kind))
        return answer

    def relations(self: Any, database: str, schema: str) -> Any:
        if log.node is None:
            return list_relations(self, database, schema)
        of_schema = self.Relation.create(
            database=None, schema=schema, identifier="", quote_policy=self.config.quoting
        ).without_identifier()
        return self.list_relations_without_caching(of_schema)

    def columns(self: Any, relation: Any) -> Any:
        if (node := log.node) is None:
            return get_columns(self, relation)
        name = f"{relation.schema}.{relation.identifier}".lower()
        if name == node.relation:
            return []
        with node.answering():
            answer = get_columns(self, relation)
        node.note(columns_question(name, ((str(it.name), str(it.data_type)) for it in answer)))
        return answer

    return [
        (compiler, "_compile_code", compiled),
        (module, "generate_runtime_model_context", context),
        (run_task, "generate_runtime_model_context", materializing_context),
        (adapters, "get_relation", relation),
        (adapters, "list_relations", relations),
        (adapters, "get_columns_in_relation", columns),
    ]


def _calling(action: Callable[[Any], None], kind: Any) -> Callable[..., Any]:
    """Return replacements by which tasks of a kind first call a function, connected."""
    before_run = kind.before_run

    def run(task: Any, adapter: Any, selected: Any) -> Any:
        status = before_run(task, adapter, selected)
        with adapter.connection_named("master"):
            action(task)
        return status

    return run


@contextmanager
def _replaced(replacements: Sequence[Replacement]) -> Iterator[None]:
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in replacements]
    try:
        for replacement in replacements:
            setattr(*replacement)
        yield
    finally:
        for original in before:
            setattr(*original)
