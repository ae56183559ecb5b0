"""Keeps a project fresh until it is stopped, while analysts edit it.

Used by the commands and the demo. Edits are taken over between two micro-batches. An edit that
cannot be taken over is reported, and the project from before runs on.
"""

from __future__ import annotations

from datetime import timedelta

from livemart.errors import LivemartError
from livemart.project.sessions import keep_sessions
from livemart.run.follower import Follower
from livemart.run.pipeline import Interruption, Pipeline, RunOutcome
from livemart.run.replays import ProjectEdited
from livemart.run.runtime import Runtime


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
