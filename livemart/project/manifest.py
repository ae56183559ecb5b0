"""Builds the project graph from dbt's manifest: keys, policies, sources, tests.

Used by `Dbt` alone, so that no other module depends on the shape of the manifest. Models come in
dependency order; mistakes are collected, not raised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, cast, get_args

from livemart.errors import ConfigError
from livemart.project.dbt_attachment import CLOCK_PACKAGE
from livemart.project.declared.data_test_conditions import condition_mistakes
from livemart.project.declared.foreign_settings import database_mistakes, grant_mistakes
from livemart.project.declared.materializations import materialization_mistakes
from livemart.project.declared.model_page import parse_page
from livemart.project.declared.model_sql import sql_mistakes
from livemart.project.declared.name_clashes import names_in_two_cases, table_mistakes
from livemart.project.declared.node_files import NodeFiles
from livemart.project.declared.partition_columns import BINARY_HINT, lost_bytes
from livemart.project.declared.policy import parse_model_policy
from livemart.project.declared.seed_files import read_seed, seed_file_mistakes
from livemart.project.declared.seed_types import seed_type_mistakes
from livemart.project.declared.seeded_sources import order_behind_seeds, seeds_by_source
from livemart.project.declared.setting_places import setting_place
from livemart.project.declared.table_properties import property_mistakes, session_mistakes
from livemart.project.declared.time_zones import zone_mistakes
from livemart.project.declared.usual_tests import is_usual
from livemart.project.declared_columns import ONE_COLUMN, STORABLE, is_storable
from livemart.project.graph import (
    STORED,
    Column,
    DataTest,
    Exposure,
    Materialized,
    Model,
    Project,
    SourceTable,
    StreamSpec,
)
from livemart.project.hooks.dbt_hooks import NO_HOOKS, Hooks
from livemart.project.hooks.filled_tables import with_filled_tables
from livemart.project.node_sessions import with_sessions
from livemart.project.questions import Question
from livemart.project.sources import parse_source_spec
from livemart.project.yaml_places import (
    Mistakes,
    Where,
    livemart_misspelled,
    node_lines,
    repeated_columns,
)
from livemart.spark_sql import unquoted

_NODE_KINDS = ("model", "seed", "snapshot")
_SPARK_STRATEGIES = (None, "append", "merge", "insert_overwrite", "microbatch")
_COMBINATION_TESTS = ("unique_combination", "unique_combination_of_columns")
_COMBINATION_ARGUMENTS = ("combination_of_columns", "column_names", "columns")


def read_manifest(
    manifest: Any,
    compiled: Mapping[str, str],
    *,
    directory: str,
    target_schema: str,
    parameters: Mapping[str, str] | None = None,
    hooks: Hooks = NO_HOOKS,
    questions: Mapping[str, tuple[Question, ...]] | None = None,
    refused: Mapping[str, str] | None = None,
    samples: Mapping[str, tuple[str, ...]] | None = None,
    is_table: Callable[[str], bool] = lambda relation: False,
) -> tuple[Project, list[ConfigError]]:
    """Build the project graph from dbt's parsed manifest.

    Args:
        manifest: dbt's `Manifest`.
        compiled: SQL of each compiled node, by unique id.
        target_schema: schema of the dbt profile's target.
        parameters: that the profile sets before each statement.
        questions: that nodes asked while they were compiled, by unique id.
        refused: dbt's message for each node that it could not compile, by unique id.
        samples: SQL in fixed runs of each node that may differ from run to run, by unique id.
        is_table: whether the warehouse has a table of this name.

    Returns:
        The project, and every mistake found in what `meta.livemart`, partitions and properties of
        tables say.
    """
    errors: list[ConfigError] = []
    refused, samples = refused or {}, samples or {}
    enabled = _enabled(manifest)
    # A seed is the source that it fills.
    seeds = seeds_by_source(enabled, manifest.sources)
    files = NodeFiles(Path(directory), str(manifest.metadata.project_name))
    nodes = {key: node for key, node in enabled.items() if _kind(node) in _NODE_KINDS}
    read = {key for node in nodes.values() for key in _parents(node)}
    # dbt passes over a blank file, and only a reader of its table fails.
    nodes = {key: node for key, node in nodes.items() if key in read or not node.empty}
    tests = {
        key: replace(
            _data_test(node, compiled.get(key) or "", _inputs(node, seeds), files),
            uncompiled=refused.get(key, ""),
            in_other_runs=_differing(compiled.get(key), samples.get(key, ())),
        )
        for key, node in sorted(enabled.items())
        if _kind(node) == "test"
    }
    tests_of: dict[str, list[DataTest]] = {}
    for test in tests.values():
        if test.attached_to is not None and not manifest.nodes[test.unique_id].config.where:
            tests_of.setdefault(test.attached_to, []).append(test)
    disabled = {key: nodes[0] for key, nodes in manifest.disabled.items()}
    disabled_seeds = seeds_by_source(disabled, manifest.sources)
    sources: dict[str, SourceTable] = {}
    for key, source in sorted(manifest.sources.items()):
        if key in seeds:
            continue
        if source.package_name == CLOCK_PACKAGE and not _is_read(key, enabled, manifest.exposures):
            # Else a project that never asks for the time would be refreshed at each tick.
            continue
        sources[key], mistakes = _source(source, files)
        if key in disabled_seeds:
            seed = disabled[disabled_seeds[key]]
            sources[key] = replace(sources[key], disabled_seed=files.of(seed))
        errors.extend(mistakes)
    models: dict[str, Model] = {}
    for key in _in_order(nodes, files):
        models[key], mistakes = _model(nodes[key], compiled.get(key), tests_of.get(key, []), files)
        models[key] = replace(
            models[key],
            depends_on=() if _kind(nodes[key]) == "seed" else _inputs(nodes[key], seeds),
            uncompiled=refused.get(key, ""),
            in_other_runs=_differing(compiled.get(key), samples.get(key, ())),
        )
        errors.extend(mistakes)
    errors.extend(table_mistakes(models.values(), sources.values()))
    errors.extend(database_mistakes(manifest, files))
    errors.extend(grant_mistakes(manifest, nodes.values(), files))
    errors.extend(materialization_mistakes(manifest, nodes.values(), files))
    exposures = {}
    for key, exposure in sorted(manifest.exposures.items()):
        exposures[key] = _exposure(exposure)
        errors.extend(_exposure_mistakes(exposure, files))
    project = Project(
        name=str(manifest.metadata.project_name),
        directory=directory,
        target_schema=target_schema,
        sources=sources,
        models=models,
        tests=tests,
        exposures=exposures,
        questions=questions or {},
    )
    inlined, asking = project.inlined(), {*project.questions}
    asking |= project.inlined(asking)
    for key, model in models.items():
        language = getattr(nodes[key], "language", "sql")
        is_read = model.materialized != "ephemeral" or key in inlined
        errors += sql_mistakes(model, language, has_asked=key in asking, is_read=is_read)
    errors += condition_mistakes(manifest, project, files)
    errors += session_mistakes(parameters or {}, hooks)
    errors += zone_mistakes(parameters or {}, hooks.placed())
    project = with_sessions(project, parameters or {}, hooks)
    return with_filled_tables(project, hooks, is_table), errors


def primary_key(node: Any, tests: Iterable[DataTest]) -> tuple[str, ...]:
    """Return the columns that identify a row of `node`, or an empty tuple.

    A declared primary key counts first, then the first column that is unique and not null, then a
    tested combination of columns. dbt's own `primary_key` is not used: it also takes a unique
    column that may be NULL, joins two keys into one, and believes disabled tests. A test of
    severity `warn`, or with a `where`, proves nothing about all rows; the caller leaves out the
    latter. Nor does one with a `fail_calc`, or whose SQL asks something else than its name says.
    """
    for constraint in getattr(node, "constraints", ()):
        if constraint.type == "primary_key" and constraint.columns:
            return tuple(map(unquoted, constraint.columns))
    for name, column in node.columns.items():
        if any(constraint.type == "primary_key" for constraint in column.constraints):
            return (name,)
    proven = [
        test
        for test in tests
        if test.severity == "error" and test.error_if == "!= 0" and test.fail_calc == "count(*)"
        if test.is_usual
    ]
    unique = [_bare(test.column_name) for test in proven if test.kind == "unique"]
    not_null = {_bare(test.column_name) for test in proven if test.kind == "not_null"}
    declared = [name.lower() for name in node.columns]
    keys = [name for name in unique if name in not_null]
    if keys:
        return (min(keys, key=lambda name: declared.index(name) if name in declared else 0),)
    combinations = [
        tuple(_bare(str(column)) for column in _combination(test))
        for test in proven
        if test.kind in _COMBINATION_TESTS and _combination(test)
    ]
    return min(combinations, key=len, default=())


def _source(node: Any, files: NodeFiles) -> tuple[SourceTable, list[ConfigError]]:
    columns = _columns(node)
    all_meta = {**node.meta, **node.config.meta}
    meta = all_meta.get("livemart")
    stream: StreamSpec | None = None
    where = _where(
        node,
        f"source {node.source_name}.{node.name}",
        files,
        ("sources", node.source_name),
        ("tables", node.name),
    )
    errors = livemart_misspelled("SOURCE_KEY_UNKNOWN", all_meta, _extra(node), where)
    if meta is not None:
        event_time = node.config.event_time
        stream, mistakes = parse_source_spec(
            meta, columns, where, event_time=event_time, root=files.root
        )
        errors += mistakes
    # Those of a table that is landed were looked at with their types, but for what dbt left out.
    names, repeated = (node.columns, ()) if meta is None else ((), where.repeated)
    errors += _column_mistakes(where, names, repeated, of_source=True)
    source = SourceTable(
        unique_id=node.unique_id,
        source_name=node.source_name,
        name=node.name,
        schema=node.schema,
        identifier=node.identifier,
        columns=columns,
        event_time=node.config.event_time,
        loaded_at_field=node.config.loaded_at_field or node.loaded_at_field,
        stream=stream,
        file=files.of(node),
        is_clock=(node.source_name, node.name) == ("livemart", "clock"),
        is_watermarks=(node.source_name, node.name) == ("livemart", "watermarks"),
        freshness=_freshness(node),
    )
    return source, errors


def _freshness(node: Any) -> dict[str, Any] | None:
    """Return the criteria of a source table; dbt has some without limits where none are written."""
    criteria = getattr(node.config, "freshness", None) or node.freshness
    if not criteria or not (criteria.warn_after or criteria.error_after):
        return None
    return dict(criteria.to_dict(omit_none=False))


def _model(
    node: Any, code: str | None, tests: Sequence[DataTest], files: NodeFiles
) -> tuple[Model, list[ConfigError]]:
    config, where = node.config, _place(node, files)
    meta = {**node.meta, **config.meta}
    of_meta = _where_set(node, files, where, "meta")
    policy, errors = parse_model_policy(meta.get("livemart"), of_meta)
    errors += livemart_misspelled("MODEL_KEY_UNKNOWN", meta, _extra(node), where)
    errors += property_mistakes(
        config.get("tblproperties"), _where_set(node, files, where, "tblproperties")
    )
    partition_by = config.get("partition_by") or ()
    if isinstance(partition_by, str):
        partition_by = (partition_by,)
    columns = _columns(node)
    is_contracted = bool(config.contract.enforced)
    page, mistakes = parse_page(
        _of_page(meta), of_meta, [column.name for column in columns] if is_contracted else None
    )
    errors += mistakes
    # Without a contract YAML only describes columns, and a second description does no harm.
    repeated = where.repeated if is_contracted else ()
    errors += _column_mistakes(where, node.columns, repeated)
    if is_contracted and _materialized(node) in STORED:
        errors += _unstorable(where, node.columns)
    if is_contracted and _kind(node) == "model" and _materialized(node) != "ephemeral":
        errors += _untyped(where, columns)
    facts = config.to_dict(omit_none=True)
    if _kind(node) == "seed":
        delimiter = str(config.get("delimiter") or ",")
        facts["checksum"] = checksum = _seed_checksum(node, files.root)
        path = Path(node.root_path or files.root) / node.original_file_path
        seed = read_seed(path, delimiter, checksum)
        header = seed.header
        first_line = Where(f"{files.of(node)}:1", f"seed {node.name}")
        set_at = setting_place(node, files, "delimiter") or files.of(node)
        errors += seed_file_mistakes(seed, files.of(node), node.name, set_at)
        errors += [*_column_mistakes(first_line, header), *_unstorable(first_line, header)]
        named = {column.name.lower(): column for column in columns}
        # The table has the columns of the file, in its order; YAML may describe some of them.
        if header:
            columns = tuple(named.get(name.lower(), Column(name, None)) for name in header)
        # A folder of seeds may share them: each file has some of the columns.
        types = {
            name: kind
            for name, kind in (config.get("column_types") or {}).items()
            if not header or name in header
        }
        errors += seed_type_mistakes(types, _where_set(node, files, where, "column_types"))
        columns = _with_types(columns, types)
    model = Model(
        unique_id=node.unique_id,
        name=node.name,
        schema=node.schema,
        identifier=node.alias,
        materialized=_materialized(node),
        compiled_code=None if _kind(node) == "seed" else code,
        depends_on=(),
        columns=columns,
        primary_key=primary_key(node, tests),
        partition_by=tuple(partition_by),
        is_contracted=is_contracted,
        policy=policy.refresh,
        on_error=policy.on_error,
        ties=policy.ties,
        stages=policy.stages,
        filled_by=policy.filled_by,
        file=files.of(node),
        event_time=config.get("event_time"),
        config=facts,
        description=node.description,
        column_descriptions={
            name: column.description for name, column in node.columns.items() if column.description
        },
        raw_code="" if _kind(node) == "seed" else node.raw_code,
        page=page,
    )
    partition = _where_set(node, files, where, "partition_by")
    return model, errors + _partition_mistakes(model, partition)


def _exposure(node: Any) -> Exposure:
    kind = getattr(node.type, "value", node.type)
    label, text = node.label or "", node.description or ""
    return Exposure(node.unique_id, node.name, tuple(node.depends_on.nodes), str(kind), label, text)


def _exposure_mistakes(node: Any, files: NodeFiles) -> list[ConfigError]:
    """Find settings for livemart that an exposure has none of."""
    where = _where(node, f"exposure {node.name}", files, ("exposures", node.name))
    mistakes = Mistakes(where)
    if "livemart" in {**node.meta, **node.config.meta}:
        hint = "write `page` at the models that it names: an exposure has label and description"
        mistakes.refuse("PAGE_INVALID", ("meta",), "found settings of an exposure", hint)
    return mistakes.errors


def _of_page(meta: Mapping[str, Any]) -> object:
    """Return the settings for a page in a node's meta; None if there are none."""
    of_livemart = meta.get("livemart")
    return of_livemart.get("page") if isinstance(of_livemart, Mapping) else None


