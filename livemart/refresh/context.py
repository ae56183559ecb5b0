"""Holds what one micro-batch works with: handed from run to the refresh of every model.

It changes with the batch alone; what a model's refresh works with is a ModelRun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Literal, Protocol

from livemart.arrow.sum_limits import SumLimits
from livemart.delta.tags import Tag, Tags
from livemart.delta.warehouse import Warehouse
from livemart.own_faults import OwnFaults
from livemart.project.graph import Model
from livemart.project.session_spec import SessionSpec
from livemart.project.sessions import session_of
from livemart.refresh.views import SharedViews
from livemart.spark.large_lane import LargeLane
from livemart.state.snapshots import ModelState, SetAside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from livemart.refresh.inputs import PinnedInputs


class SqlChanged(Exception):
    """Raised inside a batch that must begin again, as a model has other SQL by now."""


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Why a model cannot start from the frontier, and the generation its next table belongs to.

    `code` is NEW_MODEL, FINGERPRINT_CHANGED, ASKS_THE_WAREHOUSE, SESSION_CHANGED, CHANGED_OUTSIDE,
    SET_ASIDE or SELECTED.
    """

    code: str
    message: str
    generation: int


@dataclass(frozen=True, slots=True)
class KeptBetweenBatches:
    """What stays from one batch to the next, as long as the process lives.

    `sum_limits`: by model and types, what its totals are worth (None: not exact), asked of Spark
    once. `took_ms`: by unique id, how long the last refresh of a model took that had something to
    do.
    """

    views: SharedViews = field(default_factory=SharedViews)
    sum_limits: dict[object, Mapping[str, SumLimits] | None] = field(default_factory=dict)
    own_faults: OwnFaults = field(default_factory=OwnFaults)
    took_ms: dict[str, int] = field(default_factory=dict)


class Report(Protocol):
    """Is told what becomes of a model: a word, and at its end its state."""

    def __call__(self, unique_id: str, word: str, state: ModelState | None = None, /) -> None: ...


@dataclass(frozen=True)
class BatchContext:
    """Session, tables and identity of the micro-batch `batch_id` of `epoch`.

    `lane`, `small_lane_rows`, `threads`: the settings of these names.
    `rebuilds`: by unique id, the models to recompute in full whatever their plan allows.
    `fingerprints`: of the models' SQL, by relation; kept with each commit.
    `done`: models that are at this batch already (seeds that dbt loaded again).
    `lost`: by unique id, why dbt could not load a seed, or compile a model.
    `before_model`: called with a model's unique id and the inputs once all that it reads is
    refreshed; may raise SqlChanged. It lets dbt make a snapshot of its own, or ModelFailedError.
    `snapshot_id`: of the row that the batch makes; `frontier_at`: when that before it was finished.
    `behind`: models that are set aside in that row; `resting`: those of them that are not tried.
    `attempts`: how often a model may fail in a row before it is set aside; `runs_again`: the batch
    is run again by itself meanwhile.
    `report` is called with a model's unique id and a word when its refresh starts and ends, then
    with its state, too.
    """

    spark: SparkSession
    warehouse: Warehouse
    epoch: str
    batch_id: int
    lane: Literal["auto", "small", "large"]
    small_lane_rows: int
    threads: int
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    done: Mapping[str, ModelState] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    snapshot_id: int = 1
    frontier_at: datetime | None = None
    behind: Mapping[str, SetAside] = field(default_factory=dict)
    resting: Mapping[str, SetAside] = field(default_factory=dict)
    attempts: int = 1
    runs_again: bool = False
    report: Report = lambda unique_id, word, state=None: None
    before_model: Callable[[str, PinnedInputs], None] = lambda unique_id, inputs: None
    kept: KeptBetweenBatches = field(default_factory=KeptBetweenBatches)
    _lanes: dict[SessionSpec, LargeLane] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def large_lane(self) -> LargeLane:
        """Spark's commits: one for all threads, as the transaction id is the session's."""
        return LargeLane(self.spark, self.warehouse)

    def session(self, model: Model) -> SparkSession:
        """Return the session in which the model's SQL has its meaning.

        Raises:
            PySparkException: a statement of a hook fails.
        """
        return session_of(self.spark, model.session)

    def lane_of(self, model: Model) -> LargeLane:
        """Return the large lane of the model's own session."""
        if model.session.is_plain:
            return self.large_lane
        with self._lock:
            if model.session not in self._lanes:
                self._lanes[model.session] = LargeLane(self.session(model), self.warehouse)
            return self._lanes[model.session]

    def tag(self, relation: str, generation: int) -> Tag:
        """Return the transaction id under which `relation` is committed in this batch, once."""
        tags = Tags(self.epoch, self.batch_id)
        return tags.rows(relation, generation, self.fingerprints.get(relation))
