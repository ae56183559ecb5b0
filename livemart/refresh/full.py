"""Recomputes a model over all rows of its inputs.

Used for new and rebuilt models, and where no strategy holds. Only the rows that really changed are
written. Few rows are read into Arrow, as for other strategies; Spark reads more of them itself.

Before a model's table is created again, its columns are compared with its contract, as dbt does it.
Names are compared as they are written; types are equal if Spark knows them by one name:
`varchar(10)` is a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.arrow.bags import difference
from livemart.delta.partitions import without_blank_partitions
from livemart.delta.row_filter import EVERY_ROW
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit
from livemart.errors import RefreshError
from livemart.limits import FEW_STATEMENT_ROWS, ROWS_IN_MEMORY
from livemart.own_faults import is_own_fault
from livemart.plan.plan import Full, Plan
from livemart.plan.reasons import READS_A_NOTE
from livemart.plan.sql.determinism import FILE_COLUMN
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.parse import selected
from livemart.plan.stored_queries import StoredQuery
from livemart.project.graph import Model
from livemart.project.sessions import session_of
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.lane import stamped
from livemart.refresh.pinned_table import PinnedTable
from livemart.refresh.views import BatchViews
from livemart.spark.arrow_views import rows_of
from livemart.spark.differences import counted_difference, typed_columns
from livemart.spark.model_errors import ModelFailedError
from livemart.spark.quick_session import session_for
from livemart.spark.types import spark_schema
from livemart.spark_sql import quoted, unquoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# Codes for a table with features that are not known here.
_ONLY_BY_SPARK = ("TABLE_NOT_WRITABLE", "TABLE_NOT_READABLE")
# How Spark notes the type of a text that it pads or measures.
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"
# A text that the parser does not know may ask for more than the rows of a table.
_ONLY_OF_TABLES = (FILE_COLUMN, "input_file_", "window_time")


def refresh_full(
    context: BatchContext,
    query: StoredQuery,
    inputs: PinnedInputs,
    tag: Tag,
    stored: PinnedTable | None,
) -> Commit:
    """Recompute a query from all rows of its inputs; commit the difference, or replace the table.

    The table is replaced if it does not exist, or is too large for the difference to be taken in
    memory. It is also replaced if its columns have other names, types or places than the SQL yields
    now. A table with a contract has the order of the contract, as dbt makes it.

    Raises:
        ModelFailedError: the model does not keep its contract.
    """
    spark, relation = session_of(context.spark, query.session), query.relation
    text = full_query(query, inputs)
    if query.is_stage:
        _require_storable(spark, query, text)
    else:
        require_contract(spark, query.owner, text)
    failure: Exception | None = None
    if stored is not None and context.warehouse.exists(relation):
        try:
            if commit := _commit_difference(context, spark, query, inputs, tag, stored):
                return commit
        except Exception as error:
            if not is_own_fault(error):
                raise
            failure = error
    if order := _contract_order(query):
        text = selected(text, order, "__contract__")
    commit = context.lane_of(query.session).overwrite(
        relation, text, tag, partition_by=query.partition_by
    )
    if failure is not None and getattr(failure, "code", "") not in _ONLY_BY_SPARK:
        context.between_batches.own_faults.report(
            "difference_failed", failure, model=query.unique_id
        )
    return commit


def _require_storable(spark: SparkSession, query: StoredQuery, text: str) -> None:
    """Check that no column of a stage is CHAR or VARCHAR: from a table Spark may not pad it.

    Raises:
        ModelFailedError: one is.
    """
    for field in spark.sql(text).schema.fields:
        if (kind := (field.metadata or {}).get(_CHAR)) is not None:
            message = f"its stage cannot keep {field.name}, which is {kind}: cast it to string"
            raise ModelFailedError(query.owner, message)


def recompute(context: BatchContext, query: StoredQuery, inputs: PinnedInputs) -> None:
    """Compute all rows of a query and keep none, to see whether its SQL works."""
    rows = session_of(context.spark, query.session).sql(full_query(query, inputs))
    rows.write.format("noop").mode("overwrite").save()


def full_query(query: StoredQuery, inputs: PinnedInputs) -> str:
    """Return the SQL of a query over its inputs at this batch's versions."""
    return _pinned_query(query, query.plan.stamped or query.flat, inputs)