def _partition_mistakes(model: Model, where: Where) -> list[ConfigError]:
    """Find partitions of other values, where types are known before anything runs."""
    mistakes = Mistakes(where)
    if model.is_contracted or model.materialized == "seed":
        types = {column.name: column.data_type for column in model.columns}
        for finding in lost_bytes(model.partition_by, types):
            mistakes.refuse("PARTITION_VALUES_LOST", ("partition_by",), finding, BINARY_HINT)
    return mistakes.errors


def _column_mistakes(
    where: Where,
    names: Iterable[str],
    repeated: Iterable[str] = (),
    *,
    of_source: bool = False,
) -> list[ConfigError]:
    """Return a mistake for each column that no table can have beside another one.

    Args:
        names: columns, each once.
        repeated: columns that are declared more than once.
    """
    mistakes = Mistakes(where)
    findings = [
        (name, f"{name} beside {other}", ONE_COLUMN) for name, other in names_in_two_cases(names)
    ]
    hint = "keep one of them: dbt takes the last"
    findings += [(name, f"{name} more than once", hint) for name in repeated]
    for name, finding, next_step in findings:
        mistakes.refuse(
            "SOURCE_COLUMN_INVALID" if of_source else "MODEL_COLUMN_TWICE",
            ("columns", name),
            f"found {finding}",
            next_step,
        )
    return mistakes.errors


