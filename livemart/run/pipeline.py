"""Runs a project in one of three ways: build, one refresh, and the stream that runs until stopped.

Used by the commands and the demo. All three land through the same checkpoint, and hand each
snapshot to the publisher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Literal, Protocol

from livemart.check.checks import TestResult
from livemart.delta.tags import Tags
from livemart.errors import LivemartError
from livemart.failpoints import failpoint
from livemart.land.landing import LandedBatch, Landing
from livemart.land.tables import require_fitting
from livemart.land.uncounted import UncountedBatches
from livemart.project.sessions import keep_sessions
from livemart.publish.publications import Publications
from livemart.refresh.frontier import check_landed
from livemart.run.artifacts import write_artifacts, write_failure
from livemart.run.batch import BatchOutcome, BatchRunner
from livemart.run.follower import Follower, PlanChange, ProjectEdited
from livemart.run.idle import note_pass, waiting_files
from livemart.run.replays import Replays, Stopped
from livemart.run.runtime import Runtime
from livemart.run.source_freshness import renew_freshness
from livemart.spark.catalog import register
from livemart.state.checkpoint import Epoch, Recorded, open_checkpoint
from livemart.state.snapshots import ModelState, Snapshot

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.2
_KEPT_OUTCOMES = 100


class Watcher(Protocol):
    """Is told about the course of a run."""

    def step(self, text: str) -> None: ...
    def landing_began(self, batch_id: int, files: int) -> None: ...
    def landed(self, batch: LandedBatch) -> None: ...
    def batch_began(self, batch_id: int) -> None: ...
    def model_changed(
        self, unique_id: str, word: str, state: ModelState | None = None, /
    ) -> None: ...
    def check_ended(self, unique_id: str, result: TestResult, /) -> None: ...
    def batch_ended(self, outcome: BatchOutcome) -> None: ...
    def publishing(self, snapshot_id: int | None, /) -> None: ...
    def retrying(self, error: BaseException, failures: int, attempts: int) -> None: ...
    def project_edited(self, files: Sequence[str], changes: Sequence[PlanChange]) -> None: ...
    def project_refused(self, files: Sequence[str], error: Exception) -> None: ...


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
        return 0 if all(it.is_left_out for it in aside) else 1


class Pipeline:
    """Lands and refreshes through one checkpoint.

    Args:
        runtime: the warm process; the lock is held.
        watcher: is told what happens.
        now: the wall clock, UTC.
        stop: set from a signal handler; a micro-batch under way is finished, none is begun.
        abandon: set by a second signal; the micro-batch under way is given up as well.
        leaves_out: what the settings do not select is set aside, and not refreshed.
    """

    def __init__(
        self,
        runtime: Runtime,
        watcher: Watcher,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        stop: Event | None = None,
        abandon: Event | None = None,
        leaves_out: bool = False,
    ) -> None:
        self._runtime = runtime
        self._watcher = watcher
        self._now = now
        self._stop = stop or Event()
        self._abandon = abandon or Event()
        self._publications = self._open_publications()
        self._leaves_out = leaves_out
        self._follower: Follower | None = None
        # What the stream goes on with: an edited project, or the one before it.
        self._next: Runtime | None = None
        self._replays = self._open_replays()

    def build(self, *, new_epoch: bool = False) -> RunOutcome:
        """Land all that waits, build the whole project with dbt, append one snapshot row.

        Args:
            new_epoch: begin with a new checkpoint and read all of the landing folder again.

        Raises:
            StateError: CHECKPOINT_*, LANDED_TABLE_LOST.
            RefreshError: MODEL_FAILED.
        """
        files = waiting_files(self._runtime.settings)
        with self._publications:
            done = self._build(new_epoch=new_epoch)
        note_pass(self._runtime, files, is_published=self._publications.is_complete)
        return done

    def _build(self, *, new_epoch: bool) -> RunOutcome:
        runner = self._runner(self._open_epoch(new_epoch), accept_changes=True, new_epoch=new_epoch)
        with self._failures_told(runner, "build"):
            batch = self._land_all(runner)
            outcome = runner.build(batch)
        self._uncounted(runner).forget(batch.batch_id)
        self._publications.offer(outcome.snapshot)
        failpoint("batch.end")
        self._end_batch(outcome)
        return RunOutcome([outcome])

    def refresh(self, *, selected: frozenset[str] = frozenset()) -> RunOutcome:
        """Land what waits and refresh every model, micro-batch by micro-batch; then return.

        Args:
            selected: models to rebuild in any case (`build --select`).
        """
        if self._runtime.log.newest() is None:
            return self.build()
        done = RunOutcome()
        files = waiting_files(self._runtime.settings)
        with self._publications:
            runner = self._runner(self._open_epoch(False), accept_changes=False)
            runner.selected = selected
            self._run(runner, "available_now", done)
        if not self._stop.is_set():
            note_pass(self._runtime, files, is_published=self._publications.is_complete)
        return done

    def stream(self, every: timedelta) -> RunOutcome:
        """Refresh at every interval until told to stop; a late micro-batch is never queued.

        A micro-batch that takes longer than the interval is followed by the next one at once, with
        the newest `as_of`: what came in between is landed together. An edit of the project is taken
        over between two micro-batches; one that cannot be is told, and what ran goes on. A source
        that is away is waited for.
        """
        done = RunOutcome()
        self._replays = self._open_replays(waits_for_sources=True)
        with self._publications:
            if self._runtime.log.newest() is None:
                done.outcomes += self._build(new_epoch=False).outcomes
        self._follower = Follower(self._runtime, self._watcher)
        selected: frozenset[str] = frozenset()
        while not self._stop.is_set():
            self._next = None
            try:
                with self._publications:
                    runner = self._runner(self._open_epoch(False), accept_changes=False)
                    runner.runs_again = True
                    runner.selected = selected
                    runner.refusal = self._follower.refusal
                    self._run(runner, every, done)
            except LivemartError as error:
                # What could be read, but not begun with: sources that do not fit their tables.
                if (before := self._follower.give_up(error)) is None:
                    raise
                self._next = before
            if self._next is None:
                break
            selected = self._adopt(self._next)
        return done

    def _adopt(self, runtime: Runtime) -> frozenset[str]:
        """Go on with this project; return the models to try again, whatever became of them."""
        if runtime is self._runtime:
            return frozenset()
        self._runtime = runtime
        keep_sessions(runtime.spark, runtime.project.sessions)
        self._publications = self._open_publications()
        newest = runtime.log.newest()
        return (
            frozenset(newest.set_aside) & runtime.project.models.keys() if newest else frozenset()
        )

    def _open_publications(self) -> Publications:
        runtime = self._runtime
        return Publications(
            runtime.project,
            runtime.warehouse,
            runtime.log,
            runtime.settings,
            self._abandon,
            self._watcher.publishing,
        )

    def _open_replays(self, *, waits_for_sources: bool = False) -> Replays:
        attempts, told = self._runtime.settings.attempts, self._watcher.retrying
        return Replays(attempts, self._stop, told, waits_for_sources=waits_for_sources)

    def _open_epoch(self, new_epoch: bool) -> Epoch:
        runtime = self._runtime
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
        warehouse = self._runtime.warehouse
        return any(
            warehouse.is_tagged(relation, Tags(newest.epoch, batch_id).rows(relation))
            for relation in self._runtime.landed_relations
            if warehouse.exists(relation)
        )

    def _runner(
        self, epoch: Epoch, *, accept_changes: bool, new_epoch: bool = False
    ) -> BatchRunner:
        """Look at the landed tables before anything is landed on top of them."""
        runtime = self._runtime
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
            self._now,
            self._watcher.model_changed,
            left_out=runtime.left_out if self._leaves_out else frozenset(),
            step=self._watcher.step,
            checked=self._watcher.check_ended,
        )

    def _landing(self) -> Landing:
        runtime = self._runtime
        return Landing(
            runtime.spark,
            runtime.warehouse,
            runtime.settings.landing,
            list(runtime.project.sources.values()),
            runtime.settings,
            now=self._now,
        )

    def _land_all(self, runner: BatchRunner) -> LandedBatch:
        """Land everything that waits; the models wait for the last micro-batch."""
        batches: list[LandedBatch] = []
        uncounted = self._uncounted(runner)

        def collect(batch: LandedBatch) -> None:
            self._refuse_if_stopped()
            self._watcher.landed(batch)
            uncounted.keep(batch)
            batches.append(batch)

        self._drive(collect, "available_now")
        self._refuse_if_stopped()
        return uncounted.merge(batches, self._runtime.log.newest())

    def _uncounted(self, runner: BatchRunner) -> UncountedBatches:
        return UncountedBatches(self._runtime.warehouse.root, runner.epoch)

    def _run(
        self, runner: BatchRunner, trigger: Literal["available_now"] | timedelta, done: RunOutcome
    ) -> None:
        uncounted = self._uncounted(runner)

        def run(batch: LandedBatch) -> None:
            self._refuse_if_stopped()
            if self._follower is not None and self._follower.has_edits():
                raise ProjectEdited("the project was edited")
            self._watcher.landed(batch)
            self._watcher.batch_began(batch.batch_id)
            outcome = runner.refresh(uncounted.merge([batch], self._runtime.log.newest()))
            if outcome.snapshot is not None:
                uncounted.forget(batch.batch_id)
            runner.selected = frozenset()
            self._publications.offer(outcome.snapshot)
            failpoint("batch.end")
            done.outcomes.append(outcome)
            del done.outcomes[:-_KEPT_OUTCOMES]
            self._replays.succeeded()
            if self._follower is not None:
                self._follower.succeeded()
            self._end_batch(outcome)

        with self._failures_told(runner, "refresh"):
            self._drive(run, trigger)

    @contextmanager
    def _failures_told(self, runner: BatchRunner, command: str) -> Iterator[None]:
        """Write what was done into dbt's artifacts if it comes to no snapshot."""
        try:
            yield
        except Exception as error:
            if not self._stop.is_set():
                write_failure(self._runtime, runner.record, error, command)
            raise

    def _end_batch(self, outcome: BatchOutcome) -> None:
        if outcome.snapshot is None:
            renew_freshness(self._runtime.dbt.target_dir, self._now())
        else:
            write_artifacts(self._runtime, outcome.snapshot, outcome.checks, outcome.record)
        self._watcher.batch_ended(outcome)

    def _drive(
        self, body: Callable[[LandedBatch], None], trigger: Literal["available_now"] | timedelta
    ) -> None:
        """Run the landing stream to its end or until stopped; replay what a transient fault hit.

        Starting the stream again replays the micro-batch that failed, from the same frontier.
        """
        self._watcher.step("looking for records")
        self._replays.run(lambda: self._await(body, trigger))

    def _await(
        self, body: Callable[[LandedBatch], None], trigger: Literal["available_now"] | timedelta
    ) -> None:
        if self._follower is not None and (edited := self._follower.look()):
            self._next = edited
            return
        landing = self._landing()
        is_cut = self._await_query(landing, body, trigger)
        # What waited in a record log is landed in bounded steps, one a query.
        while not self._is_ending() and (
            is_cut or (trigger == "available_now" and landing.is_behind())
        ):
            is_cut = self._await_query(landing, body, trigger)

    def _is_ending(self) -> bool:
        return self._stop.is_set() or self._next is not None

    def _await_query(
        self,
        landing: Landing,
        body: Callable[[LandedBatch], None],
        trigger: Literal["available_now"] | timedelta,
    ) -> bool:
        """Wait until the query has ended; True if another one is to go on with other limits."""
        query = landing.stream(
            self._runtime.checkpoint,
            body,
            trigger=trigger,
            began=self._watcher.landing_began,
            retyped=self._remake_views,
        )
        try:
            # Seconds may be a fraction, whatever its annotation says.
            while not query.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
                if self._stop.is_set():
                    self._end(landing, query)
                    return False
                if self._follower is not None and (edited := self._follower.look()):
                    self._end(landing, query)
                    self._next = edited
                    return False
                if landing.has_other_limits():
                    self._end(landing, query)
                    return True
            return False
        except Exception as error:
            # Across the JVM only its text arrives.
            if isinstance(landing.failure, ProjectEdited) and self._follower is not None:
                self._next = self._next or self._follower.settle(self._stop) or self._runtime
                return False
            if landing.failure is not None:
                raise landing.failure from error
            raise
        finally:
            if query.isActive:
                query.stop()

    def _end(self, landing: Landing, query: StreamingQuery) -> None:
        """Let the micro-batch under way come to its end, then stop; `abandon` does not wait."""
        # Else the next one could begin between the look and the stop, and be cut off.
        landing.end()
        while query.isActive and query.status["isTriggerActive"]:
            if self._abandon.wait(_POLL_SECONDS):
                self._runtime.spark.sparkContext.cancelAllJobs()
                break
        query.stop()

    def _remake_views(self) -> None:
        """Let Spark read the views anew: one keeps the columns and types that its inputs had."""
        runtime = self._runtime
        warehouse = runtime.settings.warehouse
        register(runtime.spark, warehouse, runtime.project, remakes_views=True)

    def _refuse_if_stopped(self) -> None:
        if self._stop.is_set():
            raise Stopped("told to stop")
