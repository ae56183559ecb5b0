"""Chooses the lane of a model in a batch: slices in Arrow, or all of it in Spark.

Used by the choice of a strategy. Both lanes run the same SQL and give the same rows (ADR-0002).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT
from livemart.arrow.stamps import with_stamps
from livemart.arrow.types import plain_table
from livemart.delta.row_filter import equal_in
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit
from livemart.errors import RefreshError
from livemart.plan.planner import Plan
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import PinnedInputs
from livemart.refresh.pinned_table import PinnedTable
from livemart.spark.arrow_views import to_view
from livemart.spark.differences import typed_columns
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def takes_large_lane(context: BatchContext, plan: Plan, inputs: PinnedInputs) -> bool:
    """Return True if Spark should read the slices of a model itself."""
    if context.lane != "auto" or plan.flat is None:
        return context.lane == "large"
    try:
        return any(
            inputs.changes(relation).num_rows > context.small_lane_rows
            for relation in plan.flat.relations
            if relation in inputs.old and inputs.has_changed(relation)
        )
    except RefreshError:
        return False


def stamped(session: SparkSession, plan: Plan, stored: PinnedTable, change: pa.Table) -> pa.Table:
    """Return a change set with the columns that stamp its rows; see `arrow/stamps`.

    Args:
        session: of the model.
        plan: of the model.
        stored: its table as of the frontier, with all columns.
        change: without the stamps.

    Raises:
        RefreshError: STORED_ROWS_DIFFER.
    """
    if not plan.stamps:
        return change
    fields = {name: stored.fields[name] for name in plan.stamps}
    values = ", ".join(f"{sql} as {quoted(fields[name].name)}" for name, sql in plan.stamps.items())
    schema = pa.schema(list(fields.values()))
    columns = typed_columns(schema, stored.blank_columns)
    stamps = plain_table(session.sql(f"select {columns} from (select {values}) as q").toArrow())
    rows = stored.schema.empty_table()
    if pc.any(pc.less(change[NEW_COUNT], change[OLD_COUNT])).as_py():
        # Rows that go have the stamps that they were written with.
        rows = stored.read(equal_in(stored.schema, change)).select(stored.schema.names)
    if (complete := with_stamps(change, rows.cast(stored.schema), stamps)) is None:
        raise RefreshError(
            "STORED_ROWS_DIFFER",
            f"{stored.relation}: version {stored.version}: rows to remove are not there",
            hint="nothing to do: the model is recomputed",
        )
    return complete


def commit_change(
    context: BatchContext,
    relation: str,
    change: pa.Table,
    tag: Tag,
    *,
    key: Sequence[str],
) -> Commit:
    """Commit a change set by the lane that fits its size and the table."""
    is_small = context.lane == "small" or (
        context.lane == "auto" and change.num_rows <= context.small_lane_rows
    )
    if is_small:
        try:
            return context.warehouse.commit(relation, change, tag, key=key)
        except RefreshError as error:
            if error.code != "TABLE_NOT_WRITABLE":
                raise
    name = f"__change_{relation.replace('.', '__')}"
    to_view(context.spark, name, change)
    try:
        return context.large_lane.commit(relation, name, tag, key=key)
    finally:
        context.spark.catalog.dropTempView(name)
