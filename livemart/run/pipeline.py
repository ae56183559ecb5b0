"""Runs a project once: builds it, or refreshes it with all waiting or all coming records.

Used by the commands, and by `Stream` for as long as its project stays the same. Build and refresh
land through the same checkpoint, and hand each snapshot to the publisher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Literal

from livemart.delta.tags import Tags
from livemart.failpoints import failpoint
from livemart.land.landing import LandedBatch, Landing
from livemart.land.sources.files.stream import is_refused_name
from livemart.land.tables import require_fitting
from livemart.land.uncounted import UncountedBatches
from livemart.publish.publications import Publications
from livemart.refresh.frontier import check_landed
from livemart.run import events
from livemart.run.artifacts.run_results import write_artifacts, write_failure
from livemart.run.artifacts.source_freshness import renew_freshness
from livemart.run.batch import BatchRunner
from livemart.run.corrected_files import correct_files
from livemart.run.events import BatchOutcome, ReportEvent
from livemart.run.idle import note_pass
from livemart.run.input_files import waiting_files
from livemart.run.replays import ProjectEdited, Replays, Stopped
from livemart.run.runtime import Runtime
from livemart.run.upkeep import keep_up
from livemart.spark.catalog import register
from livemart.state.checkpoint import Epoch, Recorded, open_checkpoint
from livemart.state.project_graph import keep_graph
from livemart.state.snapshots import Snapshot

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.2
_KEPT_OUTCOMES = 100


class Interruption:
    """Decides between micro-batches whether a run is to end, and go on in another way.

    By itself it never does.
    """

    def is_due(self) -> bool:
        """Return True if no further micro-batch is to begin."""
        return False

    def is_outdated(self) -> bool:
        """Return True while the project as it is written cannot be read."""
        return False

    def refuse_outdated(self) -> None:
        """Raise ProjectEdited in a micro-batch that has begun, but must not run any more."""

    def succeeded(self) -> None:
        """Note that a micro-batch has run."""


@dataclass(slots=True)
class RunOutcome:
    """The result of a run: the outcome of each micro-batch, in order."""

    outcomes: list[BatchOutcome] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """1 if the newest snapshot is held, or this run's newest lacks a model against its will."""
        done = [outcome.snapshot for outcome in self.outcomes if outcome.snapshot]
        if any(check.holds for outcome in self.outcomes[-1:] for check in outcome.checks.values()):
            return 1
        aside = done[-1].set_aside.values() if done else ()
        return 0 if all(model.is_left_out for model in aside) else 1


