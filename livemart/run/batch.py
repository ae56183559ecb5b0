"""Runs one micro-batch, from landed rows to a snapshot row.

Used by the pipeline, for one refresh as for the stream. `as_of` is fixed, models are refreshed in
dependency order, checks run, the snapshot row is appended; the serving store comes after the row,
and Spark's checkpoint last of all. A batch that dies in between runs again from the same frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from livemart.check.checks import CheckReport, TestResult, run_checks
from livemart.check.versions import CheckedVersions
from livemart.conflicts import TableChangedError
from livemart.failpoints import failpoint
from livemart.land.landing import LandedBatch
from livemart.project.node_results import NodeResult
from livemart.project.run_values import run_of
from livemart.refresh.context import BatchContext, KeptBetweenBatches, Rebuild, Report, SqlChanged
from livemart.refresh.frontier import (
    check_landed,
    find_rebuilds,
    resting_models,
    returning_models,
)
from livemart.refresh.inputs import PinnedInputs, pin_inputs
from livemart.refresh.models import carried, refresh_models, waiting_models
from livemart.run.batch_questions import BatchQuestions
from livemart.run.dbt_builds import build_models, build_seeds, build_snapshot
from livemart.run.draft import SnapshotDraft, draft_snapshot, table_versions
from livemart.run.runtime import Runtime, selection_empty
from livemart.spark.catalog import register
from livemart.state.drift import Drift
from livemart.state.run_starts import run_start
from livemart.state.snapshots import LEFT_OUT, ModelState, SetAside, Snapshot


@dataclass(slots=True)
class BatchRecord:
    """What a micro-batch has done up to now, whatever becomes of it; all by unique id.

    `states`: models that a refresh has ended with; `under_way`: those that it has begun, or that
    have failed; `ended_at`: when models and tests ended; `built`: what dbt says of a build.
    """

    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    states: dict[str, ModelState] = field(default_factory=dict)
    under_way: dict[str, None] = field(default_factory=dict)
    ended_at: dict[str, datetime] = field(default_factory=dict)
    built: dict[str, NodeResult] = field(default_factory=dict)

    def model_changed(self, unique_id: str, word: str, state: ModelState | None) -> None:
        """Note that the refresh of a model began, or ended in `state`; from several threads."""
        if word == "started":
            self.under_way[unique_id] = None
        elif state is not None:
            self.states[unique_id], self.ended_at[unique_id] = state, datetime.now(UTC)
            self.under_way.pop(unique_id, None)


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The result of a micro-batch. `snapshot` is None if there was nothing to do.

    Then `checks` are those of a held snapshot that stays held. `drift_before`: what the snapshot
    before this one has told already.
    """

    batch_id: int
    snapshot: Snapshot | None
    checks: Mapping[str, TestResult] = field(default_factory=dict)
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)
    record: BatchRecord = field(default_factory=BatchRecord)
    drift_before: Mapping[str, Drift] = field(default_factory=dict)

    @property
    def is_held(self) -> bool:
        """True if readers do not see this snapshot."""
        return self.snapshot is not None and self.snapshot.status == "held"


