"""Finds columns that are the same in every row, or in every branch: as keys they confine little.

Used when the keys of a region are chosen.
"""

from __future__ import annotations

from livemart.plan.relations.gate import Gate
from livemart.plan.relations.generate import Generate
from livemart.plan.relations.join import Join
from livemart.plan.relations.relation import Expr, Relation, RowByRow, is_constant
from livemart.plan.sql.written import sql_of


def constants_of(relation: Relation, expr: Expr) -> frozenset[str] | None:
    """Return the constants that `expr` is one of in every row; None if it depends on columns.

    A key that is one constant confines nothing; one of two tells the branch that a change is in.

    >>> show("select 'all' as kind, max(amount) as most from raw.orders group by 1")
    full: KEY_NOT_IN_OUTPUT: no output column confines a change: GROUP BY 1
    >>> show(
    ...     "select 'sold' as kind, max(amount) as most from raw.orders group by 1"
    ...     " union all select 'returned', max(amount) from raw.returns group by 1",
    ...     change="returns",
    ... )
    region: kind
    affected: select distinct 'returned' as w0 from touched_returns
    read: orders, all rows
    read: returns, all rows
    """
    if is_constant(expr):
        return frozenset({sql_of(expr)})
    if isinstance(relation, Gate | Generate):
        return constants_of(relation.source, expr)
    if isinstance(relation, Join):
        side = relation.side(expr)
        if side == "both":
            return None
        return constants_of(relation.right if side == "right" else relation.left, expr)
    if isinstance(relation, RowByRow):
        by_input = [constants_of(source, over) for source, (over,) in relation.below(expr)]
        of_inputs = [constants for constants in by_input if constants is not None]
        return frozenset().union(*of_inputs) if len(of_inputs) == len(by_input) else None
    return None
