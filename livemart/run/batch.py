"""Runs one micro-batch, from landed rows to a snapshot row.

Used by the pipeline, for one refresh as for the stream. `batch_steps.py` orders the steps.
After the row the serving store is filled, and Spark's checkpoint is written last. A batch that dies
before that runs again from the same frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from livemart.check.checks import TestResult, run_checks
from livemart.check.versions import CheckedVersions
from livemart.delta.tags import Tags
from livemart.failpoints import failpoint
from livemart.land.landing import LandedBatch
from livemart.project.graph import short_name
from livemart.project.hooks.run_end import TestEnd
from livemart.project.run_values import run_of
from livemart.refresh.context import BatchContext, SqlChanged
from livemart.refresh.frontier import (
    Broken,
    Rebuild,
    Refresh,
    Start,
    Untouched,
    check_landed,
    find_starts,
    leave_out,
    refuse_writes_since,
)
from livemart.refresh.inputs import PinnedInputs, pin_inputs
from livemart.refresh.models import carried, fill_stages, refresh_models
from livemart.run.batch_questions import BatchQuestions
from livemart.run.batch_steps import Batch, BatchStep, batch_steps
from livemart.run.dbt_builds import build_alone, build_models, build_seeds, end_build
from livemart.run.draft import draft_batch, snapshot_of, table_versions
from livemart.run.events import (
    BatchOutcome,
    BatchRecord,
    CheckEnded,
    ModelChanged,
    ReportEvent,
    StepBegan,
)
from livemart.run.runtime import Runtime
from livemart.settings import selection_empty
from livemart.spark.catalog import register
from livemart.state.run_starts import run_start
from livemart.state.snapshots import Kind, ModelState, Snapshot


@dataclass(slots=True)
class BatchRunner:
    """Runs landed micro-batches of one epoch, one after the other."""

    runtime: Runtime
    epoch: str
    now: Callable[[], datetime]
    report: ReportEvent
    selected: frozenset[str] = frozenset()
    """Models to rebuild in the first batch whatever their state."""
    left_out: frozenset[str] = frozenset()
    """Models that are set aside, though nothing is wrong with them."""
    runs_again: bool = False
    """True if a batch in which a model failed is run again by itself."""
    is_outdated: Callable[[], bool] = lambda: False
    """Whether the project has edits that do not run yet."""
    record: BatchRecord = field(init=False, default_factory=BatchRecord)
    """The record of the micro-batch under way."""
    # The answers from when the project was read may be older than its views.
    _has_refreshed: bool = False

    def refresh(self, landed: LandedBatch) -> BatchOutcome:
        """Bring every model up to `landed` and append the snapshot row; nothing if nothing changed.

        Raises:
            StateError: LANDED_TABLE_LOST, LANDED_TABLE_CHANGED.
            RefreshError: a model could not be refreshed.
        """
        runtime, frontier = self.runtime, self.runtime.log.newest()
        if frontier is None:
            return self.build(landed)
        self.record = BatchRecord()
        started_at = self.record.began_at
        if frontier.epoch == self.epoch and frontier.batch_id >= landed.batch_id:
            return BatchOutcome(landed.batch_id, None)
        check_landed(frontier, runtime.landed_relations, runtime.warehouse, self.epoch)
        if runtime.dbt.run_dependent:
            root = runtime.settings.warehouse
            started_at = run_start(root, self.epoch, landed.batch_id, started_at)
        runtime.dbt.run = run_of(self.epoch, landed.batch_id, started_at)
        with runtime.warehouse.only_writer():
            batch = self._draft("refresh", landed, frontier, started_at)
            questions = BatchQuestions(runtime, asks_all=not self._has_refreshed)
            while True:
                questions.begin_again()
                try:
                    outcome = self._run(self._started(batch, frontier), questions)
                except SqlChanged:
                    # Models that it has finished keep their state: their SQL is the same.
                    continue
                self._has_refreshed = True
                return outcome

    def build(self, landed: LandedBatch) -> BatchOutcome:
        """Run the whole project through dbt on the landed tables and append one snapshot row.

        Raises:
            RefreshError: MODEL_FAILED, with dbt's own message; no row is appended.
        """
        self.record = BatchRecord()
        started_at = self.record.began_at
        runtime, frontier = self.runtime, self.runtime.log.newest()
        batch = self._draft("build", landed, frontier, started_at)
        runtime.dbt.run = run_of(self.epoch, landed.batch_id, started_at)
        tests = runtime.dbt.run_dependent & runtime.project.tests.keys()
        if tests := tests - runtime.dbt.writing:
            runtime.adopt(runtime.dbt.compile_again(tests))
        batch = replace(batch, starts=self._left_out(None))
        return self._run(batch, BatchQuestions(runtime, asks_all=True))

    def _draft(
        self, kind: Kind, landed: LandedBatch, frontier: Snapshot | None, started_at: datetime
    ) -> Batch:
        context, runtime = self._context(landed), self.runtime
        return draft_batch(kind, runtime, context, landed, frontier, started_at, self.now)

    def _run(self, batch: Batch, questions: BatchQuestions) -> BatchOutcome:
        """Run the steps of a batch.

        Raises:
            SqlChanged: its models start again, with other SQL.
        """
        for step in batch_steps(batch):
            structlog.get_logger().debug("batch_step", step=step.value)
            match step:
                case BatchStep.BUILD_MODELS:
                    batch = self._build_models(batch)
                case BatchStep.COMPILE_FOR_RUN:
                    questions.begin_run()
                case BatchStep.LOAD_SEEDS:
                    loaded = build_seeds(self.runtime, batch.changed_seeds)
                    batch = replace(batch, starts={**batch.starts, **loaded})
                case BatchStep.REFRESH_MODELS:
                    batch = self._refresh_models(batch, questions)
                case BatchStep.CARRY_MODELS:
                    batch = self._carry_models(batch)
                case BatchStep.CHECK_MODELS | BatchStep.CHECK_HELD:
                    is_reported = step is BatchStep.CHECK_MODELS
                    batch = self._check_models(batch, is_reported=is_reported)
                case BatchStep.END_BUILD:
                    self._end_build(batch)
                case BatchStep.APPEND_SNAPSHOT | BatchStep.RELEASE_SNAPSHOT:
                    appends_held = step is BatchStep.APPEND_SNAPSHOT
                    return self._append_snapshot(batch, appends_held=appends_held)
        return BatchOutcome(batch.landed.batch_id, None)

    def _started(self, batch: Batch, frontier: Snapshot) -> Batch:
        """Return a batch with the starts of its models, as they are written now."""
        runtime = self.runtime
        runtime.plans.renew()
        stored = runtime.plans.stored
        starts = find_starts(
            frontier,
            stored,
            runtime.warehouse,
            Tags(self.epoch, batch.landed.batch_id),
            left_out=self._left_out(frontier),
            selected=frozenset() if self._has_refreshed else self.selected,
            is_outdated=self.is_outdated(),
        )
        unedited = runtime.prover.unedited(frontier.tests, frontier.test_fingerprints)
        return replace(
            batch,
            project=runtime.project,
            seeds=frozenset(key for key, query in stored.items() if query.made_by == "seed"),
            starts=starts,
            unedited=unedited,
            run_dependent=runtime.dbt.run_dependent,
        )

    def _left_out(self, frontier: Snapshot | None) -> dict[str, Start]:
        """Return the starts of the models that the selection leaves out, by unique id.

        Raises:
            ConfigError: SELECTION_EMPTY, if nothing is left to refresh.
        """
        runtime = self.runtime
        stored = runtime.plans.stored
        starts = leave_out(frontier, stored, self.left_out)
        if starts and not stored.keys() - self.left_out - starts.keys():
            raise selection_empty(
                runtime.settings.selection, "what it names waits for models that it leaves out"
            )
        return starts

    def _build_models(self, batch: Batch) -> Batch:
        runtime = self.runtime
        starts = batch.starts.items()
        aside = {key: start.aside for key, start in starts if isinstance(start, Untouched)}
        left_out = runtime.project.with_views(aside.keys())
        states = build_models(runtime, batch.frontier, self.record.built, left_out=left_out)
        states |= self._fill_stages(batch, states)
        self.report(StepBegan("running the data tests"))
        return replace(batch, snapshot=snapshot_of(batch, runtime, states, aside))

    def _fill_stages(self, batch: Batch, states: Mapping[str, ModelState]) -> dict[str, ModelState]:
        stored = self.runtime.plans.stored
        # Their owners have other decisions: the next refresh computes both.
        later = {key for key, it in stored.items() if it.decides_in_stages and it.plan.ways}
        of_build = states.keys() - later
        stages = [it for it in stored.values() if it.is_stage and it.owner.unique_id in of_build]

        def begins(owner: str, number: int) -> None:
            name = short_name(owner)
            self.report(StepBegan(f"computing stage {number} of {len(stages)}, of {name}"))

        versions = {stored[key].relation: state.version for key, state in states.items()}
        inputs = PinnedInputs(self.runtime.warehouse, {}, {**batch.sources, **versions})
        before = batch.frontier.stored if batch.frontier is not None else {}
        return fill_stages(self._context(batch.landed), stages, inputs, before, begins)

    def _refresh_models(self, batch: Batch, questions: BatchQuestions) -> Batch:
        runtime, frontier = self.runtime, batch.frontier
        assert frontier is not None
        starts = dict(batch.starts)
        for unique_id, message in questions.lost.items():
            if isinstance(starts.get(unique_id), Refresh | Rebuild):
                starts[unique_id] = Broken(message)

        def before_model(unique_id: str, inputs: PinnedInputs) -> None:
            query = runtime.plans.stored[unique_id]
            is_rebuilt = isinstance(starts[unique_id], Rebuild)
            questions.ask(query.owner.unique_id, inputs, asks_all=is_rebuilt)
            if query.made_by == "dbt":
                with questions.one_dbt:
                    build_alone(runtime, unique_id)

        runtime.plans.renew()
        inputs = pin_inputs(runtime.warehouse, runtime.plans, frontier, batch.sources, starts)
        done = refresh_models(
            self._context(batch.landed),
            runtime.plans.stored,
            inputs,
            frontier,
            starts,
            report=self._report,
            before_model=before_model,
            attempts=runtime.settings.attempts,
            runs_again=self.runs_again,
            ended=self.record.ended,
        )
        questions.ask_views(inputs)
        tags = Tags(self.epoch, batch.landed.batch_id)
        runtime.warehouse.look_again()
        refuse_writes_since(
            starts, done.states, frontier, runtime.plans.stored, runtime.warehouse, tags
        )
        if any(rebuild.code == "NEW_MODEL" for rebuild in batch.rebuilds.values()):
            register(runtime.spark, runtime.settings.warehouse, runtime.project)
        snapshot = snapshot_of(batch, runtime, done.states, done.set_aside)
        return replace(batch, starts=starts, snapshot=snapshot)

    def _carry_models(self, batch: Batch) -> Batch:
        frontier = batch.frontier
        assert frontier is not None
        states = {key: carried(state) for key, state in frontier.stored.items()}
        snapshot = snapshot_of(batch, self.runtime, states, frontier.aside)
        return replace(batch, snapshot=snapshot)

    def _check_models(self, batch: Batch, *, is_reported: bool) -> Batch:
        runtime, snapshot, frontier = self.runtime, batch.snapshot, batch.frontier
        assert snapshot is not None
        failpoint("checks.before")
        unedited = batch.unedited
        if changed := BatchQuestions(runtime, asks_all=True).ask_for_tests():
            runtime.adopt(runtime.dbt.project)
            unedited = {key: status for key, status in unedited.items() if key not in changed}
        varies = runtime.project.differs_with_run
        before: dict[str, int] = {}
        if batch.kind == "refresh" and frontier is not None:
            before = table_versions(runtime.plans.stored, frontier)
        for unique_id, start in batch.starts.items():
            if isinstance(start, Rebuild | Broken):
                before.pop(runtime.plans.stored[unique_id].relation, None)

        def report(unique_id: str, result: TestResult) -> None:
            self.record.ended_at[unique_id] = self.record.now()
            if is_reported:
                self.report(CheckEnded(unique_id, result))

        checks = run_checks(
            runtime.spark,
            runtime.warehouse,
            runtime.prover,
            CheckedVersions(before, table_versions(runtime.plans.stored, snapshot)),
            {key: status for key, status in unedited.items() if not varies(key)},
            waiting=runtime.project.with_views(snapshot.set_aside.keys()),
            report=report,
        )
        if frontier is not None and frontier.status == "held":
            checks |= self._held_on(snapshot, frontier, checks)
        failpoint("checks.after")
        return replace(batch, checks=checks)

    def _end_build(self, batch: Batch) -> None:
        record = self.record
        tests = {
            unique_id: TestEnd(
                "skipped" if check.status == "waits" else check.status,
                check.failures,
                check.message,
                check.took_ms,
                record.ended_at.get(unique_id) or record.now(),
            )
            for unique_id, check in batch.checks.items()
        }
        end_build(self.runtime, tests, record.built)

    def _held_on(
        self, snapshot: Snapshot, frontier: Snapshot, checks: Mapping[str, TestResult]
    ) -> dict[str, TestResult]:
        """Return the tests that still hold back the held `frontier`, though they wait.

        Each reads a model that is set aside, and has not passed on rows that no reader has seen.
        """
        project, published = self.runtime.project, self.runtime.log.newest_published()
        states = published.models if published else {}
        unpublished = project.with_views(
            {
                key
                for key in snapshot.set_aside.keys() & snapshot.models.keys()
                if key not in states or states[key].version != snapshot.models[key].version
            }
        )
        waits = TestResult("fail", None, "unchanged", "has not passed, and waits for its model")
        return {
            key: waits
            for key, check in checks.items()
            if check.status == "waits"
            and frontier.tests.get(key) not in ("pass", "warn")
            and (test := project.tests[key]).severity == "error"
            and not unpublished.isdisjoint(test.depends_on)
        }

    def _append_snapshot(self, batch: Batch, *, appends_held: bool) -> BatchOutcome:
        assert batch.snapshot is not None
        runtime, frontier, checks = self.runtime, batch.frontier, batch.checks
        is_held = any(check.holds for check in checks.values())
        if is_held and not appends_held:
            return BatchOutcome(batch.landed.batch_id, None, checks)
        snapshot = replace(
            batch.snapshot,
            tests={unique_id: check.status for unique_id, check in checks.items()},
            test_fingerprints=runtime.prover.fingerprints,
            status="held" if is_held else "published",
            finished_at=max(self.record.now(), batch.started_at),
        )
        failpoint("snapshot.before")
        runtime.log.append(snapshot)
        failpoint("snapshot.after")
        record, self.record = self.record, BatchRecord()
        before = frontier.drift if frontier is not None else {}
        return BatchOutcome(snapshot.batch_id, snapshot, checks, batch.rebuilds, record, before)

    def _report(self, unique_id: str, word: str, state: ModelState | None = None, /) -> None:
        self.record.model_changed(unique_id, word, state)
        self.report(ModelChanged(unique_id, word, state))

    def _context(self, landed: LandedBatch) -> BatchContext:
        runtime = self.runtime
        return BatchContext(
            runtime.spark,
            runtime.warehouse,
            self.epoch,
            landed.batch_id,
            runtime.settings.lane,
            runtime.settings.small_lane_rows,
            runtime.settings.threads,
            runtime.between_batches,
        )