def _pinned_query(query: StoredQuery, flat: Flat | None, inputs: PinnedInputs) -> str:
    if flat is None:
        # The text could not be taken apart: its names are the catalog's, at the newest version.
        assert query.owner.compiled_code is not None
        return query.owner.compiled_code

    def pinned(occurrence: Occurrence) -> str:
        if (version := inputs.new.get(occurrence.relation)) is None:
            # Nothing of ours: Spark finds it by what was written, or says that it does not.
            return occurrence.text
        table = inputs.warehouse.sql_at(occurrence.relation, version)
        return table if asks_for_files else f"(select * from {table})"

    asks_for_files = FILE_COLUMN in flat.text.lower()
    return flat.render(pinned)


def _commit_difference(
    context: BatchContext,
    spark: SparkSession,
    query: StoredQuery,
    inputs: PinnedInputs,
    tag: Tag,
    stored: PinnedTable,
) -> Commit | None:
    """Commit the rows that differ; None if the table is to be replaced instead.

    A row that differs in its stamp alone does not.
    """
    plan = query.plan
    if not plan.stamps.keys() <= {name.lower() for name in stored.schema.names}:
        return None
    whole = stored
    if plan.stamps:
        stored = stored.without(plan.stamps)
    if stored.row_count > ROWS_IN_MEMORY:
        return None
    change = _difference(context, spark, query, inputs, stored)
    if change is None or change.num_rows > ROWS_IN_MEMORY:
        return None
    if plan.stamps:
        change = stamped(spark, plan, whole, change)
    return context.warehouse.commit(query.relation, change, tag)


def _difference(
    context: BatchContext,
    spark: SparkSession,
    query: StoredQuery,
    inputs: PinnedInputs,
    stored: PinnedTable,
) -> pa.Table | None:
    """Return the rows that differ; None if they are many, or the columns are not the table's."""
    plan = query.plan
    tables = _pinned_tables(plan, inputs)
    if tables is not None and _are_few(context, plan, stored, tables):
        try:
            return _difference_in_arrow(context, spark, query, stored, tables)
        except RefreshError as error:
            # A file shows only when it is read that Spark alone can read it.
            if error.code not in ("CDF_UNAVAILABLE", "TABLE_NOT_READABLE"):
                raise
    text = _pinned_query(query, query.flat, inputs)
    return _difference_in_spark(spark, query, text, stored, tables)


def _pinned_tables(plan: Plan, inputs: PinnedInputs) -> Mapping[str, PinnedTable] | None:
    """Return all that a query reads, by relation; None if that is not known."""
    if plan.flat is None or not inputs.new.keys() >= set(plan.flat.relations):
        return None
    return {relation: inputs.at(relation, inputs.new[relation]) for relation in plan.flat.relations}


def _are_few(
    context: BatchContext, plan: Plan, stored: PinnedTable, tables: Mapping[str, PinnedTable]
) -> bool:
    """Return True if a model and its inputs are read into Arrow, and no word asks for more.

    Spark's own first read of a table costs more after each commit than all the rest.
    """
    assert plan.flat is not None
    is_volatile = isinstance(plan.strategy, Full) and plan.strategy.is_volatile
    every = {stored.relation: stored, **tables}.values()
    return (
        context.lane != "large"
        and not is_volatile
        and not any(word in plan.flat.text.lower() for word in _ONLY_OF_TABLES)
        and not any(READS_A_NOTE in reason.message for reason in plan.reasons)
        and all(table.is_plain for table in every)
        and sum(table.row_count for table in every) <= FEW_STATEMENT_ROWS
    )


