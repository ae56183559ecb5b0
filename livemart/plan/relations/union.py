"""Adds up the branches of UNION ALL: a change of one branch is a change of the sum."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from sqlglot import exp

from livemart.plan.relations.kinds import are_alike
from livemart.plan.relations.relation import (
    Expr,
    Relation,
    Renaming,
    RowByRow,
    column,
    is_constant,
    replaced,
)
from livemart.plan.sql.written import sql_of
from livemart.spark_sql import unquoted


class Union(RowByRow):
    """All rows of all branches; columns are matched by position and named by the first branch.

    >>> show(
    ...     "select shop, max(at) as newest from (select shop_id as shop, ordered_at as at"
    ...     " from raw.orders union all select shop_id, returned_at from raw.returns) group by 1",
    ...     change="returns",
    ... )
    region: shop
    affected: select distinct shop_id as w0 from touched_returns
    read: orders, where shop_id = w0
    read: returns, where shop_id = w0
    """

    def __init__(self, branches: Sequence[Relation], names: Sequence[tuple[str, ...]]) -> None:
        self.inputs = tuple(branches)
        self.names = names[0]
        self.branch_names = tuple(names)

    def over_input(self, expr: Expr, place: int) -> Expr:
        names = dict(zip(self.names, self.branch_names[place], strict=True))
        return replaced(
            expr,
            lambda reference: (
                column(names[reference.name])
                if not reference.table and reference.name in names
                else None
            ),
        )

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        """A key of every branch is a key of the union if constant columns distinguish branches.

        The branches must agree in its types: beside doubles, two values of bigint may become one.
        """
        constants = self.discriminators()
        if not constants:
            return []
        positions = [
            [
                frozenset(_position(text, names) for text in key)
                for key in branch.unique_keys(null_safe=null_safe)
            ]
            for branch, names in zip(self.inputs, self.branch_names, strict=True)
        ]
        common = set.intersection(*({key for key in keys if None not in key} for keys in positions))
        return [
            frozenset(
                {sql_of(column(self.names[place])) for place in key if place is not None}
                | {sql_of(column(name)) for name in constants}
            )
            for key in common
            if all(place is None or self._is_of_one_kind(place) for place in key)
        ]

    def _is_of_one_kind(self, place: int) -> bool:
        branches = zip(self.inputs, self.branch_names, strict=True)
        return are_alike(branch.value_kind(column(names[place])) for branch, names in branches)

    def discriminators(self) -> list[str]:
        """Return the fewest constant columns that together distinguish all branches."""
        constants: dict[str, list[str | int]] = {}
        for place, name in enumerate(self.names):
            values = [
                _constant_output(branch, names[place])
                for branch, names in zip(self.inputs, self.branch_names, strict=True)
            ]
            outputs = [value for value in values if value is not None]
            if len(outputs) == len(values) and len(set(map(type, outputs))) == 1:
                constants[name] = outputs

        def tell_apart(names: Sequence[str]) -> bool:
            rows = set(zip(*(constants[name] for name in names), strict=True))
            return len(rows) == len(self.inputs)

        # Two suffice in practice; all of them are tried rather than every combination.
        choices = [*combinations(constants, 1), *combinations(constants, 2), tuple(constants)]
        return next((list(names) for names in choices if tell_apart(names)), [])


def _position(text: str, names: tuple[str, ...]) -> int | None:
    name = unquoted(text)
    return names.index(name) if name in names else None


def _constant_output(relation: Relation, name: str) -> str | int | None:
    expr: Expr = column(name)
    while isinstance(relation, Renaming):
        expr = relation.over_source(expr)
        if is_constant(expr):
            return _literal(expr)
        relation = relation.source
    return None


def _literal(expr: Expr) -> str | int | None:
    """Return the value of a text or an integer; None for one that may equal another constant."""
    texts = (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)
    whole = (exp.DataType.Type.INT, exp.DataType.Type.BIGINT)
    while isinstance(expr, exp.Cast | exp.Paren):
        value = expr.this
        if isinstance(expr, exp.Cast):
            # A cast must leave the literal what it is.
            kinds = texts if value.is_string else whole
            if not isinstance(value, exp.Literal) or expr.to.this not in kinds:
                return None
        expr = value
    if not isinstance(expr, exp.Literal):
        return None
    if expr.is_string:
        # Only Spark decides what an escape stands for: 'a\d' is 'ad' there.
        return None if "\\" in sql_of(expr) else str(expr.this)
    return int(expr.this) if expr.is_int else None
