"""Keeps a project fresh until it is stopped, while analysts edit it.

Used by the commands and the demo. Edits are taken over between two micro-batches. An edit that
cannot be taken over is reported, and the project from before runs on.

Edits are read once the files of the project have settled. One that cannot be read is reported once
and kept for `status`, until the files change again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from threading import Event
from time import monotonic

from livemart.errors import LivemartError
from livemart.project.sessions import keep_sessions
from livemart.run.events import EditRefused, EditTaken, PlanChange, ReportEvent, StepBegan
from livemart.run.pipeline import Interruption, Pipeline, RunOutcome
from livemart.run.replays import ProjectEdited
from livemart.run.runtime import Runtime, reread
from livemart.spark.catalog import register
from livemart.state.refusals import ProjectRefusal, clear_refusal, note_refusal

_LOOK_SECONDS = 1.0


class Stream(Interruption):
    """The course of a stream.

    Args:
        pipeline: of the project as it is now; its `stop` ends the stream.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        # The pipeline from before an edit on which no micro-batch has run yet.
        self._before: Pipeline | None = None
        self._edited: Runtime | None = None
        self._follower = Follower(pipeline.runtime, pipeline.report)

    def run(self, every: timedelta) -> RunOutcome:
        """Refresh until `stop` is set; a late micro-batch is never queued.

        A micro-batch that takes longer than the interval is followed by the next one at once, with
        the newest `as_of`. It lands everything that was delivered in between.
        """
        done, stop = RunOutcome(), self._pipeline.stop
        again: frozenset[str] = frozenset()
        while not stop.is_set():
            selected, again = again, frozenset()
            try:
                self._pipeline.follow(every, done, self, selected=selected)
            except ProjectEdited:
                self._edited = self._edited or self._follower.settle(stop)
            except LivemartError as error:
                # The edit was read but cannot begin: say, a source does not fit its table.
                if self._before is None:
                    raise
                self._follower.give_up(self._before.runtime, error)
                again = self._go_on(self._before)
                self._before = None
            if self._edited is not None:
                self._before, edited, self._edited = self._pipeline, self._edited, None
                again = self._go_on(self._pipeline.adopting(edited))
        return done

    def is_due(self) -> bool:
        """Return True if an edit waits to be taken over."""
        self._edited = self._edited or self._follower.look()
        return self._edited is not None

    def refuse_outdated(self) -> None:
        """Raise ProjectEdited if the files are not those that were read."""
        if self._follower.has_edits():
            raise ProjectEdited("the project was edited")

    def is_outdated(self) -> bool:
        """Return True while an edit is refused."""
        return self._follower.refusal is not None

    def succeeded(self) -> None:
        """Note that a micro-batch has run: there is no way back to the project before."""
        self._before = None

    def _go_on(self, pipeline: Pipeline) -> frozenset[str]:
        """Go on with another project; return the models that are set aside, to try again."""
        self._pipeline, runtime = pipeline, pipeline.runtime
        keep_sessions(runtime.spark, runtime.project.sessions)
        newest = runtime.log.newest()
        aside = newest.set_aside.keys() if newest else set[str]()
        return frozenset(aside & runtime.plans.stored.keys())


class Follower:
    """Looks for edits of one project, and reads them.

    `refusal` says why an edit of the project does not run; None if the project runs as written.
    """

    def __init__(self, runtime: Runtime, report: ReportEvent) -> None:
        self._runtime = runtime
        self._report = report
        # The files of the project that was read last: it runs, or was refused.
        self._read_at = self._last_look = runtime.read_at
        self._looks_at = 0.0
        self._edited_files: list[str] = []
        self.refusal: str | None = None

    def has_edits(self) -> bool:
        """Return True if the files are not those that were read last."""
        return self._runtime.files.look() != self._read_at

    def look(self) -> Runtime | None:
        """Return the process with an edited project, once its files have settled.

        None if no file was edited, or the edited project cannot be read, or means the same.
        """
        if monotonic() < self._looks_at:
            return None
        self._looks_at = monotonic() + _LOOK_SECONDS
        look = self._runtime.files.look()
        is_settled, self._last_look = look == self._last_look, look
        if look == self._read_at or not is_settled:
            return None
        return self._read()

    def settle(self, stop: Event) -> Runtime | None:
        """Wait until the files have settled; return the process with the edited project."""
        while self.has_edits() and not stop.wait(_LOOK_SECONDS):
            if (edited := self.look()) is not None:
                return edited
        return None

    def give_up(self, before: Runtime, error: Exception) -> None:
        """Refuse the edited project, on which no micro-batch has run, and go back to this one."""
        self._runtime = before
        self._refuse(self._edited_files, error)
        register(before.spark, before.settings.warehouse, before.project)

    def _read(self) -> Runtime | None:
        runtime = self._runtime
        files = runtime.files.changed(self._read_at, self._last_look)
        self._read_at = self._last_look
        self._report(StepBegan("reading the edited project"))
        try:
            edited = reread(runtime)
        except Exception as error:
            # No edit ends the stream, whatever fault of dbt or of the planner it causes.
            self._refuse(files, error)
            return None
        self.refusal = None
        clear_refusal(runtime.settings.warehouse)
        self._read_at = edited.read_at
        changes = plan_changes(runtime, edited)
        if edited.project == runtime.project:
            return None
        self._report(EditTaken(files, changes))
        register(edited.spark, edited.settings.warehouse, edited.project)
        self._runtime, self._edited_files = edited, files
        return edited

    def _refuse(self, files: Sequence[str], error: Exception) -> None:
        self.refusal = str(error)
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        note_refusal(
            self._runtime.settings.warehouse, ProjectRefusal(at, tuple(files), self.refusal)
        )
        self._report(EditRefused(files, error))


def plan_changes(before: Runtime, after: Runtime) -> list[PlanChange]:
    """Return the models and tests that an edit changes, models first, in dependency order."""
    was = {**before.fingerprints, **before.prover.fingerprints}
    now = {**after.fingerprints, **after.prover.fingerprints}
    strategies = {key: plan.strategy.name for key, plan in after.plans.models.items()}
    changes = [
        PlanChange(key, "changed" if key in was else "new", strategies.get(key))
        for key, fingerprint in now.items()
        if was.get(key) != fingerprint
    ]
    return changes + [PlanChange(key, "gone") for key in sorted(was.keys() - now.keys())]