def _unstorable(where: Where, names: Iterable[str]) -> list[ConfigError]:
    """Return a mistake for each column that no table of Delta takes; dbt names a nameless one."""
    mistakes = Mistakes(where)
    for name in names:
        if name and not is_storable(name):
            hint = "rename it in the SQL or the file: " + STORABLE
            mistakes.refuse("MODEL_COLUMN_INVALID", ("columns", name), f"found `{name}`", hint)
    return mistakes.errors


def _untyped(where: Where, columns: Iterable[Column]) -> list[ConfigError]:
    """Return a mistake for each column of an enforced contract that dbt cannot compare."""
    mistakes = Mistakes(where)
    for column in columns:
        if column.data_type is None:
            hint = "write its `data_type`, which an enforced contract compares"
            path = ("columns", column.name)
            mistakes.refuse("MODEL_COLUMN_INVALID", path, "found no data_type", hint)
    return mistakes.errors


def _enabled(manifest: Any) -> dict[str, Any]:
    """Return the nodes that dbt runs, by unique id.

    dbt 1.11 moves a disabled node to `manifest.disabled`, but leaves a data test of a disabled
    model among the nodes. The test is never compiled, so it has no SQL to run.
    """
    return {key: node for key, node in manifest.nodes.items() if node.config.enabled}


