"""Splits a join condition into equalities: the values that the two sides share.

Used by joins and by correlated subqueries.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from livemart.plan.relations.relation import Expr, columns_of, conjuncts


@dataclass(frozen=True, slots=True)
class EquiKey:
    """One equality of the join condition; `null_safe` for `<=>`.

    It leads from a changed shop to its orders. The amount is none: it only narrows what matches.

    >>> show(
    ...     "select o.order_id, count(s.city) as cities from raw.orders as o"
    ...     " left join raw.shops as s on o.shop_id = s.shop_id and o.amount > 5"
    ...     " group by o.order_id",
    ...     change="shops",
    ... )
    region: order_id
    affected: select distinct p.w1 as w0 from (select distinct shop_id as w0 from
        touched_shops) as c inner join (select distinct shop_id as w0, order_id as w1 from
        present_orders) as p on p.w0 = c.w0
    read: orders, where order_id = w0
    read: shops, all rows
    """

    left: Expr
    right: Expr
    null_safe: bool


def equi_keys(condition: Expr | None, right_qualifiers: frozenset[str]) -> list[EquiKey]:
    """Return the equalities between the two sides among the conjuncts of a join condition.

    An equality that each branch of an OR repeats holds for every joined row, too.
    """
    if condition is None:
        return []
    keys: list[EquiKey] = []
    for conjunct in conjuncts(condition):
        if isinstance(conjunct, exp.Or):
            others = equi_keys(conjunct.right, right_qualifiers)
            keys += [key for key in equi_keys(conjunct.left, right_qualifiers) if key in others]
            continue
        if not isinstance(conjunct, exp.EQ | exp.NullSafeEQ):
            continue
        left, right = conjunct.left, conjunct.right
        if conjunct.find(exp.Query) is not None:
            # Its answer is a column of neither side.
            continue
        on_right = [_on_right(side, right_qualifiers) for side in (left, right)]
        null_safe = isinstance(conjunct, exp.NullSafeEQ)
        if on_right == [False, True]:
            keys.append(EquiKey(left, right, null_safe))
        elif on_right == [True, False]:
            keys.append(EquiKey(right, left, null_safe))
    return keys


def _on_right(expr: Expr, qualifiers: frozenset[str]) -> bool | None:
    """Return which side an expression reads; None for neither or both."""
    sides = {reference.table in qualifiers for reference in columns_of(expr)}
    return sides.pop() if len(sides) == 1 else None
