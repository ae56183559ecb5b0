"""Reads the edits of a project that runs, once its files have settled.

Used by the stream, between micro-batches. An edit that cannot be read is reported once and kept for
`status`, until the files change again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Event
from time import monotonic

from livemart.run.events import EditRefused, EditTaken, PlanChange, ReportEvent, StepBegan
from livemart.run.runtime import Runtime, reread
from livemart.spark.catalog import register
from livemart.state.refusals import ProjectRefusal, clear_refusal, note_refusal

_LOOK_SECONDS = 1.0


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
