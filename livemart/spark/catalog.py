"""Registers every table of the warehouse in Spark's catalog, which is in memory.

Used after each start of a session. dbt and ad-hoc SQL then find tables and views by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.delta.warehouse import Warehouse
from livemart.project.graph import Project
from livemart.project.session_spec import PLAIN, function_schema
from livemart.project.sessions import session_of
from livemart.spark.view_columns import ProjectView, ViewColumns
from livemart.spark_sql import literal, quoted
from livemart.state.atomic_files import read_state_file, write_state_file
from livemart.state.places import StateFolder
from livemart.storage.location import Location, StoragePlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# In Spark 4.2: the number of arguments of the constructor of a catalog's table.
_TABLE_FIELDS = 22
_STORAGE_FIELDS = 7


def register(
    spark: SparkSession,
    warehouse: StoragePlace,
    project: Project | None = None,
    *,
    remakes_views: bool = False,
    versions: Mapping[str, int] | None = None,
) -> list[str]:
    """Register each Delta table below `warehouse`, then the views.

    A table is `warehouse/<schema>/<identifier>`; a folder whose name starts with `_` or `.` holds
    none. The views are those of `project`, or, without one, those that `save_views` kept. A folder
    that is called a view now is left alone: its rows are from before.

    Returns:
        The relations (`schema.identifier`) that were not registered before, tables first.
    """
    root, catalogued = Location.of(warehouse), Warehouse(warehouse)
    saved = _saved_views(warehouse)
    functions = _saved_functions(warehouse) if project is None else project.functions
    views = saved if project is None else _project_views(project)
    registered = _registered(spark)
    tables = [
        relation
        # Not a log without a commit, which a build that was killed may leave: Spark refuses it.
        for relation in catalogued.relations()
        if relation not in views
    ]
    schemas = {relation.partition(".")[0] for relation in (*tables, *views)}
    schemas |= {name for statement in functions if (name := function_schema(statement)) is not None}
    if project is not None:
        schemas |= {model.schema.lower() for model in project.models.values()}
        schemas |= {source.schema.lower() for source in project.sources.values()}
        schemas.add(project.target_schema.lower())
    for schema in sorted(schemas - registered.keys()):
        location = literal((root / schema).spark_url)
        spark.sql(f"create database if not exists {quoted(schema)} location {location}")
    added = [relation for relation in tables if not _is_in(registered, relation)]
    pinned = versions or {}
    _register_tables(spark, catalogued, [relation for relation in added if relation not in pinned])
    for relation in added:
        if relation in pinned:
            rows = f"select * from {catalogued.sql_at(relation, pinned[relation])}"
            spark.sql(f"create view {name_of(relation)} as {rows}")
    columns = ViewColumns(spark, warehouse, views, tables, functions)
    unchanged = {
        relation
        for relation, view in views.items()
        if _is_in(registered, relation) and saved.get(relation) == view
    }
    begins = not (pinned or any(registered.values()))
    digests: dict[str, str | None] = {}
    if not (begins or pinned):
        digests = columns.digests(views if remakes_views else views.keys() - unchanged)
    if remakes_views:
        unchanged = {name for name in unchanged if columns.is_made(name, digests.get(name))}
    new = _register_views(
        spark,
        {relation: view for relation, view in views.items() if relation not in unchanged},
        columns if begins else None,
        functions,
    )
    columns.note(columns.kept_digests(new) if begins else {view: digests.get(view) for view in new})
    added += new
    if project is not None:
        write_state_file(StateFolder(warehouse).views, views)
        if functions or _saved_functions(warehouse):
            write_state_file(StateFolder(warehouse).functions, functions)
    return added


def save_views(spark: SparkSession, warehouse: StoragePlace) -> None:
    """Keep the SQL of the views as the catalog has them, for a `register` that knows no project.

    Needs a session with its own JVM, not one of Spark Connect.
    """
    catalog = _external(spark)
    views = _saved_views(warehouse)
    for schema, names in sorted(_registered(spark).items()):
        for name in sorted(names):
            text = catalog.getTable(schema, name).viewText()
            known_view = views.pop(f"{schema}.{name}", None)
            if text.isDefined():
                session = PLAIN if known_view is None else known_view.session
                views[f"{schema}.{name}"] = ProjectView(text.get(), session)
    write_state_file(StateFolder(warehouse).views, views)


def _register_tables(spark: SparkSession, warehouse: Warehouse, relations: Sequence[str]) -> None:
    """Make the entries that `create table ... using delta location ...` makes, but read no log.

    The statement reads it in a Spark job: in a process of seconds, most of what one waits for.
    """
    if not relations:
        return
    jvm: Any = spark._jvm
    catalyst, some = jvm.org.apache.spark.sql.catalyst, jvm.scala.Some
    table, storage = catalyst.catalog.CatalogTable, catalyst.catalog.CatalogStorageFormat.empty()
    # Scala's defaults; of the table the first four have none, and the fifth is the provider.
    optional = [getattr(table, f"apply$default${n}")() for n in range(6, _TABLE_FIELDS + 1)]
    stored = [getattr(storage, f"copy$default${n}")() for n in range(2, _STORAGE_FIELDS + 1)]
    # Looked up once: each name is a call, and waits its turn while another thread makes plans.
    identifier, make, to_uri = (
        catalyst.TableIdentifier,
        table.apply,
        catalyst.catalog.CatalogUtils.stringToURI,
    )
    kind, catalog = catalyst.catalog.CatalogTableType.EXTERNAL(), some("spark_catalog")
    no_columns, provider = jvm.org.apache.spark.sql.types.StructType(), some("delta")
    external = _external(spark)
    for relation in relations:
        schema, name = relation.split(".", 1)
        location = warehouse.location(relation)
        uri = location.spark_url if location.scheme else f"file:{Path(location.url).absolute()}"
        entry = make(
            # As Spark looks for it; the folder of somebody else may have capitals.
            identifier(name.lower(), some(schema.lower()), catalog),
            kind,
            storage.copy(some(to_uri(uri)), *stored),
            no_columns,
            provider,
            *optional,
        )
        external.createTable(entry, True)


def _register_views(
    spark: SparkSession,
    views: Mapping[str, ProjectView],
    columns: ViewColumns | None,
    functions: Sequence[str] = (),
) -> list[str]:
    """Make `views`, in rounds, as one may read another; each in its session, which Spark keeps.

    A view or a function whose inputs do not exist yet is left to the build that makes them.

    Args:
        columns: of views, from an earlier session; None if this one has begun before.
        functions: the statements that make them; views may call them, and they may read views.
    """
    from pyspark.errors import AnalysisException

    entered = [relation for relation in views if columns and columns.enter(relation)]
    added: list[str] = []
    waiting = {relation: view for relation, view in views.items() if relation not in entered}
    unmade = list(functions)
    while waiting or unmade:
        created = []
        new_functions = [statement for statement in unmade if _is_made(spark, statement)]
        unmade = [statement for statement in unmade if statement not in new_functions]
        for relation, view in waiting.items():
            try:
                session_of(spark, view.session).sql(
                    f"create or replace view {name_of(relation)} as {view.sql}"
                )
            except AnalysisException:
                continue
            created.append(relation)
        if not (created or new_functions):
            break
        added += created
        waiting = {relation: view for relation, view in waiting.items() if relation not in created}
    if columns and added:
        columns.keep(added)
    return entered + added


def _is_made(spark: SparkSession, statement: str) -> bool:
    """Make a function; return False if a function or a table that it names does not exist yet."""
    from pyspark.errors import AnalysisException

    try:
        spark.sql(statement)
    except AnalysisException:
        return False
    return True


def name_of(relation: str) -> str:
    """Quote `schema.identifier`.

    >>> name_of("raw.orders")
    '`raw`.`orders`'
    """
    return ".".join(map(quoted, relation.split(".", 1)))


def _project_views(project: Project) -> dict[str, ProjectView]:
    return {
        model.relation: ProjectView(model.compiled_code, model.session.of_a_view)
        for model in project.models.values()
        if model.materialized == "view" and model.compiled_code is not None
    }


def _saved_views(warehouse: StoragePlace) -> dict[str, ProjectView]:
    # Not kept yet, or torn: the next process that knows the project keeps them again.
    return read_state_file(StateFolder(warehouse).views, dict[str, ProjectView]) or {}


def _saved_functions(warehouse: StoragePlace) -> tuple[str, ...]:
    return read_state_file(StateFolder(warehouse).functions, tuple[str, ...]) or ()


def _is_in(registered: Mapping[str, set[str]], relation: str) -> bool:
    schema, _, identifier = relation.partition(".")
    return identifier.lower() in registered.get(schema.lower(), ())


def _registered(spark: SparkSession) -> dict[str, set[str]]:
    """Return the tables and views of each database; the statements take a second of a new JVM."""
    external = _external(spark)
    databases = external.listDatabases().mkString("\n").split("\n")
    return {
        schema: set(filter(None, external.listTables(schema).mkString("\n").split("\n")))
        for schema in databases
    }


def _external(spark: SparkSession) -> Any:
    """Return the JVM's object that holds the entries of the catalog."""
    jvm_session: Any = spark._jsparkSession
    return jvm_session.sessionState().catalog().externalCatalog()
