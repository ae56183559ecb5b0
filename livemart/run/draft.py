"""Drafts a micro-batch: fixes its inputs, before models and tests run.

Used by `BatchRunner`, for a build as for a refresh. `as_of` and the version of every source are
fixed once: all models and tests read the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime

from livemart.failpoints import failpoint
from livemart.land.landing import LandedBatch
from livemart.land.tables import undeclared_fields
from livemart.plan.stored_queries import StoredQuery
from livemart.project.graph import Model
from livemart.refresh.clock import fix_as_of
from livemart.refresh.context import BatchContext
from livemart.run.batch_steps import Batch
from livemart.run.lateness import measure_lateness
from livemart.run.runtime import Runtime
from livemart.run.watermarks import fix_watermarks
from livemart.spark.types import arrow_type_text
from livemart.state.counts import Counts, TableCounts
from livemart.state.drift import Drift, DriftedField, DriftKind, merge_drift
from livemart.state.snapshots import Kind, ModelState, SetAside, Snapshot


def draft_batch(
    kind: Kind,
    runtime: Runtime,
    context: BatchContext,
    landed: LandedBatch,
    frontier: Snapshot | None,
    started_at: datetime,
    now: Callable[[], datetime],
) -> Batch:
    """Fix `as_of`, the watermarks and the version of every source table.

    Args:
        kind: of its snapshot.
        runtime: the warm process.
        context: identity of the micro-batch, for the commit of the clock.
        landed: what it has landed.
        frontier: the newest snapshot of the log, None before the first build.
        started_at: when work on the micro-batch began, UTC.
        now: the wall clock, UTC.
    """
    sources = dict(landed.versions)
    # Tables that another program fills are pinned like landed ones.
    for source in runtime.project.sources.values():
        is_foreign = source.stream is None and not source.is_provided
        if is_foreign and runtime.warehouse.exists(source.relation):
            sources[source.relation] = runtime.warehouse.version(source.relation)
    as_of = None
    if (clock := runtime.project.clock) is not None:
        failpoint("clock.before")
        as_of, sources[clock.relation] = fix_as_of(
            context,
            runtime.settings,
            clock,
            frontier,
            newest_event_time=landed.newest_event_time,
            now=now,
        )
        failpoint("clock.after")
    if (table := runtime.project.watermarks) is not None:
        with_lateness = runtime.project.with_lateness
        measured = measure_lateness(
            context,
            table.schema,
            [source for source in with_lateness if source.row_rules.lateness == "measured"],
            sources,
            frontier,
        )
        sources[table.relation] = fix_watermarks(
            context, table.relation, with_lateness, sources, as_of, measured
        )
    return Batch(kind, runtime.project, context.epoch, landed, frontier, as_of, sources, started_at)


def snapshot_of(
    batch: Batch,
    runtime: Runtime,
    states: Mapping[str, ModelState],
    aside: Mapping[str, SetAside],
) -> Snapshot:
    """Return the snapshot of a batch whose models have run; no test has run yet."""
    stages = {key for key, query in runtime.plans.stored.items() if query.is_stage}
    return Snapshot(
        snapshot_id=batch.frontier.snapshot_id + 1 if batch.frontier else 1,
        epoch=batch.epoch,
        batch_id=batch.landed.batch_id,
        kind=batch.kind,
        as_of=batch.as_of,
        sources=batch.sources,
        models={key: state for key, state in states.items() if key not in stages},
        stages={key: state for key, state in states.items() if key in stages},
        tests={},
        status="published",
        started_at=batch.started_at,
        finished_at=batch.started_at,
        # Tables without records have counts, too.
        landed={
            relation: TableCounts(
                **asdict(batch.landed.counts.get(relation, Counts())),
                table_id=runtime.warehouse.table_id(relation),
            )
            for relation in runtime.landed_relations
        },
        set_aside={key: state for key, state in aside.items() if key not in stages},
        stages_aside={key: state for key, state in aside.items() if key in stages},
        delivered_at=batch.landed.delivered_at,
        drift=merge_drift([batch.landed.drift, undeclared_columns(runtime)]),
    )


def table_versions(stored: Mapping[str, Model | StoredQuery], snapshot: Snapshot) -> dict[str, int]:
    """Return the version of every table of a snapshot, by relation.

    Args:
        stored: what has a table, by unique id.
    """
    states = snapshot.stored.items()
    versions = {stored[key].relation: state.version for key, state in states if key in stored}
    return {**snapshot.sources, **versions}


def undeclared_columns(runtime: Runtime) -> dict[str, Drift]:
    """Return the columns of landed tables that no source declares, by relation, if there are any.

    Drift brought such a column (`schema_drift: evolve`), or it was declared once; a model that
    lists its columns goes on without it until somebody edits it.
    """
    columns: dict[str, Drift] = {}
    for unique_id, source in runtime.project.sources.items():
        if source.stream is None:
            continue
        undeclared = undeclared_fields(runtime.warehouse, source)
        if undeclared:
            # `select *` reads all columns that the table has by now.
            runtime.plans.renew()
            columns[source.relation] = tuple(
                DriftedField(
                    DriftKind.UNDECLARED,
                    field.name,
                    arrow_type_text(field.type),
                    tuple(
                        runtime.project.models[reader].name
                        for reader in runtime.plans.readers_without(unique_id, field.name)
                    ),
                )
                for field in undeclared
            )
    return columns
