"""What one model's refresh in one batch works with: pinned versions, net changes, slices, views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from livemart.arrow.bags import WEIGHT
from livemart.arrow.times import DAY, micros
from livemart.delta.row_filter import (
    EVERY_ROW,
    Condition,
    RowFilter,
    time_condition,
    values_condition,
)
from livemart.delta.warehouse import Warehouse
from livemart.plan.planner import Plan
from livemart.plan.relations.clock import evaluate
from livemart.plan.relations.relation import Restriction
from livemart.plan.sql.flatten import Occurrence
from livemart.plan.strategies.slices import Slice
from livemart.project.graph import Model
from livemart.refresh.context import BatchContext
from livemart.refresh.inputs import BatchInputs, Side, stored_field
from livemart.refresh.views import BatchViews
from livemart.spark_sql import literal


@dataclass(slots=True)
class ModelRun:
    """One model in one batch."""

    context: BatchContext
    model: Model
    plan: Plan
    inputs: BatchInputs
    views: BatchViews
    stored_version: int
    _thresholds: dict[tuple[str, object], datetime | None] = field(default_factory=dict)

    @property
    def warehouse(self) -> Warehouse:
        return self.context.warehouse

    @property
    def stored_schema(self) -> pa.Schema:
        """The Arrow schema of the model's own table."""
        return self.warehouse.arrow_schema(self.model.relation, self.stored_version)

    def relation_of(self, occurrence: int) -> str:
        assert self.plan.flat is not None
        return self.plan.flat.occurrences[occurrence].relation

    def version_of(self, occurrence: int, side: Side) -> int:
        relation = self.relation_of(occurrence)
        return self.inputs.new[relation] if side == "new" else self.inputs.old[relation]

    def columns_of(self, occurrence: int) -> tuple[str, ...] | None:
        """Return the stored columns that the query needs, None for all."""
        used = self.plan.used.get(occurrence)
        return None if used is None else tuple(sorted(used))

    def render(self, side: Side, names: Mapping[int, str]) -> str:
        """Return the analyst's SQL over the given views; parameters are read as of `side`."""
        assert self.plan.flat is not None

        def name_of(occurrence: Occurrence) -> str:
            if occurrence.index in names:
                return names[occurrence.index]
            version = self.version_of(occurrence.index, side)
            return self.views.whole(occurrence.relation, version)

        return self.plan.flat.render(name_of)

    # What changed ------------------------------------------------------------------------------

    def changed_parameters(self) -> list[int]:
        """Return the occurrences read for one value whose table changed."""
        return [
            occurrence
            for occurrence in self.plan.parameters
            if self.inputs.has_changed(self.relation_of(occurrence))
        ]

    def images(self, occurrence: int) -> pa.Table:
        """Return old and new images of the changed rows of an occurrence, with `_weight`."""
        relation = self.relation_of(occurrence)
        if not self.inputs.has_changed(relation):
            schema = self.warehouse.arrow_schema(relation, self.inputs.new[relation])
            return schema.append(pa.field(WEIGHT, pa.int64())).empty_table()
        return self.inputs.changes(relation)

    def threshold(self, item: Slice, side: Side) -> datetime | None:
        """Return where a window begins or ends as of `side`; None lets no row through."""
        value = self.parameter_value(item.clock_occurrence, item.clock_column, side)
        if value is None:
            return None
        key = (item.threshold, value)
        if key not in self._thresholds:
            found = evaluate(item.threshold, value) if isinstance(value, datetime) else None
            if found is None:
                sql = (
                    f"select cast({item.threshold} as timestamp)"
                    f" from (select {literal(value)} as __clock__)"
                )
                column = self.views.query(sql).column(0)
                found = column[0].as_py()
            self._thresholds[key] = found
        return self._thresholds[key]

    def parameter_value(self, occurrence: int, name: str, side: Side) -> object:
        """Return the one value of a parameter as of `side`; NULL of an empty table is None."""
        relation = self.relation_of(occurrence)
        version = self.version_of(occurrence, side)
        field_ = stored_field(self.warehouse.arrow_schema(relation, version), name)
        return self.inputs.one_value(relation, version, field_.name)

    # What to read ------------------------------------------------------------------------------

    def filter_of(
        self, relation: str, restrictions: Sequence[Restriction], region: pa.Table
    ) -> RowFilter:
        """Return which rows of a relation are enough for the affected region.

        Args:
            relation: `schema.identifier` of a stored table.
            restrictions: alternatives; none of them narrows means the whole table.
            region: columns w0, w1, ... and, for regions in time, `low`, `high` (bigint,
                microseconds) and `has_null`.
        """
        schema = self.warehouse.arrow_schema(relation)
        alternatives = []
        for restriction in restrictions:
            conditions = []
            for index, name, margin in restriction.keys:
                field_ = stored_field(schema, name)
                condition = self._key_condition(field_, margin, region.column(f"w{index}"))
                if condition is not None:
                    conditions.append(condition)
            if restriction.time is not None:
                field_ = stored_field(schema, restriction.time)
                low = pc.min(region.column("low")).as_py() - restriction.before
                high = pc.max(region.column("high")).as_py() + restriction.after
                has_null = bool(pc.any(region.column("has_null")).as_py())
                condition = time_condition(field_.name, field_.type, low, high, has_null=has_null)
                if condition is not None:
                    conditions.append(condition)
            if not conditions:
                return EVERY_ROW
            alternatives.append(tuple(conditions))
        return RowFilter(tuple(alternatives)) if alternatives else EVERY_ROW

    @staticmethod
    def _key_condition(field_: pa.Field, margin: int, found: pa.ChunkedArray) -> Condition | None:
        if margin == 0 and field_.type == found.type:
            return values_condition(field_.name, field_.type, found)
        bounds = pc.min_max(found)
        low, high = micros(bounds["min"].as_py()), micros(bounds["max"].as_py())
        if low is None or high is None:
            return None
        # A date stands for all of its day.
        margin = max(margin, DAY if pa.types.is_date(found.type) else 0)
        return time_condition(
            field_.name,
            field_.type,
            low - margin,
            high + margin,
            has_null=found.null_count > 0,
        )
