"""Gives a strategy its parts: one model in one batch, its own table and its inputs.

Made once per model and batch, before a strategy begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from livemart.arrow.sum_limits import SumLimits
from livemart.arrow.time_zone import UTC_ZONE, TimeZone
from livemart.plan.plan import Plan
from livemart.plan.relations.clock import CLOCK_COLUMN, evaluate
from livemart.plan.sql.template import template
from livemart.plan.strategies.slices import Slice
from livemart.refresh.inputs import Input, Side
from livemart.refresh.pinned_table import PinnedTable
from livemart.refresh.views import BatchViews, Statement
from livemart.spark.differences import row_of_literals
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
    _thresholds: dict[tuple[str, pa.Scalar], int | None] = field(default_factory=dict)

    def query(self, side: Side, views: Mapping[int, Statement]) -> Statement:
        """Return the analyst's SQL over the given views; parameters are read as of `side`."""
        assert self.plan.flat is not None

        relations = {
            mention: views.get(mention.index)
            or self.views.whole(self.inputs[mention.index].at(side))
            for mention in self.plan.flat.occurrences
        }
        return self.plan.flat.over(relations.__getitem__)

    def threshold(self, item: Slice, side: Side) -> int | None:
        """Return where a window begins or ends as of `side`; None lets no row through.

        In microseconds since 1970, UTC: a day behind the last of a clock is in the year 10000.
        """
        clock = self.inputs[item.clock_occurrence].value(item.clock_column, side)
        if not clock.is_valid:
            return None
        key = (item.threshold, clock)
        if key not in self._thresholds:
            moment = None
            if self.zone.is_utc and pa.types.is_timestamp(clock.type):
                moment = evaluate(item.threshold, clock.cast(pa.int64()).as_py())
            if moment is None:
                values = pa.table({CLOCK_COLUMN: pa.array([clock], clock.type)})
                row = row_of_literals(values) or f"(select {literal(clock.as_py())} as __clock__)"
                sql = f"select cast({item.threshold} as timestamp) from {row}"
                moment = self.views.query(template(sql)).column(0)[0].cast(pa.int64()).as_py()
            self._thresholds[key] = moment
        return self._thresholds[key]
