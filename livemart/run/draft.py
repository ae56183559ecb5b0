"""Drafts the snapshot row of a micro-batch: what it says before models and tests have run.

Used by `BatchRunner`, for a build as for a refresh. `as_of` and the version of every source are
fixed once, when the draft is made: whatever runs afterwards reads the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from livemart.failpoints import failpoint
from livemart.land.landing import LandedBatch
from livemart.project.graph import Project
from livemart.refresh.clock import fix_as_of
from livemart.refresh.context import BatchContext
from livemart.run.lateness import measure_lateness
from livemart.run.runtime import Runtime
from livemart.run.undeclared_columns import undeclared_columns
from livemart.run.watermarks import fix_watermarks
from livemart.state.counts import Counts, TableCounts
from livemart.state.drift import merge_drift
from livemart.state.snapshots import ModelState, Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotDraft:
    """A snapshot row without models. `newest` is the row before; `sources`: version by relation."""

    runtime: Runtime
    epoch: str
    newest: Snapshot | None
    batch: LandedBatch
    as_of: datetime | None
    sources: Mapping[str, int]
    started_at: datetime

    @property
    def has_news(self) -> bool:
        """True if records came, a source is at another version or the clock moved."""
        newest = self.newest
        return (
            newest is None
            or self.batch.has_records
            or self.sources != newest.sources
            or self.as_of != newest.as_of
        )

    def snapshot(
        self, kind: Literal["build", "refresh"], models: Mapping[str, ModelState]
    ) -> Snapshot:
        """Return the snapshot with its models; no test has run yet."""
        return Snapshot(
            snapshot_id=self.newest.snapshot_id + 1 if self.newest else 1,
            epoch=self.epoch,
            batch_id=self.batch.batch_id,
            kind=kind,
            as_of=self.as_of,
            sources=self.sources,
            models=models,
            tests={},
            status="published",
            started_at=self.started_at,
            finished_at=self.started_at,
            landed=_count_landed(self.runtime, self.batch.counts),
            delivered_at=self.batch.delivered_at,
            drift=merge_drift([self.batch.drift, undeclared_columns(self.runtime)]),
        )


def draft_snapshot(
    runtime: Runtime,
    context: BatchContext,
    batch: LandedBatch,
    newest: Snapshot | None,
    *,
    started_at: datetime,
    now: Callable[[], datetime],
) -> SnapshotDraft:
    """Fix `as_of`, the watermarks and the version of every source table.

    Args:
        runtime: the warm process.
        context: identity of the micro-batch, for the commit of the clock.
        batch: what landed.
        newest: the newest snapshot of the log, None before the first build.
        started_at: when work on the micro-batch began, UTC.
        now: the wall clock, UTC.
    """
    sources = dict(batch.versions)
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
            newest,
            newest_event_time=batch.newest_event_time,
            now=now,
        )
        failpoint("clock.after")
    if (table := runtime.project.watermarks) is not None:
        with_lateness = runtime.project.with_lateness
        measured = measure_lateness(
            context,
            table.schema,
            [it for it in with_lateness if it.row_rules.lateness == "measured"],
            sources,
            newest,
        )
        sources[table.relation] = fix_watermarks(
            context, table.relation, with_lateness, sources, as_of, measured
        )
    return SnapshotDraft(runtime, context.epoch, newest, batch, as_of, sources, started_at)


def table_versions(project: Project, snapshot: Snapshot) -> dict[str, int]:
    """Return the version of every table of a snapshot, by relation."""
    versions = dict(snapshot.sources)
    for unique_id, state in snapshot.models.items():
        if model := project.models.get(unique_id):
            versions[model.relation] = state.version
    return versions


def _count_landed(runtime: Runtime, counts: Mapping[str, Counts]) -> dict[str, TableCounts]:
    """Return what the log keeps of each landed table, those without records as well."""
    return {
        relation: TableCounts(
            **asdict(counts.get(relation, Counts())),
            table_id=runtime.warehouse.table_id(relation),
        )
        for relation in runtime.landed_relations
    }
