"""One micro-batch, from landed rows to a snapshot row: the same steps in a pass and in the stream.

Order: `as_of` is fixed, models are refreshed in dependency order, checks run, the snapshot row is
appended; the serving store comes after the row, and Spark's checkpoint last of all. Whatever the
process dies of in between, the batch is run again from the same frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Literal

from livemart.check.checks import TestResult, Versions, run_checks
from livemart.delta.conflicts import TableChangedError
from livemart.failpoints import failpoint
from livemart.intervals import ms_since
from livemart.land.landing import LandedBatch
from livemart.project.dbt_failures import refuse_failures
from livemart.project.graph import Model
from livemart.refresh.clock import fix_as_of
from livemart.refresh.context import BatchContext, Rebuild
from livemart.refresh.frontier import check_landed, find_rebuilds
from livemart.refresh.models import refresh_models
from livemart.refresh.views import SharedViews
from livemart.run.runtime import Runtime
from livemart.spark.catalog import register
from livemart.state.counts import Counts, TableCounts
from livemart.state.snapshots import ModelState, Snapshot


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a micro-batch came to. `snapshot` is None if there was nothing to do."""

    batch_id: int
    snapshot: Snapshot | None
    checks: Mapping[str, TestResult] = field(default_factory=dict)
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)

    @property
    def is_held(self) -> bool:
        """True if readers do not get to see this snapshot."""
        return self.snapshot is not None and self.snapshot.status == "held"


