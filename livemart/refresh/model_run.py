"""Gives a strategy its parts: one model in one batch, its own table and its inputs.

Made once per model and batch, before a strategy begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from livemart.arrow.sum_limits import SumLimits
from livemart.arrow.time_zone import UTC_ZONE, TimeZone
from livemart.plan.plan import Plan
from livemart.plan.relations.clock import evaluate
from livemart.plan.sql.template import template
from livemart.plan.strategies.slices import Slice
from livemart.refresh.inputs import Input, Side
from livemart.refresh.pinned_table import PinnedTable
from livemart.refresh.views import BatchViews, Statement
from livemart.spark_sql import literal


@dataclass(slots=True)
class ModelRun:
    """One model in one batch: `stored` is its own table as of the frontier.

    `inputs` are in the order of the plan's occurrences; `sum_limits`: see BatchMemory;
    `zone`: of the session in which its SQL is run.
    """

    plan: Plan
    stored: PinnedTable
    inputs: tuple[Input, ...]
    views: BatchViews
    sum_limits: dict[object, Mapping[str, SumLimits] | None]
    zone: TimeZone = UTC_ZONE
    _thresholds: dict[tuple[str, object], datetime | None] = field(default_factory=dict)

    def query(self, side: Side, views: Mapping[int, Statement]) -> Statement:
        """Return the analyst's SQL over the given views; parameters are read as of `side`."""
        assert self.plan.flat is not None

        relations = {
            mention: views.get(mention.index)
            or self.views.whole(self.inputs[mention.index].at(side))
            for mention in self.plan.flat.occurrences
        }
        return self.plan.flat.over(relations.__getitem__)

    def threshold(self, item: Slice, side: Side) -> datetime | None:
        """Return where a window begins or ends as of `side`; None lets no row through."""
        clock = self.inputs[item.clock_occurrence].value(item.clock_column, side)
        if clock is None:
            return None
        key = (item.threshold, clock)
        if key not in self._thresholds:
            moment = None
            if self.zone.is_utc and isinstance(clock, datetime):
                moment = evaluate(item.threshold, clock)
            if moment is None:
                sql = (
                    f"select cast({item.threshold} as timestamp)"
                    f" from (select {literal(clock)} as __clock__)"
                )
                moment = self.views.query(template(sql)).column(0)[0].as_py()
            self._thresholds[key] = moment
        return self._thresholds[key]