def _parents(node: Any) -> Sequence[str]:
    """Return the unique ids of the nodes that a node reads, none of a seed."""
    parents: Sequence[str] = getattr(node.depends_on, "nodes", ())
    return parents


def _is_read(unique_id: str, enabled: Mapping[str, Any], exposures: Mapping[str, Any]) -> bool:
    nodes = (node for node in enabled.values() if _kind(node) != "analysis")
    readers = (*nodes, *exposures.values())
    return any(unique_id in _parents(node) for node in readers)


def _extra(node: Any) -> Mapping[str, Any]:
    """Return the keys of a node's config that dbt has no field for."""
    return getattr(node.config, "_extra", None) or {}


def _place(node: Any, files: NodeFiles) -> Where:
    kind = _kind(node)
    return _where(node, f"{kind} {node.name}", files, (f"{kind}s", node.name))


def _where(node: Any, name: str, files: NodeFiles, *steps: tuple[str, str]) -> Where:
    """Return the place of a node: the YAML file that describes it, else its own file.

    Args:
        steps: the way to it in such a file, see `node_lines`.
    """
    file = files.describing(node) or files.of(node)
    text = files.text(file)
    is_yaml = file.endswith((".yml", ".yaml"))
    if not is_yaml:
        return Where(file, name)
    return Where(file, name, node_lines(text, *steps), repeated_columns(text, *steps))


