"""Writes log events, a name and keys, as text or JSON lines on standard error.

Used by commands away from a terminal, and by every room that logs. The keys are those of the
measurements at `/metrics`, so that a number is found in both.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import structlog

if TYPE_CHECKING:
    from livemart.run.batch import BatchOutcome
    from livemart.run.follower import PlanChange

LogFormat = Literal["text", "json"]

_LOGFMT = structlog.processors.LogfmtRenderer(bool_as_flag=False)


class _StandardError:
    """Writes to whatever standard error is at that moment: a live table may stand in for it."""

    def msg(self, message: str) -> None:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()

    debug = info = warning = error = critical = exception = msg


def configure_logs(log_format: LogFormat, *, debug: bool = False) -> None:
    """Send every event of this process to standard error; without `debug`, from level info up."""
    renderer: structlog.typing.Processor = _render_text
    if log_format == "json":
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _plain_values,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("debug" if debug else "info"),
        logger_factory=lambda *_: _StandardError(),
        cache_logger_on_first_use=False,
    )


def _plain_values(
    logger: object, method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Times, paths and the like are written as text; the renderers escape line ends."""
    return {
        key: value if isinstance(value, int | float | bool | None) else str(value)
        for key, value in event.items()
    }


def _render_text(logger: object, method: str, event: structlog.typing.EventDict) -> str:
    """`2026-01-01T00:00:00Z info refresh_completed batch_id=42 rows_changed=118`."""
    opening = [event.pop(key) for key in ("timestamp", "level", "event")]
    keys = {key: value for key, value in event.items() if value is not None}
    return " ".join([*opening, str(_LOGFMT(logger, method, keys))]).rstrip()


class LogWatcher:
    """Tells the course of a run as log events."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()
        self._batch_id: int | None = None

    def step(self, text: str) -> None:
        """A part of the start-up began."""
        self._log.info("step_began", step=text)

    def node_changed(self, unique_id: str, status: str | None) -> None:
        """Dbt began a node (`status` is None) or ended it; of interest if it failed."""
        if status in ("success", "pass", "skipped"):
            self._log.debug("node_ended", node=unique_id, status=status)
        elif status is not None:
            self._log.warning("node_ended", node=unique_id, status=status)

    def batch_began(self, batch_id: int) -> None:
        """A micro-batch is landed and its models come next."""
        self._batch_id = batch_id
        self._log.info("batch_began", batch_id=batch_id)

    def model_changed(self, unique_id: str, word: str) -> None:
        """The refresh of a model began or ended; of interest only when one looks closely."""
        self._log.debug("model_changed", batch_id=self._batch_id, model=unique_id, word=word)

    def batch_ended(self, outcome: BatchOutcome) -> None:
        """Every model of a micro-batch is done, and its snapshot row is written."""
        snapshot = outcome.snapshot
        if snapshot is None:
            self._log.info("batch_ended", batch_id=outcome.batch_id, status="unchanged")
            return
        for source, counts in snapshot.landed.items():
            self._log.info(
                "records_landed",
                batch_id=outcome.batch_id,
                source=source,
                produced=counts.produced,
                landed=counts.landed,
                superseded=counts.superseded,
                dead_letters=counts.dead_letters,
            )
        for model, state in snapshot.models.items():
            if state.rows_changed or state.reason:
                self._log.info(
                    "refresh_completed",
                    batch_id=outcome.batch_id,
                    model=model,
                    strategy=state.strategy,
                    reason=state.reason,
                    rows_changed=state.rows_changed,
                    took_ms=state.took_ms,
                )
        for test, result in outcome.checks.items():
            if result.status != "pass":
                self._log.warning(
                    "test_failed",
                    batch_id=outcome.batch_id,
                    test=test,
                    status=result.status,
                    failures=result.failures,
                    message=result.message or None,
                )
        for model, aside in snapshot.set_aside.items():
            self._log.warning(
                "model_waits",
                batch_id=outcome.batch_id,
                model=model,
                cause=aside.cause,
                since_snapshot=aside.since,
                refreshed_at=aside.refreshed_at,
            )
        took = snapshot.finished_at - snapshot.started_at
        self._log.info(
            f"snapshot_{snapshot.status}",
            batch_id=outcome.batch_id,
            snapshot_id=snapshot.snapshot_id,
            as_of=snapshot.as_of,
            rows_changed=sum(state.rows_changed for state in snapshot.models.values()),
            took_ms=round(took.total_seconds() * 1000),
        )

    def project_edited(self, files: Sequence[str], changes: Sequence[PlanChange]) -> None:
        """The stream goes on with the project as it is written now."""
        self._log.info("project_edited", files=" ".join(files))
        for change in changes:
            self._log.info(
                "plan_changed", node=change.unique_id, change=change.word, strategy=change.strategy
            )

    def project_refused(self, files: Sequence[str], error: Exception) -> None:
        """An edit cannot be taken over; the project as it was runs on."""
        self._log.error(
            "project_refused",
            files=" ".join(files),
            error=str(error),
            hint="mend it: the stream goes on with the project as it was, and looks again",
        )

    def retrying(self, error: BaseException, failures: int, attempts: int) -> None:
        """A micro-batch failed, or was in another writer's way, and is run again."""
        self._log.warning(
            "batch_retried",
            batch_id=self._batch_id,
            failures=failures,
            attempts=attempts,
            error=str(error),
        )
