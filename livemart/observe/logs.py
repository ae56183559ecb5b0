"""Writes log events, a name and keys, as text or JSON lines on standard error.

Used by commands away from a terminal, and by every room that logs. The keys are those of the
measurements at `/metrics`, so that a number is found in both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Literal, assert_never

import structlog

from livemart.land.letters.plain_text import one_line
from livemart.project.graph import short_name
from livemart.project.node_results import NodeProgress
from livemart.run import events
from livemart.run.events import BatchOutcome, RunEvent
from livemart.state.drift import Drift, DriftedField, DriftKind, by_kind

if TYPE_CHECKING:
    from livemart.check.checks import TestResult
    from livemart.land.landing import LandedBatch
    from livemart.state.snapshots import Snapshot

# Longer than ten seconds without a line, and people take it for dead; looked at each second.
_SILENCE_S = 9.0
_IDLE_S = 3600.0
_MOST_NODES = 5
# The words of a model while it is worked on; any other word is how it ended.
UNDER_WAY = frozenset({"running", "refreshing", "rebuilding", "started"})

LogFormat = Literal["text", "json"]

_LOGFMT = structlog.processors.LogfmtRenderer(bool_as_flag=False)


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
        # Whatever standard error is at that moment: a live table may have replaced it.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
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
    """`2026-01-01T00:00:00Z info refresh_completed batch_id=42 rows_changed=118`.

    Any client chooses the path that a refusal names: a terminal must not obey it.
    """
    opening = [event.pop(key) for key in ("timestamp", "level", "event")]
    keys = {key: value for key, value in event.items() if value is not None}
    return one_line(" ".join([*opening, str(_LOGFMT(logger, method, keys))]).rstrip())


class LogWatcher:
    """Reports the course of a run as log events, each as it happens.

    While some work goes on without an event, it names that work every ten seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._log = structlog.get_logger()
        self._batch_id: int | None = None
        self._clock = clock
        # The work under way and its start; nothing while a stream waits.
        self._doing: str | None = None
        self._copy: tuple[int, float] | None = None
        self._began_at = self._logged_at = self._news_at = clock()
        self._under_way: dict[str, None] = {}
        self._is_announced = True
        # Until a micro-batch begins to refresh what it landed.
        self._is_building = True
        self._drift = UnreportedDrift()

    def beat(self) -> None:
        """Name the work under way, if nothing was logged for long; called every second or so."""
        now, doing, began_at = self._clock(), self._doing, self._began_at
        if doing is None and (copy := self._copy) is not None:
            # In a separate thread: of interest once nothing else goes on.
            doing, began_at = f"copying snapshot {copy[0]} into the serving store", copy[1]
        if doing is None or now - max(self._logged_at, began_at) < _SILENCE_S:
            return
        self._logged_at = now
        nodes = list(self._under_way)
        self._log.info(
            "still_working",
            step=doing,
            nodes=" ".join(nodes[:_MOST_NODES]) or None,
            seconds=round(now - began_at),
        )

    def handle(self, event: RunEvent) -> None:
        """Log an event."""
        match event:
            case events.StepBegan(text):
                self._do(text)
                self._log.info("step_began", step=text)
            case events.LandingBegan(batch_id, files):
                self._batch_id = batch_id
                self._do("landing")
                log = self._log.info if files else self._log.debug
                log("landing_began", batch_id=batch_id, files=files)
            case events.RecordsLanded(batch):
                self._landed(batch)
            case NodeProgress():
                self._node_changed(event)
            case events.BatchBegan(batch_id):
                self._batch_id = batch_id
                self._do("refreshing")
                self._is_announced = self._is_building = False
            case events.ModelChanged():
                self._model_changed(event)
            case events.CheckEnded(unique_id, result):
                self._check_ended(unique_id, result)
            case events.BatchEnded(outcome):
                self._batch_ended(outcome)
            case events.CopyBegan(snapshot_id):
                self._copy = (snapshot_id, self._clock())
            case events.CopyEnded():
                self._copy = None
            case events.EditTaken(files, changes):
                self._log.info("project_edited", files=" ".join(files))
                for change in changes:
                    self._log.info(
                        "plan_changed",
                        node=change.unique_id,
                        change=change.word,
                        strategy=change.strategy,
                    )
            case events.EditRefused(files, error):
                self._log.error(
                    "project_refused",
                    files=" ".join(files),
                    error=str(error),
                    hint="correct it: the stream continues with the previous project, "
                    "and checks again",
                )
            case events.BatchRetried(error, failures, attempts):
                self._log.warning(
                    "batch_retried",
                    batch_id=self._batch_id,
                    failures=failures,
                    attempts=attempts,
                    error=str(error),
                )
            case _:
                assert_never(event)

    def _landed(self, batch: LandedBatch) -> None:
        self._batch_id = batch.batch_id
        self._do("building")
        self._is_building = True
        for source, counts in batch.counts.items():
            if counts.produced:
                self._log.info(
                    "records_landed", batch_id=batch.batch_id, source=source, **asdict(counts)
                )
        if batch.refusals:
            self._log.warning(
                "records_refused",
                batch_id=batch.batch_id,
                dead_letters=sum(batch.refusals.values()),
                reasons=", ".join(f"{code} {n}" for code, n in sorted(batch.refusals.items())),
                hint="`livemart dead-letters show` shows the records and what is wrong with each",
            )

    def _node_changed(self, node: NodeProgress) -> None:
        if node.line is not None:
            self._logged_at = self._clock()
            log = self._log.error if node.status == "error" else self._log.info
            log("dbt", line=node.line)
        elif node.status is None:
            self._under_way[node.unique_id] = None
        else:
            self._under_way.pop(node.unique_id, None)
            log = self._log.warning if node.status in ("warn", "error") else self._log.debug
            log("node_ended", node=node.unique_id, status=node.status)

    def _model_changed(self, event: events.ModelChanged) -> None:
        unique_id, state = event.unique_id, event.state
        if not self._is_announced:
            # Not before there is something to do: a stream looks for records all day.
            self._is_announced = True
            self._log.info("batch_began", batch_id=self._batch_id)
        if event.word == "started":
            self._under_way[unique_id] = None
        else:
            self._under_way.pop(unique_id, None)
        log = self._log.bind(batch_id=self._batch_id, model=unique_id)
        if state is None or not (state.rows_changed or state.reason):
            log.debug("model_changed", word=event.word)
            return
        self._logged_at = self._clock()
        log.info(
            "refresh_completed",
            strategy=state.strategy,
            reason=state.reason,
            rows_changed=state.rows_changed,
            took_ms=state.took_ms,
        )

    def _check_ended(self, unique_id: str, result: TestResult) -> None:
        self._logged_at = self._clock()
        log = self._log.bind(
            batch_id=self._batch_id, test=unique_id, line=describe_check(unique_id, result)
        )
        if result.status == "waits":
            log.debug("test_waits", message=result.message or None)
        elif result.status != "pass":
            log.warning(
                "test_failed",
                status=result.status,
                failures=result.failures,
                took_ms=result.took_ms,
                message=result.message or None,
                place=result.place or None,
                rows="; ".join(result.rows) or None,
            )
        else:
            # A test that passes is of interest only in a build.
            tell = log.info if self._is_building else log.debug
            tell("test_passed", took_ms=result.took_ms)

    def _batch_ended(self, outcome: BatchOutcome) -> None:
        self._doing, self._under_way = None, {}
        snapshot, log = outcome.snapshot, self._log.bind(batch_id=outcome.batch_id)
        if snapshot is None:
            log.debug("batch_ended", status="unchanged")
            if (waited := self._clock() - self._news_at) >= _IDLE_S:
                # A stream lives, though nothing comes.
                self._news_at += waited
                log.info("nothing_new", seconds=round(waited))
            return
        self._news_at = self._clock()
        left_out = [key for key, aside in snapshot.set_aside.items() if aside.is_left_out]
        if left_out:
            log.info(
                "models_left_out", count=len(left_out), models=" ".join(left_out[:_MOST_NODES])
            )
        for model, aside in snapshot.set_aside.items():
            if not aside.is_left_out:
                log.warning(
                    "model_waits",
                    model=model,
                    cause=aside.cause,
                    since_snapshot=aside.since,
                    refreshed_at=aside.refreshed_at,
                )
        for source, kind, fields in self._drift.of(snapshot, outcome.drift_before):
            log.warning(
                "schema_drift",
                source=source,
                kind=kind,
                fields="; ".join(map(str, fields)),
                hint=kind.next_step,
            )
        took = snapshot.finished_at - snapshot.started_at
        log.info(
            f"snapshot_{snapshot.status}",
            snapshot_id=snapshot.snapshot_id,
            as_of=snapshot.as_of,
            rows_changed=sum(state.rows_changed for state in snapshot.models.values()),
            took_ms=round(took.total_seconds() * 1000),
        )

    def _do(self, text: str) -> None:
        self._doing, self._under_way = text, {}
        self._began_at = self._logged_at = self._clock()