@dataclass(slots=True)
class BatchRunner:
    """Runs landed micro-batches of one epoch, one after the other.

    `kept`: what stays from batch to batch; `selected`: models to rebuild in the first batch
    whatever their state; `left_out`: models that are set aside, though nothing is wrong with them;
    `runs_again`: a batch in which a model failed is run again by itself; `is_outdated`: whether the
    project as it is written is not the one that runs; `step` is told what a build does when its
    models are done, and `checked` of each data test as it ends. `record` is of the micro-batch
    under way.
    """

    runtime: Runtime
    epoch: str
    now: Callable[[], datetime]
    report: Report
    kept: KeptBetweenBatches
    selected: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    runs_again: bool = False
    is_outdated: Callable[[], bool] = lambda: False
    step: Callable[[str], None] = lambda text: None
    checked: CheckReport = lambda unique_id, result: None
    record: BatchRecord = field(init=False, default_factory=BatchRecord)
    # What was asked when the project was read may be older than its views.
    _has_asked: bool = False

    def refresh(self, batch: LandedBatch) -> BatchOutcome:
        """Bring every model up to `batch` and append the snapshot row; nothing if nothing changed.

        Raises:
            StateError: LANDED_TABLE_LOST, LANDED_TABLE_CHANGED.
            RefreshError: a model could not be refreshed.
        """
        self.record = BatchRecord()
        started_at = self.record.began_at
        runtime, newest = self.runtime, self.runtime.log.newest()
        if newest is None:
            return self.build(batch)
        if newest.epoch == self.epoch and newest.batch_id >= batch.batch_id:
            return BatchOutcome(batch.batch_id, None)
        check_landed(newest, runtime.landed_relations, runtime.warehouse, self.epoch)
        if runtime.dbt.of_the_run:
            root = runtime.settings.warehouse
            started_at = run_start(root, self.epoch, batch.batch_id, started_at)
        runtime.dbt.run = run_of(self.epoch, batch.batch_id, started_at)
        context = self._context(batch.batch_id, {})
        draft = draft_snapshot(runtime, context, batch, newest, started_at=started_at, now=self.now)
        questions = BatchQuestions(runtime, asks_all=not self._has_asked)
        while True:
            if runtime.dbt.project != runtime.project:
                runtime.adopt(runtime.dbt.project)
                questions.refuse_policies()
            try:
                outcome = self._refresh(batch, newest, draft, questions)
            except SqlChanged:
                # What it has committed carries this batch, and is not made again.
                continue
            self._has_asked, self.selected = True, frozenset()
            return outcome

    def _refresh(
        self,
        batch: LandedBatch,
        newest: Snapshot,
        draft: SnapshotDraft,
        questions: BatchQuestions,
    ) -> BatchOutcome:
        runtime = self.runtime
        runtime.plans.renew()
        resting = resting_models(newest, runtime.fingerprints, self.selected)
        resting |= self._left_out(newest)
        rebuilds = self._find_rebuilds(newest, batch.batch_id, resting)
        if self.is_outdated():
            resting |= self._left_alone(newest, rebuilds)
        for unique_id in (self.selected & newest.models.keys()) - rebuilds.keys() - resting.keys():
            state = newest.models[unique_id]
            rebuilds[unique_id] = Rebuild("SELECTED", "named by --select", state.generation + 1)
        rebuilds |= returning_models(newest, resting, rebuilds)
        context = replace(
            self._context(batch.batch_id, rebuilds),
            snapshot_id=newest.snapshot_id + 1,
            frontier_at=newest.finished_at,
            behind=newest.set_aside,
            resting=resting,
        )
        previous = runtime.prover.unedited(newest.tests, newest.test_fingerprints)
        stored = {key for key, model in runtime.project.models.items() if model.is_stored}
        has_same_nodes = (
            newest.models.keys() | newest.set_aside.keys() == stored
            and previous.keys() == runtime.project.tests.keys()
        )
        # Rows of a held snapshot that depend on its run would be told of another one.
        is_of_a_run = newest.status == "held" and bool(runtime.dbt.of_the_run)
        if has_same_nodes and not rebuilds and not draft.has_news and not is_of_a_run:
            return self._release(draft, previous)
        questions.begin_run()
        seeds, lost = build_seeds(runtime, rebuilds)

        def ask(unique_id: str, inputs: PinnedInputs) -> None:
            questions.ask(unique_id, inputs, asks_all=unique_id in rebuilds)
            if runtime.project.models[unique_id].materialized == "snapshot":
                with questions.one_dbt:
                    build_snapshot(runtime, unique_id)

        context = replace(context, done=seeds, lost=lost | questions.lost, before_model=ask)
        runtime.plans.renew()
        inputs = pin_inputs(context, runtime.plans, newest, draft.sources)
        done = refresh_models(context, runtime.plans, inputs)
        questions.ask_views(inputs)
        self._refuse_writes_between(newest, batch.batch_id, rebuilds, resting)
        before = table_versions(runtime.project, newest)
        for unique_id in rebuilds:
            before.pop(runtime.project.models[unique_id].relation, None)
        snapshot = replace(draft.snapshot("refresh", done.states), set_aside=done.set_aside)
        if any(rebuild.code == "NEW_MODEL" for rebuild in rebuilds.values()):
            register(runtime.spark, runtime.settings.warehouse, runtime.project)
        return self._finish(snapshot, before, previous, rebuilds)

    def build(self, batch: LandedBatch) -> BatchOutcome:
        """Run the whole project through dbt on the landed tables and append one snapshot row.

        Raises:
            RefreshError: MODEL_FAILED, with dbt's own message; no row is appended.
        """
        self.record = BatchRecord()
        started_at = self.record.began_at
        runtime, newest = self.runtime, self.runtime.log.newest()
        context = self._context(batch.batch_id, {})
        draft = draft_snapshot(runtime, context, batch, newest, started_at=started_at, now=self.now)
        runtime.dbt.run = run_of(self.epoch, batch.batch_id, started_at)
        if tests := runtime.dbt.of_the_run & runtime.project.tests.keys():
            runtime.adopt(runtime.dbt.compile_again(tests))
        aside = self._left_out(None)
        left_out = runtime.project.with_views(aside.keys())
        models = build_models(runtime, newest, self.record.built, left_out=left_out)
        self.step("running the data tests")
        snapshot = replace(draft.snapshot("build", models), set_aside=aside)
        return self._finish(snapshot, {}, {}, {})

    def _left_out(self, newest: Snapshot | None) -> dict[str, SetAside]:
        """Return the stored models that are left out, or read one that is, by unique id.

        A seed or a dbt snapshot that nobody has edited stays as it is in any case. What failed
        before is told as failed.

        Raises:
            ConfigError: SELECTION_EMPTY, if nothing is left to refresh.
        """
        project, fingerprints = self.runtime.project, self.runtime.fingerprints
        states = newest.models if newest else {}
        stays = {
            key
            for key, model in project.models.items()
            if model.materialized in ("seed", "snapshot")
            and key in states
            and states[key].fingerprint == fingerprints[key]
        }
        aside: dict[str, SetAside] = {}
        for key, cause in waiting_models(self.runtime.plans, self.left_out, stays).items():
            known = newest.set_aside.get(key) if newest else None
            refreshed_at = newest.finished_at if newest and key in states else None
            aside[key] = SetAside(
                since=known.since if known else newest.snapshot_id + 1 if newest else 1,
                refreshed_at=known.refreshed_at if known else refreshed_at,
                fingerprint=fingerprints[key],
                cause=cause,
                message=LEFT_OUT,
            )
            if known is not None and not known.is_left_out and known.cause == key:
                aside[key] = known
        stored = {key for key, model in project.models.items() if model.is_stored}
        if aside and not stored - self.left_out - aside.keys():
            raise selection_empty(
                self.runtime.settings.selection,
                "what it names waits for models that it leaves out",
            )
        return aside

    def _release(self, draft: SnapshotDraft, previous: Mapping[str, str]) -> BatchOutcome:
        """Publish the rows of a held snapshot once no test holds them any more.

        A test may be gone or edited, or read a table that no batch looks at.
        """
        newest = draft.newest
        nothing = BatchOutcome(draft.batch.batch_id, None)
        if newest is None or newest.status != "held":
            return nothing
        states = {key: carried(state) for key, state in newest.models.items()}
        snapshot = replace(draft.snapshot("refresh", states), set_aside=newest.set_aside)
        # Not told: each batch looks again, and as a rule nothing has changed.
        before = table_versions(self.runtime.project, newest)
        checks = self._check(snapshot, before, previous, self._note_check)
        if any(check.holds for check in checks.values()):
            return replace(nothing, checks=checks)
        return self._append(snapshot, checks, {})

    def _left_alone(self, newest: Snapshot, rebuilds: dict[str, Rebuild]) -> dict[str, SetAside]:
        """Take the tables out of `rebuilds` that another writer has built, maybe from newer SQL.

        The project as it is written cannot be read: what runs must not put older rows back.
        """
        aside: dict[str, SetAside] = {}
        for unique_id in [key for key, it in rebuilds.items() if it.code == "CHANGED_OUTSIDE"]:
            message = f"{rebuilds.pop(unique_id).message}, and the edited project cannot be read"
            known = newest.set_aside.get(unique_id)
            aside[unique_id] = known or SetAside(
                since=newest.snapshot_id + 1,
                refreshed_at=newest.finished_at,
                fingerprint=self.runtime.fingerprints[unique_id],
                cause=unique_id,
                message=message,
            )
        return aside

    def _find_rebuilds(
        self, newest: Snapshot, batch_id: int, resting: Container[str]
    ) -> dict[str, Rebuild]:
        runtime = self.runtime
        rebuilds = find_rebuilds(
            newest,
            runtime.project,
            runtime.fingerprints,
            runtime.warehouse,
            epoch=self.epoch,
            batch_id=batch_id,
        )
        return {key: rebuild for key, rebuild in rebuilds.items() if key not in resting}

    def _refuse_writes_between(
        self,
        newest: Snapshot,
        batch_id: int,
        rebuilds: Mapping[str, Rebuild],
        resting: Container[str],
    ) -> None:
        """Replay the batch if another writer committed to a model while it was refreshed.

        Once the row names a later version, no refresh would look at that commit again. Of a dbt
        snapshot the row names the version that was read, and it is dbt that writes it.

        Raises:
            TableChangedError: TABLE_CHANGED.
        """
        for unique_id, rebuild in self._find_rebuilds(newest, batch_id, resting).items():
            if self.runtime.project.models[unique_id].materialized == "snapshot":
                continue
            known = rebuilds.get(unique_id)
            if known is None or known.generation < rebuild.generation:
                raise TableChangedError(
                    "TABLE_CHANGED",
                    f"{rebuild.message}, while batch {batch_id} was refreshed",
                    hint="nothing to do: the batch is run again and rebuilds the model",
                )

    def _finish(
        self,
        snapshot: Snapshot,
        before: Mapping[str, int],
        previous: Mapping[str, str],
        rebuilds: Mapping[str, Rebuild],
    ) -> BatchOutcome:
        """Check, decide whether readers may see it, and append the row: this publishes it."""
        failpoint("checks.before")
        checks = self._check(snapshot, before, previous, self._checked)
        failpoint("checks.after")
        return self._append(snapshot, checks, rebuilds)

    def _check(
        self,
        snapshot: Snapshot,
        before: Mapping[str, int],
        previous: Mapping[str, str],
        report: CheckReport,
    ) -> dict[str, TestResult]:
        runtime = self.runtime
        if changed := BatchQuestions(runtime, asks_all=True).ask_for_tests():
            runtime.adopt(runtime.dbt.project)
            previous = {key: it for key, it in previous.items() if key not in changed}
        varies = runtime.project.differs_with_run
        previous = {key: it for key, it in previous.items() if not varies(key)}
        now = table_versions(runtime.project, snapshot)
        checks = run_checks(
            runtime.spark,
            runtime.warehouse,
            runtime.prover,
            CheckedVersions(before, now),
            previous,
            waiting=runtime.project.with_views(snapshot.set_aside.keys()),
            report=report,
        )
        newest = runtime.log.newest()
        if newest is None or newest.status != "held":
            return checks
        return checks | self._held_on(snapshot, newest, checks)

    def _held_on(
        self, snapshot: Snapshot, newest: Snapshot, checks: Mapping[str, TestResult]
    ) -> dict[str, TestResult]:
        """Return the tests that go on holding the held `newest`, though they wait.

        They have not passed on rows that no reader has seen, of a model that is set aside.
        """
        project, published = self.runtime.project, self.runtime.log.newest_published()
        seen = published.models if published else {}
        unseen = project.with_views(
            {
                key
                for key in snapshot.set_aside.keys() & snapshot.models.keys()
                if key not in seen or seen[key].version != snapshot.models[key].version
            }
        )
        told = TestResult("fail", None, "unchanged", "has not passed, and waits for its model")
        return {
            key: told
            for key, check in checks.items()
            if check.status == "waits"
            and newest.tests.get(key) not in ("pass", "warn")
            and (test := project.tests[key]).severity == "error"
            and not unseen.isdisjoint(test.depends_on)
        }

    def _append(
        self,
        snapshot: Snapshot,
        checks: Mapping[str, TestResult],
        rebuilds: Mapping[str, Rebuild],
    ) -> BatchOutcome:
        runtime = self.runtime
        is_held = any(check.holds for check in checks.values())
        snapshot = replace(
            snapshot,
            tests={unique_id: check.status for unique_id, check in checks.items()},
            test_fingerprints=runtime.prover.fingerprints,
            status="held" if is_held else "published",
            finished_at=datetime.now(UTC),
        )
        newest = runtime.log.newest()
        failpoint("snapshot.before")
        runtime.log.append(snapshot)
        failpoint("snapshot.after")
        record, self.record = self.record, BatchRecord()
        before = newest.drift if newest is not None else {}
        return BatchOutcome(snapshot.batch_id, snapshot, checks, rebuilds, record, before)

    def _report(self, unique_id: str, word: str, state: ModelState | None = None, /) -> None:
        self.record.model_changed(unique_id, word, state)
        self.report(unique_id, word, state)

    def _checked(self, unique_id: str, result: TestResult) -> None:
        self._note_check(unique_id, result)
        self.checked(unique_id, result)

    def _note_check(self, unique_id: str, result: TestResult) -> None:
        self.record.ended_at[unique_id] = datetime.now(UTC)

    def _context(self, batch_id: int, rebuilds: Mapping[str, Rebuild]) -> BatchContext:
        runtime = self.runtime
        return BatchContext(
            runtime.spark,
            runtime.warehouse,
            self.epoch,
            batch_id,
            runtime.settings.lane,
            runtime.settings.small_lane_rows,
            runtime.settings.threads,
            rebuilds,
            {
                runtime.project.models[unique_id].relation: fingerprint
                for unique_id, fingerprint in runtime.fingerprints.items()
            },
            report=self._report,
            kept=self.kept,
            attempts=runtime.settings.attempts,
            runs_again=self.runs_again,
        )
