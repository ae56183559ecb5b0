"""Commits the change of a model by one of two lanes: from Arrow, or by Spark.

Used by the choice of a strategy. Both lanes run the same SQL and give the same rows (ADR-0002).

Stamps are columns that say which run wrote a row. A change is computed without them, and they are
added to its rows here: no row changes because its stamp would be another one now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, difference, first_copies, repeated
from livemart.arrow.variants import nothing_of
from livemart.delta.row_filter import equal_in
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit
from livemart.errors import RefreshError
from livemart.plan.plan import Plan
from livemart.refresh.context import BatchContext
from livemart.refresh.pinned_table import PinnedTable
from livemart.spark.arrow_views import rows_of, to_view
from livemart.spark.differences import typed_columns
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stamped(session: SparkSession, plan: Plan, stored: PinnedTable, change: pa.Table) -> pa.Table:
    """Return a change set with the columns that stamp its rows; see `arrow/stamps`.

    Args:
        session: of the model.
        plan: of a model with stamps.
        stored: its table as of the frontier, with all columns.
        change: without the stamps.

    Raises:
        RefreshError: STORED_ROWS_DIFFER.
    """
    fields = {name: stored.fields[name] for name in plan.stamps}
    values = ", ".join(f"{sql} as {quoted(fields[name].name)}" for name, sql in plan.stamps.items())
    schema = pa.schema(list(fields.values()))
    columns = typed_columns(schema, stored.blank_columns)
    stamps = rows_of(session.sql(f"select {columns} from (select {values}) as q"))
    rows = nothing_of(stored.schema)
    if pc.any(pc.less(change[NEW_COUNT], change[OLD_COUNT])).as_py():
        # Rows that go have the stamps that they were written with.
        rows = stored.read(equal_in(stored.schema, change)).select(stored.schema.names)
    if (complete := with_stamps(change, rows.cast(stored.schema), stamps)) is None:
        raise RefreshError(
            "STORED_ROWS_DIFFER",
            f"{stored.relation}: version {stored.version}: rows to remove do not exist",
            hint="nothing to do: the model is recomputed",
        )
    return complete


def key_of(plan: Plan, rows: pa.Table) -> tuple[str, ...]:
    """Return the columns that distinguish these rows of a model; none: all of them do.

    The key that the SQL proves unique does not hold if a text in it is NULL: this table, or one of
    its inputs, may hold several texts as NULL.
    """
    key = [rows.column(name) for name in plan.unique_key]
    has_null_text = any(column.null_count and pa.types.is_string(column.type) for column in key)
    return () if has_null_text else plan.unique_key


def commit_change(
    context: BatchContext, relation: str, plan: Plan, change: pa.Table, tag: Tag
) -> Commit:
    """Commit the change set of a model by the lane that fits its size and the table."""
    key = key_of(plan, change)
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


def with_stamps(change: pa.Table, stored: pa.Table, stamps: pa.Table) -> pa.Table | None:
    """Return a change set with all columns of its table.

    Rows that come have the stamps of this run; rows that go have those that they were written with,
    some copies of them where several rows differ in nothing else.

    Args:
        change: the columns of the table but the stamps, plus `OLD_COUNT` and `NEW_COUNT`.
        stored: rows of the table, all columns; at least all copies of every row in `change`.
        stamps: one row, the stamps of this run.

    Returns:
        The columns of `stored` plus `OLD_COUNT` and `NEW_COUNT`; None if a row that goes is not
        stored.
    """
    names = [name for name in stored.column_names if name not in stamps.column_names]
    rows, added = change.select(names), pc.subtract(change[NEW_COUNT], change[OLD_COUNT])
    new_rows, removed_rows = (
        repeated(rows.filter(pc.greater(count, 0)), count.filter(pc.greater(count, 0)))
        for count in (added, pc.negate(added))
    )
    leaving = first_copies(stored.select(names), removed_rows.cast(stored.select(names).schema))
    if int(leaving.sum()) != removed_rows.num_rows:
        return None
    for name in stamps.column_names:
        new_rows = new_rows.append_column(
            name, pa.repeat(stamps[name][0], new_rows.num_rows).cast(stored.schema.field(name).type)
        )
    new_rows = new_rows.select(stored.column_names).cast(stored.schema)
    remaining = stored.filter(pa.array(~leaving))
    return difference(pa.concat_tables([remaining, new_rows]).combine_chunks(), stored)