class UnreportedDrift:
    """Drift that was not reported yet, by this run or by the one before: batches bring the same."""

    def __init__(self) -> None:
        self._fields: set[tuple[str, DriftedField]] = set()

    def of(
        self, snapshot: Snapshot, before: Mapping[str, Drift]
    ) -> Iterator[tuple[str, DriftKind, Drift]]:
        """Yield the new drift of a snapshot, by source and kind; it counts as reported then.

        `before`: what the snapshot before it has.
        """
        self._fields.update((source, field) for source, drift in before.items() for field in drift)
        for source, drift in snapshot.drift.items():
            unreported = tuple(field for field in drift if (source, field) not in self._fields)
            self._fields.update((source, field) for field in unreported)
            for kind, fields in by_kind(unreported):
                yield source, kind, fields


def describe_check(unique_id: str, result: TestResult) -> str:
    """Return one line like dbt's: `FAIL 3 unique_totals_id [in 0.25s]`."""
    count = f" {result.failures}" if result.status != "pass" and result.failures else ""
    seconds = result.took_ms / 1000
    return f"{result.status.upper()}{count} {short_name(unique_id)} [in {seconds:.2f}s]"


def describe_failing(result: TestResult) -> list[str]:
    """Return where a test is written that holds the snapshot, and rows that fail, line by line."""
    return [line for line in (result.place, *result.rows) if line]
