"""Judges the differing rows of a model whose orders may tie.

Used by `verify`. Only the groups of which a row differs are read, once for each way to break ties.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from livemart.arrow.python_rows import python_tuples
from livemart.delta.partitions import BLANKS
from livemart.inspect.comparison import (
    Differences,
    compare,
    different_rows,
    in_any_order,
    signs_passed_on,
)
from livemart.inspect.ties import WAYS, Judgement, Row, judge_groups
from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import ways_to_decide
from livemart.plan.sql.flatten import Flat
from livemart.plan.strategies.tie_breaks import CANDIDATES
from livemart.spark.arrow_views import to_frame
from livemart.spark.differences import comparable
from livemart.spark_sql import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Rows of all answers together; they are compared in memory.
_MOST_ROWS = 1_000_000


class TooManyRows(Exception):
    """More rows are in groups that differ and may tie than can be compared."""

    def __init__(self) -> None:
        super().__init__(f"its groups that differ and may tie have over {_MOST_ROWS:,} rows in all")


@dataclass(slots=True)
class TiedGroups:
    """A model whose stored rows are not those that came out now."""

    plan: Plan
    flat: Flat
    stored: DataFrame
    recomputed: DataFrame
    query: Callable[[Flat], DataFrame]
    """Runs flat text over the inputs of the model."""
    inputs: Inputs
    approximate: Mapping[str, str]
    """See `compare`."""
    passed_on: Collection[str]
    """See `compare`."""
    blank: Collection[str]
    """Columns that hold NULL for some texts."""
    _room: int = _MOST_ROWS

    def in_any_order(
        self, listed: Mapping[str, str | None], left_out: Collection[str]
    ) -> TiedGroups:
        """Return the same groups with one order for the elements of some columns, without others.

        Args:
            listed: columns as `in_any_order` of comparisons takes them.
            left_out: columns that are not compared.
        """

        def plain(frame: DataFrame) -> DataFrame:
            return frame.selectExpr(*in_any_order(frame.schema, listed)).drop(*left_out)

        computed = self.plan.computed_among_ties.items()
        kinds = {name: kind for name, kind in computed if name.lower() not in listed}
        return replace(
            self,
            plan=replace(self.plan, computed_among_ties=kinds),
            stored=plain(self.stored),
            recomputed=plain(self.recomputed),
            query=lambda flat: plain(self.query(flat)),
        )

    def differences(self) -> Differences:
        """Return the differences of the rows that are stored and those that came out now."""
        return compare(self.stored, self.recomputed, self.approximate, self.passed_on)

    def judgement(self) -> Judgement:
        """Return which of the groups that differ tie, and which are wrong.

        Raises:
            TooManyRows: there are too many.
        """
        if self._way(0) is None:
            # There is no other way: no row need be read to know that.
            return Judgement((), [()], ())
        names = [name for name in self.stored.columns if name.lower() not in self.approximate]
        keys = self.keys
        differing = different_rows(self.stored, self.recomputed, self.approximate, self.passed_on)
        rows = differing.select(*map(quoted, keys)).distinct()
        # Kept: each answer is asked for these groups, and they are dear to find.
        groups = to_frame(self.stored.sparkSession, rows.toArrow()) if keys else None

        def rows_of(frame: DataFrame) -> list[Row]:
            return self._rows(frame if groups is None else _of_keys(frame, groups), names)

        def answers() -> Iterator[list[Row]]:
            yield rows_of(self.recomputed)
            for way in ways_to_decide(self.flat, self.inputs, range(WAYS)):
                answer = self._answer(way, rows_of)
                if answer is not None:
                    yield answer

        def candidates() -> list[Row]:
            way = self._way(CANDIDATES)
            return (self._answer(way, rows_of) if way is not None else None) or []

        kinds = self.plan.computed_among_ties
        if not self.plan.ties:
            # If SQL has no plan, only its result is known.
            kinds = {name.lower(): "taken" for name in names}
        # Behind the columns of a row are the signs of the zeros in some of them; see `_rows`.
        columns = [*names, *self._signs]
        computed = {
            place: kinds[name.lower()]
            for place, name in enumerate(columns)
            if name.lower() in kinds
        }
        places = [names.index(key) for key in keys]
        return judge_groups(rows_of(self.stored), answers(), candidates, places, computed)

    @property
    def keys(self) -> list[str]:
        """The columns that distinguish groups; without any, all rows are one group."""
        spelled = {name.lower(): name for name in self.stored.columns}
        return [spelled[name.lower()] for name in self.plan.decided_by]

    @property
    def _signs(self) -> dict[str, str]:
        return signs_passed_on(self.stored.schema, self.passed_on)

    def _way(self, number: int) -> Flat | None:
        return next(ways_to_decide(self.flat, self.inputs, [number]), None)

    def _answer(self, way: Flat, rows_of: Callable[[DataFrame], list[Row]]) -> list[Row] | None:
        """Return the rows of SQL; None if Spark refuses it: not all can be put in order."""
        from pyspark.errors import AnalysisException

        try:
            return rows_of(self.query(way))
        except AnalysisException:
            return None

    def _rows(self, frame: DataFrame, names: Sequence[str]) -> list[Row]:
        kinds = {field.name.lower(): field.dataType for field in self.stored.schema.fields}
        listed = []
        for name in names:
            in_order = name.lower() in self.passed_on
            value = comparable(quoted(name), kinds[name.lower()], in_order=in_order)
            if name in self.blank:
                value = f"if({value} in ({', '.join(map(literal, BLANKS))}), null, {value})"
            listed.append(f"{value} as {quoted(name)}")
        listed += self._signs.values()
        read = frame.selectExpr(*listed).limit(self._room + 1).toArrow()
        self._room -= read.num_rows
        if self._room < 0:
            raise TooManyRows
        return python_tuples(read)


def _of_keys(rows: DataFrame, keys: DataFrame) -> DataFrame:
    alike = " and ".join(f"r.{quoted(name)} <=> k.{quoted(name)}" for name in keys.columns)
    return rows.sparkSession.sql(
        f"select r.* from {{rows}} as r left semi join {{keys}} as k on {alike}",
        rows=rows,
        keys=keys,
    )