def _difference_in_arrow(
    context: BatchContext,
    spark: SparkSession,
    query: StoredQuery,
    stored: PinnedTable,
    tables: Mapping[str, PinnedTable],
) -> pa.Table | None:
    """Return the result of `_difference`, computed from rows in memory."""
    flat = query.plan.flat
    assert flat is not None
    prefix = f"__{stored.relation.replace('.', '__')}_{context.batch_id}"
    with closing(BatchViews(spark, prefix, context.between_batches.views)) as views:
        frame = views.frame(flat.over(lambda mention: views.whole(tables[mention.relation])))
        if not _is_like(frame.schema, query, stored):
            return None
        # Few rows may be joined to many; one more than is kept tells.
        rows = rows_of(frame.limit(ROWS_IN_MEMORY + 1))
        if rows.num_rows > ROWS_IN_MEMORY:
            return None
    names = {name.lower(): name for name in rows.column_names}
    new = rows.select([names[name.lower()] for name in stored.schema.names])
    new = new.rename_columns(stored.schema.names).cast(stored.schema)
    old = stored.read(EVERY_ROW).select(stored.schema.names)
    return difference(without_blank_partitions(new, list(stored.blank_columns)), old)


def _difference_in_spark(
    spark: SparkSession,
    query: StoredQuery,
    text: str,
    stored: PinnedTable,
    tables: Mapping[str, PinnedTable] | None,
) -> pa.Table | None:
    """Return the result of `_difference`, computed from tables that Spark reads."""
    if not _is_like(spark.sql(text).schema, query, stored):
        return None
    schema = stored.schema
    listed = ", ".join(quoted(name) for name in schema.names)
    part = f"select {typed_columns(schema, stored.blank_columns)} from ({text}) as q"
    sides = [(part, 0, 1), (f"select {listed} from {stored.sql}", 1, 0)]
    if query.plan.flat is not None and tables is not None:
        places = len(query.plan.flat.occurrences) + 1
        spark = session_for(spark, (stored, *tables.values()), places, [text])
    # One more than is kept: the table is replaced then.
    limit = f" limit {ROWS_IN_MEMORY + 1}"
    return rows_of(spark.sql(str(counted_difference(schema, sides)) + limit))


def _is_like(yielded: StructType, query: StoredQuery, stored: PinnedTable) -> bool:
    """Return True if a query yields the columns of a table, in their order; letter case aside."""
    new, old = (
        {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
        for schema in (yielded, spark_schema(stored.schema))
    )
    # A contract has the stamps, too, which both sides are compared without.
    order = [name.lower() for name in _contract_order(query) or new if name.lower() in new]
    return new == old and order == [*old]


def _contract_order(query: StoredQuery) -> list[str]:
    """Return the columns of the enforced contract of a model; none without one."""
    model = query.owner
    if query.is_stage or not model.is_contracted:
        return []
    return [unquoted(column.name) for column in model.columns]


def require_contract(spark: SparkSession, model: Model, query: str) -> None:
    """Check a model whose contract is enforced.

    Raises:
        ModelFailedError: naming every column that is not as the contract says.
    """
    if not model.is_contracted:
        return
    promised = ", ".join(
        f"cast(null as {column.data_type or 'void'}) as {quoted(unquoted(column.name))}"
        for column in model.columns
    )
    contract = dict(spark.sql(f"select {promised}").dtypes) if promised else {}
    if breaches := contract_breaches(contract, dict(spark.sql(query).dtypes)):
        raise ModelFailedError(
            model,
            f"{model.file}: its enforced contract is violated: {'; '.join(breaches)}",
            hint="change the model, or the columns of its contract",
        )


def contract_breaches(contract: Mapping[str, str], actual: Mapping[str, str]) -> list[str]:
    """Return the differences between two sets of columns, each a type by name."""
    breaches = []
    for name, promised in contract.items():
        if name not in actual:
            breaches.append(f"{name} ({promised}) is missing")
        elif actual[name] != promised:
            breaches.append(f"{name} is {actual[name]}, not {promised}")
    breaches += [
        f"{name} ({actual[name]}) is not in it" for name in actual.keys() - contract.keys()
    ]
    return sorted(breaches)
