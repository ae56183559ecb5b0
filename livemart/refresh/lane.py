"""Which lane a model takes in a batch: slices and commits in Arrow, or all of it in Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Commit
from livemart.errors import RefreshError
from livemart.plan.planner import Plan
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import BatchInputs
from livemart.settings import Settings
from livemart.spark.arrow_views import to_view
from livemart.spark.large_lane import LargeLane


def takes_large_lane(settings: Settings, plan: Plan, inputs: BatchInputs) -> bool:
    """Return True if Spark should read the slices of a model itself."""
    if settings.lane != "auto" or plan.flat is None:
        return settings.lane == "large"
    try:
        return any(
            inputs.changes(relation).num_rows > settings.small_lane_rows
            for relation in plan.flat.relations
            if relation in inputs.old and inputs.has_changed(relation)
        )
    except RefreshError:
        return False


def commit_change(
    context: BatchContext,
    lane: LargeLane,
    relation: str,
    change: pa.Table,
    tag: Tag,
    *,
    key: Sequence[str],
) -> Commit:
    """Commit a change set by the lane that fits its size and the table."""
    settings, warehouse = context.settings, context.warehouse
    is_small = settings.lane == "small" or (
        settings.lane == "auto" and change.num_rows <= settings.small_lane_rows
    )
    if is_small:
        try:
            return warehouse.commit(relation, change, tag, key=key)
        except RefreshError as error:
            if error.code != "TABLE_NOT_WRITABLE":
                raise
    name = f"__change_{relation.replace('.', '__')}"
    to_view(context.spark, name, change)
    try:
        return lane.commit(relation, name, tag, key=key)
    finally:
        context.spark.catalog.dropTempView(name)
