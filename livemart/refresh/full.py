"""Recomputes a model over all rows of its inputs.

Used for new and rebuilt models, and where no strategy holds. Only the rows that really changed are
written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit
from livemart.limits import ROWS_IN_MEMORY
from livemart.own_faults import is_own_fault
from livemart.plan.planner import Plan
from livemart.plan.sql.determinism import FILE_COLUMN
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.project.graph import Model
from livemart.project.sessions import session_of
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.lane import stamped
from livemart.refresh.pinned_table import PinnedTable
from livemart.spark.arrow_views import rows_of
from livemart.spark.contracts import require_contract
from livemart.spark.differences import counted_difference, typed_columns
from livemart.spark.quick_session import session_for
from livemart.spark.types import spark_schema
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# Codes for a table with features that are not known here.
_ONLY_BY_SPARK = ("TABLE_NOT_WRITABLE", "TABLE_NOT_READABLE")


def refresh_full(
    context: BatchContext,
    model: Model,
    plan: Plan,
    inputs: PinnedInputs,
    tag: Tag,
    stored: PinnedTable | None,
) -> Commit:
    """Recompute a model from all rows of its inputs; commit the difference, or replace the table.

    The table is replaced if it does not exist, or is too large for the difference to be taken in
    memory. It is also replaced if its columns have other names or types than the SQL yields now.

    Raises:
        ModelFailedError: the model does not keep its contract.
    """
    spark = session_of(context.spark, model.session)
    require_contract(spark, model, full_query(model, plan, inputs))
    failure: Exception | None = None
    if stored is not None and context.warehouse.exists(model.relation):
        try:
            if commit := _commit_difference(context, spark, model, plan, inputs, tag, stored):
                return commit
        except Exception as error:
            if not is_own_fault(error):
                raise
            failure = error
    commit = context.lane_of(model).overwrite(
        model.relation, full_query(model, plan, inputs), tag, partition_by=model.partition_by
    )
    if failure is not None and getattr(failure, "code", "") not in _ONLY_BY_SPARK:
        context.between_batches.own_faults.report(
            "difference_failed", failure, model=model.unique_id
        )
    return commit


def recompute(context: BatchContext, model: Model, plan: Plan, inputs: PinnedInputs) -> None:
    """Compute all rows of a model and keep none, to see whether its SQL works."""
    query = session_of(context.spark, model.session).sql(full_query(model, plan, inputs))
    query.write.format("noop").mode("overwrite").save()


def full_query(model: Model, plan: Plan, inputs: PinnedInputs) -> str:
    """Return the model's SQL over its inputs at this batch's versions."""
    return _pinned_query(model, plan.stamped or plan.flat, inputs)


def _pinned_query(model: Model, flat: Flat | None, inputs: PinnedInputs) -> str:
    assert model.compiled_code is not None
    if flat is None:
        # The text could not be taken apart: its names are the catalog's, at the newest version.
        return model.compiled_code

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
    model: Model,
    plan: Plan,
    inputs: PinnedInputs,
    tag: Tag,
    stored: PinnedTable,
) -> Commit | None:
    """Commit the rows that differ; None if the table is to be replaced instead.

    A row that differs in its stamp alone does not.
    """
    query = _pinned_query(model, plan.flat, inputs)
    if not plan.stamps.keys() <= {name.lower() for name in stored.schema.names}:
        return None
    whole = stored
    if plan.stamps:
        stored = stored.without(plan.stamps)
    is_same = _types(spark.sql(query).schema) == _types(spark_schema(stored.schema))
    if not is_same or stored.row_count > ROWS_IN_MEMORY:
        return None
    change = _difference(spark, plan, inputs, query, stored)
    if change.num_rows > ROWS_IN_MEMORY:
        return None
    if plan.stamps:
        change = stamped(spark, plan, whole, change)
    return context.warehouse.commit(model.relation, change, tag)


def _types(schema: StructType) -> dict[str, str]:
    """Return the type of each column, whatever their order and letter case."""
    return {field.name.lower(): field.dataType.simpleString() for field in schema.fields}


def _difference(
    spark: SparkSession, plan: Plan, inputs: PinnedInputs, query: str, stored: PinnedTable
) -> pa.Table:
    schema = stored.schema
    listed = ", ".join(quoted(name) for name in schema.names)
    part = f"select {typed_columns(schema, stored.blank_columns)} from ({query}) as q"
    sides = [(part, 0, 1), (f"select {listed} from {stored.sql}", 1, 0)]
    if plan.flat is not None and inputs.new.keys() >= set(plan.flat.relations):
        tables = [inputs.at(relation, inputs.new[relation]) for relation in plan.flat.relations]
        spark = session_for(spark, (stored, *tables), len(plan.flat.occurrences) + 1, [query])
    return rows_of(spark.sql(str(counted_difference(schema, sides))))