def _where_set(node: Any, files: NodeFiles, where: Where, name: str) -> Where:
    """Return the place of one of dbt's settings: the YAML of a node, its SQL or dbt_project.yml.

    A setting that a node lacks is not looked for: that would read the files of each model.
    """
    if not (node.config.get(name) or getattr(node, name, None)):
        return where
    key = ("config.meta", "livemart") if name == "meta" else (name,)
    place = None if key in where.lines else setting_place(node, files, name)
    return where if place is None else Where(place, where.node)


def _data_test(node: Any, code: str, inputs: tuple[str, ...], files: NodeFiles) -> DataTest:
    metadata = getattr(node, "test_metadata", None)
    arguments = dict(metadata.kwargs) if metadata else {}
    column_name = arguments.pop("column_name", None)
    arguments.pop("model", None)
    attached = getattr(node, "attached_node", None)
    if attached is None and metadata and len(inputs) == 1:
        attached = inputs[0]
    config = node.config
    kind = metadata.name if metadata else None
    test = DataTest(
        unique_id=node.unique_id,
        name=node.name,
        kind=kind,
        column_name=column_name if isinstance(column_name, str) else None,
        arguments=arguments,
        severity="warn" if str(config.severity).lower() == "warn" else "error",
        compiled_code=code,
        depends_on=inputs,
        attached_to=attached,
        file=files.of(node),
        warn_if=config.warn_if,
        error_if=config.error_if,
        fail_calc=config.fail_calc,
        limit=config.limit,
    )
    columns = [str(column) for column in _combination(test) or filter(None, (test.column_name,))]
    return replace(test, is_usual=is_usual(kind, columns, code))


