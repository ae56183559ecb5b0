"""Holds the events of a run, and the results that they carry.

Used by the steps of a run, which report each event as it happens, and by all that follow a run:
log events, the live table, the notes of the run and the word at its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from livemart.project.node_results import NodeProgress

# For types alone: a run is followed from before its heavy parts are loaded.
if TYPE_CHECKING:
    from livemart.check.checks import TestResult
    from livemart.land.landing import LandedBatch
    from livemart.project.node_results import NodeResult
    from livemart.refresh.frontier import Rebuild
    from livemart.refresh.models import EndedModel
    from livemart.state.drift import Drift
    from livemart.state.snapshots import ModelState, Snapshot


@dataclass(slots=True)
class BatchRecord:
    """Records the work of a micro-batch up to now, even if it fails; all by unique id."""

    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: dict[str, EndedModel] = field(default_factory=dict)
    """See `refresh_models`."""
    states: dict[str, ModelState] = field(default_factory=dict)
    """The models that a refresh has finished."""
    under_way: dict[str, None] = field(default_factory=dict)
    """The models that a refresh has begun, or that have failed."""
    ended_at: dict[str, datetime] = field(default_factory=dict)
    """When models and tests ended."""
    built: dict[str, NodeResult] = field(default_factory=dict)
    """dbt's results of a build."""
    began: float = field(default_factory=time.monotonic)
    """`began_at` by the monotonic clock, in seconds."""

    def now(self) -> datetime:
        """Return the time: as much after `began_at` as has passed, whatever was set meanwhile."""
        return self.began_at + timedelta(seconds=time.monotonic() - self.began)

    def model_changed(self, unique_id: str, word: str, state: ModelState | None) -> None:
        """Note that the refresh of a model began, or ended in `state`; from several threads."""
        if word == "started":
            self.under_way[unique_id] = None
        elif state is not None:
            self.states[unique_id], self.ended_at[unique_id] = state, self.now()
            self.under_way.pop(unique_id, None)


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The result of a micro-batch."""

    batch_id: int
    snapshot: Snapshot | None
    """None if there was nothing to do."""
    checks: Mapping[str, TestResult] = field(default_factory=dict)
    """Without a snapshot: those of a held snapshot that stays held."""
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)
    record: BatchRecord = field(default_factory=BatchRecord)
    drift_before: Mapping[str, Drift] = field(default_factory=dict)
    """The drift that the snapshot before this one has reported already."""

    @property
    def is_held(self) -> bool:
        """True if readers do not see this snapshot."""
        return self.snapshot is not None and self.snapshot.status == "held"


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A model or test that an edit makes `new`, `changed` or `gone`; a model has its strategy."""

    unique_id: str
    word: str
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A part of the work began that no other event names."""

    text: str


@dataclass(frozen=True, slots=True)
class LandingBegan:
    """The files of a micro-batch, or records of logs, are about to be read."""

    batch_id: int
    files: int


@dataclass(frozen=True, slots=True)
class RecordsLanded:
    """The records of a micro-batch are rows now, or dead letters."""

    batch: LandedBatch


@dataclass(frozen=True, slots=True)
class BatchBegan:
    """A micro-batch is landed, and its models come next."""

    batch_id: int


@dataclass(frozen=True, slots=True)
class ModelChanged:
    """The refresh of a model began, or ended in `state`; comes from several threads."""

    unique_id: str
    word: str
    state: ModelState | None = None


@dataclass(frozen=True, slots=True)
class CheckEnded:
    """A data test ended."""

    unique_id: str
    result: TestResult


@dataclass(frozen=True, slots=True)
class BatchEnded:
    """Every model of a micro-batch is done, and its snapshot row is written."""

    outcome: BatchOutcome


@dataclass(frozen=True, slots=True)
class CopyBegan:
    """A snapshot is copied into the serving store from now on. Comes from any thread."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class CopyEnded:
    """The copy of a snapshot has ended, with success or without. Comes from any thread."""


@dataclass(frozen=True, slots=True)
class EditTaken:
    """The stream goes on with the project as it is written now."""

    files: Sequence[str]
    changes: Sequence[PlanChange]


@dataclass(frozen=True, slots=True)
class EditRefused:
    """An edit cannot be taken over; the previous project runs on."""

    files: Sequence[str]
    error: Exception


@dataclass(frozen=True, slots=True)
class BatchRetried:
    """A micro-batch failed, or was in another writer's way, and is run again."""

    error: BaseException
    failures: int
    attempts: int


RunEvent: TypeAlias = (
    StepBegan
    | NodeProgress
    | LandingBegan
    | RecordsLanded
    | BatchBegan
    | ModelChanged
    | CheckEnded
    | BatchEnded
    | CopyBegan
    | CopyEnded
    | EditTaken
    | EditRefused
    | BatchRetried
)

ReportEvent = Callable[[RunEvent], None]


def to_all(*reports: ReportEvent) -> ReportEvent:
    """Return a report that passes each event on to all of these, in their order."""

    def report(event: RunEvent) -> None:
        for pass_on in reports:
            pass_on(event)

    return report
