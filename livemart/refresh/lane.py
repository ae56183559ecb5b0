"""Chooses the lane of a model in a batch: slices and commits in Arrow, or all of it in Spark.

Used by the choice of a strategy. Both lanes run the same SQL and give the same rows (ADR-0002).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit
from livemart.errors import RefreshError
from livemart.plan.planner import Plan
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import PinnedInputs
from livemart.spark.arrow_views import to_view


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