@dataclass(slots=True)
class BatchRunner:
    """Runs landed micro-batches of one epoch, one after the other.

    `selected` are models to rebuild in the first batch whatever their state.
    """

    runtime: Runtime
    epoch: str
    now: Callable[[], datetime]
    report: Callable[[str, str], None]
    selected: frozenset[str] = frozenset()
    _shared: SharedViews = field(default_factory=SharedViews)

    def refresh(self, batch: LandedBatch) -> Outcome:
        """Bring every model up to `batch` and append the snapshot row; nothing if nothing changed.

        Raises:
            StateError: LANDED_TABLE_LOST, LANDED_TABLE_CHANGED.
            RefreshError: a model could not be refreshed.
        """
        started_at = datetime.now(UTC)
        runtime, newest = self.runtime, self.runtime.log.newest()
        if newest is None:
            return self.build(batch)
        if newest.epoch == self.epoch and newest.batch_id >= batch.batch_id:
            return Outcome(batch.batch_id, None)
        check_landed(newest, runtime.landed_relations, runtime.warehouse, self.epoch)
        rebuilds = self._find_rebuilds(newest, batch.batch_id)
        for unique_id in self.selected & newest.models.keys() - rebuilds.keys():
            state = newest.models[unique_id]
            rebuilds[unique_id] = Rebuild("SELECTED", "named by --select", state.generation + 1)
        context = self._context(batch.batch_id, rebuilds)
        as_of, sources = self._fix_sources(context, batch, newest)
        is_same_list = set(newest.models) == _stored(runtime)
        previous = runtime.prover.unedited(newest.tests, newest.test_fingerprints)
        if (
            not rebuilds
            and is_same_list
            and previous.keys() == runtime.project.tests.keys()
            and not batch.has_records
            and sources == newest.sources
            and as_of == newest.as_of
        ):
            return Outcome(batch.batch_id, None)
        context = replace(context, done=self._reseed(rebuilds))
        models = refresh_models(
            context,
            runtime.project,
            newest,
            sources,
            newest.as_of,
            as_of,
            runtime.plans,
            self._shared,
        )
        self._refuse_writes_between(newest, batch.batch_id, rebuilds)
        before = _versions(runtime, newest.sources, newest.models)
        for unique_id in rebuilds:
            before.pop(runtime.project.models[unique_id].relation, None)
        snapshot = self._draft("refresh", newest, batch, as_of, sources, models, started_at)
        if any(rebuild.code == "NEW_MODEL" for rebuild in rebuilds.values()):
            register(runtime.spark, runtime.settings.warehouse, runtime.project)
        return self._finish(snapshot, before, previous, rebuilds)

    def _find_rebuilds(self, newest: Snapshot, batch_id: int) -> dict[str, Rebuild]:
        runtime = self.runtime
        return find_rebuilds(
            newest,
            runtime.project,
            runtime.fingerprints,
            runtime.warehouse,
            epoch=self.epoch,
            batch_id=batch_id,
        )

    def _refuse_writes_between(
        self, newest: Snapshot, batch_id: int, rebuilds: Mapping[str, Rebuild]
    ) -> None:
        """Replay the batch if somebody wrote to a model while it was refreshed.

        Once the row names a later version, nobody would look at that commit again.

        Raises:
            TableChangedError: TABLE_CHANGED.
        """
        for unique_id, found in self._find_rebuilds(newest, batch_id).items():
            known = rebuilds.get(unique_id)
            if known is None or known.generation < found.generation:
                raise TableChangedError(
                    "TABLE_CHANGED",
                    f"{found.message}, while batch {batch_id} was refreshed",
                    hint="nothing to do: the batch is run again and rebuilds the model",
                )

    def build(self, batch: LandedBatch) -> Outcome:
        """Run the whole project through dbt on the landed tables and append one snapshot row.

        Raises:
            RefreshError: MODEL_FAILED, with dbt's own message; no row is appended.
        """
        started_at = datetime.now(UTC)
        runtime, newest = self.runtime, self.runtime.log.newest()
        context = self._context(batch.batch_id, {})
        as_of, sources = self._fix_sources(context, batch, newest)
        # dbt finds tables in the catalog only, and some of these were made a moment ago.
        register(runtime.spark, runtime.settings.warehouse, runtime.project)
        failpoint("build.before_dbt")
        results = runtime.dbt.build(data_tests=False)
        failpoint("build.after_dbt")
        refuse_failures(runtime.project, results)
        models: dict[str, ModelState] = {}
        for unique_id, model in runtime.project.models.items():
            if not model.is_stored or unique_id not in results:
                continue
            before = newest.models.get(unique_id) if newest else None
            generation = before.generation + 1 if before else 0
            models[unique_id] = self._built(model, "BUILD", generation, results[unique_id].took_ms)
        snapshot = self._draft("build", newest, batch, as_of, sources, models, started_at)
        return self._finish(snapshot, {}, {}, {})

    def _finish(
        self,
        snapshot: Snapshot,
        before: Mapping[str, int],
        previous: Mapping[str, str],
        rebuilds: Mapping[str, Rebuild],
    ) -> Outcome:
        """Check, decide whether readers may see it, and append the row: this publishes it."""
        runtime = self.runtime
        failpoint("checks.before")
        now = _versions(runtime, snapshot.sources, snapshot.models)
        checks = run_checks(
            runtime.spark, runtime.warehouse, runtime.prover, Versions(before, now), previous
        )
        failpoint("checks.after")
        is_held = any(check.holds for check in checks.values())
        snapshot = replace(
            snapshot,
            tests={unique_id: check.status for unique_id, check in checks.items()},
            test_fingerprints=runtime.prover.fingerprints,
            status="held" if is_held else "published",
            finished_at=datetime.now(UTC),
        )
        failpoint("snapshot.before")
        runtime.log.append(snapshot)
        failpoint("snapshot.after")
        return Outcome(snapshot.batch_id, snapshot, checks, rebuilds)

    def _context(self, batch_id: int, rebuilds: Mapping[str, Rebuild]) -> BatchContext:
        runtime = self.runtime
        return BatchContext(
            runtime.spark,
            runtime.warehouse,
            runtime.settings,
            self.epoch,
            batch_id,
            rebuilds,
            {
                runtime.project.models[unique_id].relation: fingerprint
                for unique_id, fingerprint in runtime.fingerprints.items()
            },
            report=self.report,
        )

    def _fix_sources(
        self, context: BatchContext, batch: LandedBatch, newest: Snapshot | None
    ) -> tuple[datetime | None, dict[str, int]]:
        """Return this batch's `as_of` and the version of every source table and the clock."""
        runtime = self.runtime
        sources = dict(batch.versions)
        # Tables that somebody else fills are pinned like landed ones.
        for source in runtime.project.sources.values():
            is_foreign = source.stream is None and not source.is_clock
            if is_foreign and runtime.warehouse.exists(source.relation):
                sources[source.relation] = runtime.warehouse.version(source.relation)
        if (clock := runtime.project.clock) is None:
            return None, sources
        failpoint("clock.before")
        as_of, sources[clock.relation] = fix_as_of(
            context, clock, newest, newest_event_time=batch.newest_event_time, now=self.now
        )
        failpoint("clock.after")
        return as_of, sources

    def _reseed(self, rebuilds: Mapping[str, Rebuild]) -> dict[str, ModelState]:
        """Let dbt load the seeds that changed: their rows are files of the project, not SQL."""
        runtime = self.runtime
        seeds = {
            unique_id: runtime.project.models[unique_id]
            for unique_id in rebuilds
            if runtime.project.models[unique_id].materialized == "seed"
        }
        if not seeds:
            return {}
        started = perf_counter()
        results = runtime.dbt.build(
            select=[model.name for model in seeds.values()], data_tests=False
        )
        refuse_failures(runtime.project, results)
        took_ms = ms_since(started)
        return {
            unique_id: self._built(
                model, rebuilds[unique_id].code, rebuilds[unique_id].generation, took_ms
            )
            for unique_id, model in seeds.items()
        }

    def _built(self, model: Model, reason: str, generation: int, took_ms: int) -> ModelState:
        """Return the state of a model that dbt just made."""
        runtime = self.runtime
        return ModelState(
            version=runtime.warehouse.version(model.relation),
            fingerprint=runtime.plans[model.unique_id].fingerprint,
            strategy="full",
            reason=reason,
            rows_changed=0,
            took_ms=took_ms,
            generation=generation,
            table_id=runtime.warehouse.table_id(model.relation),
        )

    def _draft(
        self,
        kind: Literal["build", "refresh"],
        newest: Snapshot | None,
        batch: LandedBatch,
        as_of: datetime | None,
        sources: Mapping[str, int],
        models: Mapping[str, ModelState],
        started_at: datetime,
    ) -> Snapshot:
        """Return the snapshot of a batch before its tests have run."""
        runtime = self.runtime
        return Snapshot(
            snapshot_id=newest.snapshot_id + 1 if newest else 1,
            epoch=self.epoch,
            batch_id=batch.batch_id,
            kind=kind,
            as_of=as_of,
            sources=sources,
            models=models,
            tests={},
            status="published",
            started_at=started_at,
            finished_at=started_at,
            landed=_count_landed(runtime, batch.counts),
        )


def _stored(runtime: Runtime) -> set[str]:
    return {unique_id for unique_id, model in runtime.project.models.items() if model.is_stored}


def _versions(
    runtime: Runtime, sources: Mapping[str, int], models: Mapping[str, ModelState]
) -> dict[str, int]:
    """Return the version of every table of a snapshot, by relation."""
    versions = dict(sources)
    for unique_id, state in models.items():
        if model := runtime.project.models.get(unique_id):
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
