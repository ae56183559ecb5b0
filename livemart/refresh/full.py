"""Full refresh: the model's SQL over all rows; still only rows that really changed are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit
from livemart.plan.planner import Plan
from livemart.plan.sql.flatten import Occurrence
from livemart.project.graph import Model
from livemart.refresh.context import BatchContext
from livemart.refresh.views import SMALL_ROWS
from livemart.spark.differences import counted_difference, typed_columns
from livemart.spark.large_lane import LargeLane
from livemart.spark.quick_session import session_for
from livemart.spark.types import spark_schema
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from livemart.refresh.inputs import BatchInputs


def refresh_full(
    context: BatchContext,
    model: Model,
    plan: Plan,
    inputs: BatchInputs,
    tag: Tag,
    lane: LargeLane,
    *,
    stored_version: int | None,
) -> Commit:
    """Recompute a model from all rows of its inputs; commit the difference, or replace the table.

    The table is replaced if it does not exist, has columns of other names or types than the SQL
    yields now, or is too large for the difference to be taken in memory.
    """
    query = full_query(context, model, plan, inputs)
    warehouse = context.warehouse
    if stored_version is not None and warehouse.exists(model.relation):
        schema = warehouse.arrow_schema(model.relation, stored_version)
        is_same = _types(context.spark.sql(query).schema) == _types(spark_schema(schema))
        if is_same and warehouse.row_count(model.relation, stored_version) <= SMALL_ROWS:
            change = _difference(context, model, plan, inputs, query, schema, stored_version)
            if change.num_rows <= SMALL_ROWS:
                return warehouse.commit(model.relation, change, tag)
    return lane.overwrite(model.relation, query, tag, partition_by=model.partition_by)


def full_query(context: BatchContext, model: Model, plan: Plan, inputs: BatchInputs) -> str:
    """Return the model's SQL over its inputs at this batch's versions."""
    assert model.compiled_code is not None
    if plan.flat is None:
        # The text could not be taken apart: its names are the catalog's, at the newest version.
        return model.compiled_code

    def pinned(occurrence: Occurrence) -> str:
        relation = occurrence.relation
        if (version := inputs.new.get(relation)) is None:
            # Nothing of ours: Spark finds it by what was written, or says that it does not.
            return occurrence.text
        return f"(select * from {context.warehouse.sql_at(relation, version)})"

    return plan.flat.render(pinned)


def _types(schema: StructType) -> dict[str, str]:
    """Return the type of each column, whatever their order and letter case."""
    return {field.name.lower(): field.dataType.simpleString() for field in schema.fields}


def _difference(
    context: BatchContext,
    model: Model,
    plan: Plan,
    inputs: BatchInputs,
    query: str,
    schema: pa.Schema,
    version: int,
) -> pa.Table:
    own = ", ".join(quoted(name) for name in schema.names)
    part = f"select {typed_columns(schema, 'q')} from ({query}) as q"
    stored = f"select {own} from {context.warehouse.sql_at(model.relation, version)}"
    sides = [(part, 0, 1), (stored, 1, 0)]
    spark = context.spark
    if plan.flat is not None and all(name in inputs.new for name in plan.flat.relations):
        count = context.warehouse.row_count(model.relation, version)
        for relation in plan.flat.relations:
            count += context.warehouse.row_count(relation, inputs.new[relation])
        spark = session_for(context.spark, count)
    return spark.sql(counted_difference(schema, sides)).toArrow()


__all__ = ["full_query", "refresh_full"]
