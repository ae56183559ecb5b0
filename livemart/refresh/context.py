"""Holds the parts of one micro-batch, handed from run to the refresh of every model.

It changes with the batch alone; what a model's refresh works with is a ModelRun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Literal

from livemart.arrow.sum_limits import SumLimits
from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.own_faults import OwnFaults
from livemart.project.session_spec import SessionSpec
from livemart.project.sessions import session_of
from livemart.refresh.views import SharedViews
from livemart.spark.large_lane import LargeLane

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SqlChanged(Exception):
    """Raised inside a batch that must begin again, as a model has other SQL by now."""


@dataclass(frozen=True, slots=True)
class BatchMemory:
    """The knowledge that stays from one batch to the next, as long as the process lives.

    `sum_limits`: the limits of a model's totals (None: not exact), by model and types, asked of
    Spark once. `took_ms`: by unique id, how long the last refresh of a model took, of those that
    had something to do.
    """

    views: SharedViews = field(default_factory=SharedViews)
    sum_limits: dict[object, Mapping[str, SumLimits] | None] = field(default_factory=dict)
    own_faults: OwnFaults = field(default_factory=OwnFaults)
    took_ms: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchContext:
    """Session, tables and identity of the micro-batch `batch_id` of `epoch`.

    `lane`, `small_lane_rows`, `threads`: the settings of these names.
    """

    spark: SparkSession
    warehouse: Warehouse
    epoch: str
    batch_id: int
    lane: Literal["auto", "small", "large"]
    small_lane_rows: int
    threads: int
    between_batches: BatchMemory = field(default_factory=BatchMemory)
    _lanes: dict[SessionSpec, LargeLane] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def large_lane(self) -> LargeLane:
        """Spark's commits: one for all threads, as the transaction id is the session's."""
        return LargeLane(self.spark, self.warehouse)

    def lane_of(self, session: SessionSpec) -> LargeLane:
        """Return the large lane of a session.

        Raises:
            PySparkException: a statement of a hook fails.
        """
        if session.is_plain:
            return self.large_lane
        with self._lock:
            if session not in self._lanes:
                self._lanes[session] = LargeLane(session_of(self.spark, session), self.warehouse)
            return self._lanes[session]

    @cached_property
    def tags(self) -> Tags:
        """The transaction ids under which tables are committed in this batch, each once."""
        return Tags(self.epoch, self.batch_id)