@dataclass
class Pipeline:
    """Lands and refreshes through one checkpoint.

    Args:
        runtime: the warm process; the lock is held.
        report: takes the events of the run.
        now: the wall clock, UTC.
        stop: set from a signal handler; a micro-batch under way is finished, none is begun.
        abandon: set by a second signal; the micro-batch under way is given up as well.
        leaves_out: models that the settings do not select are set aside, and not refreshed.
    """

    runtime: Runtime
    report: ReportEvent
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    stop: Event = field(default_factory=Event)
    abandon: Event = field(default_factory=Event)
    leaves_out: bool = False
    _publications: Publications = field(init=False)

    def __post_init__(self) -> None:
        runtime = self.runtime
        keep_graph(runtime.settings.warehouse, runtime.project)
        self._publications = Publications(
            runtime.project,
            runtime.warehouse,
            runtime.log,
            runtime.settings,
            self.abandon,
            self._copying,
        )

    @contextmanager
    def _copying(self, snapshot_id: int) -> Iterator[None]:
        self.report(events.CopyBegan(snapshot_id))
        try:
            yield
        finally:
            self.report(events.CopyEnded())

    def adopting(self, runtime: Runtime) -> Pipeline:
        """Return the pipeline that goes on with an edited project."""
        return replace(self, runtime=runtime)

    def build(self, *, new_epoch: bool = False) -> RunOutcome:
        """Land all that waits, build the whole project with dbt, append one snapshot row.

        Args:
            new_epoch: begin with a new checkpoint and read all of the landing folder again.

        Raises:
            StateError: CHECKPOINT_*, LANDED_TABLE_LOST.
            RefreshError: MODEL_FAILED.
        """
        files = waiting_files(self.runtime.settings)
        with self._publications:
            done = self._build(self._replays(), new_epoch=new_epoch)
        note_pass(self.runtime, files, is_published=self._publications.is_complete)
        self.runtime.keep_project()
        return done

    def _build(self, replays: Replays, *, new_epoch: bool = False) -> RunOutcome:
        runner = self._runner(accept_changes=True, new_epoch=new_epoch)
        with self._writing_failures(runner, "build"):
            batch = self._land_all(runner, replays)
            outcome = runner.build(batch)
        self._uncounted(runner).forget(batch.batch_id)
        self._publications.offer(outcome.snapshot)
        failpoint("batch.end")
        self._end_batch(outcome)
        return RunOutcome([outcome])

    def refresh(self, *, selected: frozenset[str] = frozenset()) -> RunOutcome:
        """Land all that waits and refresh every model, micro-batch by micro-batch; then return.

        Args:
            selected: models to rebuild in any case (`build --select`).
        """
        if self.runtime.log.newest() is None:
            return self.build()
        done = RunOutcome()
        files = waiting_files(self.runtime.settings)
        with self._publications:
            runner = self._runner(selected=selected)
            self._run(runner, "available_now", done, self._replays(), Interruption())
        if not self.stop.is_set():
            note_pass(self.runtime, files, is_published=self._publications.is_complete)
            self.runtime.keep_project()
        return done

    def follow(
        self,
        every: timedelta,
        done: RunOutcome,
        interruption: Interruption,
        *,
        selected: frozenset[str] = frozenset(),
    ) -> None:
        """Refresh at every interval until `stop` is set, or interrupted.

        A project that was never built is built first. A source that is away is waited for.

        Args:
            every: from the begin of a micro-batch to that of the next one.
            done: gains the outcome of each micro-batch.
            interruption: is asked between micro-batches.
            selected: models to rebuild in the first one, whatever their state.

        Raises:
            ProjectEdited: a micro-batch had begun when the project was edited.
        """
        replays = self._replays(waits_for_sources=True)
        with self._publications:
            if self.runtime.log.newest() is None:
                done.outcomes += self._build(replays).outcomes
            if self.stop.is_set():
                return
            runner = self._runner(
                selected=selected, runs_again=True, is_outdated=interruption.is_outdated
            )
            self._run(runner, every, done, replays, interruption)

    def _replays(self, *, waits_for_sources: bool = False) -> Replays:
        return Replays(
            self.runtime.settings.attempts,
            self.stop,
            lambda *retry: self.report(events.BatchRetried(*retry)),
            waits_for_sources=waits_for_sources,
        )

    def _open_epoch(self, new_epoch: bool) -> Epoch:
        runtime = self.runtime
        # Before anything runs, and before the checkpoint is another one.
        require_fitting(
            runtime.warehouse,
            [source for source in runtime.project.sources.values() if source.stream],
        )
        recorded = None
        if newest := runtime.log.newest():
            recorded = Recorded(
                newest.epoch, newest.batch_id, lambda batch_id: self._is_landed(newest, batch_id)
            )
        return open_checkpoint(runtime.checkpoint, recorded, new_epoch=new_epoch)

    def _is_landed(self, newest: Snapshot, batch_id: int) -> bool:
        """Return True if a landed table carries this batch of the log's epoch, or a later one."""
        warehouse = self.runtime.warehouse
        return any(
            warehouse.is_tagged(relation, Tags(newest.epoch, batch_id).rows(relation))
            for relation in self.runtime.landed_relations
            if warehouse.exists(relation)
        )

    def _runner(
        self,
        *,
        accept_changes: bool = False,
        new_epoch: bool = False,
        selected: frozenset[str] = frozenset(),
        runs_again: bool = False,
        is_outdated: Callable[[], bool] = lambda: False,
    ) -> BatchRunner:
        """Open the checkpoint, and look at the landed tables before anything is landed on them."""
        runtime, epoch = self.runtime, self._open_epoch(new_epoch)
        newest = runtime.log.newest()
        if newest is not None and not new_epoch:
            check_landed(
                newest,
                runtime.landed_relations,
                runtime.warehouse,
                epoch.id,
                accept_changes=accept_changes,
            )
        return BatchRunner(
            runtime,
            epoch.id,
            self.now,
            self.report,
            selected=selected,
            left_out=runtime.left_out if self.leaves_out else frozenset(),
            runs_again=runs_again,
            is_outdated=is_outdated,
        )

    def _land_all(self, runner: BatchRunner, replays: Replays) -> LandedBatch:
        """Land everything that waits; the models wait for the last micro-batch."""
        batches: list[LandedBatch] = []
        uncounted = self._uncounted(runner)

        def collect(batch: LandedBatch) -> None:
            self._refuse_if_stopped()
            self.report(events.RecordsLanded(batch))
            uncounted.keep(batch)
            batches.append(batch)

        self.report(events.StepBegan("looking for records"))
        replays.run(lambda: self._await(collect, "available_now", Interruption()))
        self._refuse_if_stopped()
        return uncounted.merge(batches, self.runtime.log.newest())

    def _uncounted(self, runner: BatchRunner) -> UncountedBatches:
        return UncountedBatches(self.runtime.warehouse.place, runner.epoch)

    def _run(
        self,
        runner: BatchRunner,
        trigger: Literal["available_now"] | timedelta,
        done: RunOutcome,
        replays: Replays,
        interruption: Interruption,
    ) -> None:
        uncounted = self._uncounted(runner)

        def run(batch: LandedBatch) -> None:
            self._refuse_if_stopped()
            interruption.refuse_outdated()
            self.report(events.RecordsLanded(batch))
            self.report(events.BatchBegan(batch.batch_id))
            outcome = runner.refresh(uncounted.merge([batch], self.runtime.log.newest()))
            if outcome.snapshot is not None:
                uncounted.forget(batch.batch_id)
            self._publications.offer(outcome.snapshot)
            failpoint("batch.end")
            done.outcomes.append(outcome)
            del done.outcomes[:-_KEPT_OUTCOMES]
            replays.succeeded()
            interruption.succeeded()
            self._end_batch(outcome)

        self.report(events.StepBegan("looking for records"))
        with self._writing_failures(runner, "refresh"):
            replays.run(lambda: self._await(run, trigger, interruption))

    @contextmanager
    def _writing_failures(self, runner: BatchRunner, command: str) -> Iterator[None]:
        """Write dbt's artifacts of a micro-batch that fails without a snapshot."""
        try:
            yield
        except ProjectEdited:
            raise
        except Exception as error:
            if not self.stop.is_set():
                write_failure(self.runtime, runner.record, error, command)
            raise

    def _written_by_spark(self, snapshot: Snapshot) -> set[str]:
        """Return the tables of which Spark, for itself or for dbt, has written files."""
        written = set(self.runtime.warehouse.of_spark)
        for unique_id, state in snapshot.stored.items():
            query = self.runtime.plans.stored.get(unique_id)
            if query is None or state.strategy == "unchanged":
                continue
            if snapshot.kind == "build" or query.made_by != "sql":
                written.add(query.relation)
        return written

    def _end_batch(self, outcome: BatchOutcome) -> None:
        if outcome.snapshot is None:
            renew_freshness(self.runtime.dbt.target_dir, self.now())
        else:
            write_artifacts(self.runtime, outcome.snapshot, outcome.checks, outcome.record)
            correct_files(self.runtime.warehouse, self._written_by_spark(outcome.snapshot))
            keep_up(
                self.runtime.settings.warehouse,
                self.now(),
                lambda text: self.report(events.StepBegan(text)),
                self.runtime.settings.retention,
            )
        self.report(events.BatchEnded(outcome))

    def _await(
        self,
        body: Callable[[LandedBatch], None],
        trigger: Literal["available_now"] | timedelta,
        interruption: Interruption,
    ) -> None:
        """Run the landing stream to its end, or until stopped.

        Started again it replays the micro-batch that failed, from the same frontier.
        """
        if interruption.is_due():
            return
        runtime, is_cut = self.runtime, True
        landing = Landing(
            runtime.spark,
            runtime.warehouse,
            runtime.settings.landing,
            list(runtime.project.sources.values()),
            runtime.settings,
            now=self.now,
        )
        # Waiting records of a record log land in bounded steps, one a query.
        while is_cut or (trigger == "available_now" and landing.is_behind()):
            is_cut = self._await_query(landing, body, trigger, interruption)
            if self.stop.is_set():
                return

    def _await_query(
        self,
        landing: Landing,
        body: Callable[[LandedBatch], None],
        trigger: Literal["available_now"] | timedelta,
        interruption: Interruption,
    ) -> bool:
        """Wait until the query has ended; True if another one is to go on with other limits."""
        query = landing.stream(
            self.runtime.checkpoint,
            body,
            trigger=trigger,
            began=lambda batch_id, files: self.report(events.LandingBegan(batch_id, files)),
            retyped=self._remake_views,
        )
        try:
            # Seconds may be a fraction, whatever its annotation says.
            while not query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
                if self.stop.is_set() or interruption.is_due():
                    self._end(landing, query)
                    return False
                if landing.has_other_limits():
                    self._end(landing, query)
                    return True
            return False
        except Exception as error:
            # Across the JVM only its text arrives.
            if landing.failure is not None:
                raise landing.failure from error
            if is_refused_name(error):
                return True
            raise
        finally:
            if query.isActive:
                query.stop()

    def _end(self, landing: Landing, query: StreamingQuery) -> None:
        """Let the micro-batch under way end, then stop; `abandon` does not wait."""
        # Else the next one could begin between the look and the stop, and be cut off.
        landing.end()
        while query.isActive and query.status["isTriggerActive"]:
            if self.abandon.wait(_POLL_SECONDS):
                self.runtime.spark.sparkContext.cancelAllJobs()
                break
        query.stop()

    def _remake_views(self) -> None:
        """Let Spark read the views again: one keeps the columns and types that its inputs had."""
        runtime = self.runtime
        warehouse = runtime.settings.warehouse
        register(runtime.spark, warehouse, runtime.project, remakes_views=True)

    def _refuse_if_stopped(self) -> None:
        if self.stop.is_set():
            raise Stopped("told to stop")
