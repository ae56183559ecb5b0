"""Projects and filters rows.

Linear: a row's image depends on that row alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from livemart.plan.relations.clock import ClockBound
from livemart.plan.relations.relation import (
    Expr,
    Relation,
    Renaming,
    bare,
    column,
    replaced,
)
from livemart.plan.sql.written import sql_of


class Projection(Renaming):
    """Compute each output column from one input row."""

    def __init__(self, source: Relation, outputs: Mapping[str, Expr]) -> None:
        super().__init__(source)
        self.outputs = dict(outputs)
        self.names = tuple(self.outputs)

    def over_source(self, expr: Expr) -> Expr:
        return replaced(
            expr,
            lambda reference: None if reference.table else self.outputs.get(reference.name),
        )

    def unique_keys(self) -> list[frozenset[str]]:
        back = {sql_of(bare(expr)): name for name, expr in reversed(self.outputs.items())}
        return [
            frozenset(sql_of(column(back[text])) for text in key)
            for key in self.source.unique_keys()
            if all(text in back for text in key)
        ]


class Compared(Renaming):
    """Hand on all rows to steps that compare a time of theirs with the clock."""

    def __init__(self, source: Relation, bounds: tuple[ClockBound, ...]) -> None:
        super().__init__(source)
        self.bounds = bounds

    def over_source(self, expr: Expr) -> Expr:
        return expr

    def unique_keys(self) -> list[frozenset[str]]:
        return self.source.unique_keys()


class Filter(Compared):
    """Keep the rows that meet a condition; `bounds`: windows against the clock that it demands."""
