"""Finds columns that are the same in every row, or in every branch: as keys they confine little.

Used when the keys of a region are chosen.
"""

from __future__ import annotations

from livemart.plan.relations.gate import Gate
from livemart.plan.relations.generate import Generate
from livemart.plan.relations.join import Join
from livemart.plan.relations.relation import Expr, Relation, Renaming, is_constant
from livemart.plan.relations.union import Union
from livemart.plan.sql.written import sql_of


def constants_of(relation: Relation, expr: Expr) -> frozenset[str] | None:
    """Return the constants that `expr` is one of in every row; None if it is made of columns.

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
    if isinstance(relation, Renaming):
        return constants_of(relation.source, relation.over_source(expr))
    if isinstance(relation, Gate | Generate):
        return constants_of(relation.inputs[0], expr)
    if isinstance(relation, Join):
        side = relation.side(expr)
        if side == "both":
            return None
        return constants_of(relation.right if side == "right" else relation.left, expr)
    if isinstance(relation, Union):
        by_branch = [
            constants_of(branch, relation.over_branch(expr, index))
            for index, branch in enumerate(relation.inputs)
        ]
        of_branches = [constants for constants in by_branch if constants is not None]
        return frozenset().union(*of_branches) if len(of_branches) == len(by_branch) else None
    return None