def _differing(code: str | None, samples: tuple[str, ...]) -> tuple[str, ...]:
    """Return the SQL of a node in other runs; none if it is the same in all of them."""
    return samples if set(samples) - {code} else ()


def prepare_nodes(manifest: Any) -> None:
    """Let dbt build a seed before the readers of a source that it fills, and all tables as Delta.

    Where `file_format` is not written, dbt-spark 1.11 refuses a dbt snapshot, and stores no
    description of a column. A mapping in `partition_by` is for BigQuery: dbt-spark would take its
    keys for columns, and other adapters ignore it. A strategy of another adapter does not count, as
    a build takes the full SQL; dbt-spark would refuse the model for it.
    """
    nodes = _enabled(manifest)
    order_behind_seeds(nodes, seeds_by_source(nodes, manifest.sources))
    for node in nodes.values():
        if _kind(node) not in _NODE_KINDS:
            continue
        node.config["file_format"] = "delta"
        if isinstance(node.config.get("partition_by"), Mapping):
            node.config["partition_by"] = None
        strategy, is_kept = node.config.get("incremental_strategy"), node.config.get("full_refresh")
        if strategy not in _SPARK_STRATEGIES and is_kept is not False:
            node.config["incremental_strategy"] = None


def _inputs(node: Any, seeds: Mapping[str, str]) -> tuple[str, ...]:
    """Return the inputs of a node, with the seed in the place of a source that it fills."""
    inputs = (seeds.get(parent, parent) for parent in node.depends_on.nodes)
    return tuple(dict.fromkeys(inputs))


def _in_order(nodes: Mapping[str, Any], files: NodeFiles) -> list[str]:
    """Return unique ids, inputs first; among equals seeds, then by unique id: a stable order.

    A model may read a seed that it names without `ref`.

    Raises:
        ConfigError: DBT_FAILED, if nodes read each other.
    """
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for key in sorted(nodes):
        inputs = [] if _kind(nodes[key]) == "seed" else nodes[key].depends_on.nodes
        sorter.add(key, *(name for name in inputs if name in nodes))
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = [str(name) for name in error.args[1]]
        raise ConfigError(
            "DBT_FAILED",
            f"{files.of(nodes[cycle[0]])}: found a cycle of refs, each node before those "
            f"that read it: {' -> '.join(cycle)}",
            hint="take one `ref` of the cycle out",
        ) from error
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=lambda key: (_kind(nodes[key]) != "seed", key))
        order.extend(ready)
        sorter.done(*ready)
    return order


def _materialized(node: Any) -> Materialized:
    if _kind(node) != "model":
        return cast(Materialized, _kind(node))
    word = str(node.config.materialized)
    return cast(Materialized, word) if word in get_args(Materialized) else "other"


def _columns(node: Any) -> tuple[Column, ...]:
    return tuple(Column(name, column.data_type or None) for name, column in node.columns.items())


def _seed_checksum(node: Any, root: Path) -> str:
    """Return the hash of a seed's rows; dbt's own of a large file is only its path."""
    try:
        with (Path(node.root_path or root) / node.original_file_path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return str(node.checksum.checksum)


def _with_types(columns: tuple[Column, ...], types: Mapping[str, str]) -> tuple[Column, ...]:
    """Return a seed's columns with the data types that `column_types` gives."""
    type_by_name = {name.lower(): data_type.lower() for name, data_type in types.items()}
    named = {column.name.lower() for column in columns}
    typed = [Column(c.name, type_by_name.get(c.name.lower(), c.data_type)) for c in columns]
    return (
        *typed,
        *(Column(name, kind) for name, kind in type_by_name.items() if name not in named),
    )


def _combination(test: DataTest) -> Sequence[object]:
    for name in _COMBINATION_ARGUMENTS:
        columns = test.arguments.get(name)
        if isinstance(columns, list | tuple):
            return columns
    return ()


def _bare(name: str | None) -> str:
    return unquoted((name or "").strip('" ')).lower()


def _kind(node: Any) -> str:
    return str(node.resource_type)
