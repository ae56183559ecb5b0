"""Tells which rows must be recomputed together because their order may tie.

Used by the region and the planner. A tie makes several answers right. All rows of a group are one
decision, and groups do not know of each other. So a refresh that decides again for whole groups,
and leaves the others as they are stored, gives an answer that a build could have given (ADR-0011).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from livemart.plan.reasons import Reason
from livemart.plan.relations.aggregate_calls import (
    ORDER_DEPENDENT,
    TAKE_A_VALUE,
    aggregate_calls,
    called,
)
from livemart.plan.relations.gate import Aggregate, Gate, WindowGate
from livemart.plan.relations.join import Join
from livemart.plan.relations.relation import (
    Expr,
    Relation,
    Restrictions,
    RowByRow,
    Scan,
    Want,
    columns_of,
)
from livemart.plan.sql.determinism import function_name
from livemart.plan.sql.written import sql_of

# `taken` from one of the rows, or `made` of several.
Computed = Literal["taken", "made"]

_TAKES = TAKE_A_VALUE | {"row_number", "ntile"}
# These take some of the rows that tie, or one order of several.
TYING_WORDS = frozenset({"limit", "offset", "over", "nearest", "tablesample"})
_WORD = re.compile(r"[a-z_]\w*")


def may_decide(text: str) -> bool:
    """Return True for SQL with a word that may decide about rows that tie.

    It may be that of a column, and there may be no tie.

    >>> may_decide("select k from t order by n LIMIT 3"), may_decide("select max(k) from t")
    (True, False)
    """
    words = set(_WORD.findall(text.lower()))
    return not words.isdisjoint(TYING_WORDS | ORDER_DEPENDENT)


def ties_of(top: Relation) -> tuple[Reason, ...]:
    """Return where the order of rows decides and may tie, so that more than one answer is right.

    >>> newest = (
    ...     "select shop_id, order_id from (select shop_id, order_id, row_number() over"
    ...     " (partition by shop_id order by ordered_at desc{}) as place from raw.orders) as o"
    ...     " where place = 1"
    ... )
    >>> show(newest.format(""), change="orders")
    region: shop_id
    ties: rows may tie: ORDER BY orders.ordered_at DESC
    decided by: shop_id
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    >>> show(newest.format(", order_id"), change="orders")
    region: shop_id
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    """
    gates = (relation for relation in top.walk() if isinstance(relation, Gate))
    # Functions over one order are reported once.
    by_message = {reason.message: reason for gate in gates for reason in reversed(gate.ties)}
    return tuple(by_message.values())


def keeping_decisions(top: Relation, keys: Sequence[Expr]) -> list[Expr]:
    """Return the keys that keep together all output rows that depend on one decision among ties.

    Recomputed rows and rows that stay as they are stored must not depend on one group. So each key
    must tell the groups apart at every gate where rows may tie, and in the same way on each path.

    Each order would be a separate key, but all of a shop show the amount of its newest one:

    >>> show(
    ...     "select o.order_id, o.shop_id, n.amount from raw.orders as o join (select shop_id,"
    ...     " amount from raw.orders qualify row_number() over (partition by shop_id"
    ...     " order by ordered_at desc) = 1) as n on o.shop_id = n.shop_id",
    ...     change="orders",
    ... )
    region: shop_id
    ties: rows may tie: ORDER BY orders.ordered_at DESC
    decided by: shop_id
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    """
    asked = Restrictions()
    top.restrict(Want(tuple(keys)), asked)
    return [
        key
        for place, key in enumerate(keys)
        if all(_tells_apart([keys[place] for keys in ways]) for ways in asked.decisions.values())
    ]


def _tells_apart(keys: Sequence[Expr | None]) -> bool:
    return None not in keys and len({sql_of(key) for key in keys if key is not None}) == 1


def scattered(tie: Reason) -> Reason:
    """Return why a query is recomputed in full of whose rows no key keeps a decision together.

    >>> show(
    ...     "select o.order_id, (select n.amount from raw.orders as n where n.shop_id = o.shop_id"
    ...     " order by n.ordered_at desc limit 1) as newest from raw.orders as o"
    ... )
    full: NONDETERMINISTIC_ORDER: rows may tie: n.ordered_at before LIMIT, and no output
        column keeps together the rows that depend on it
    """
    return replace(
        tie,
        message=f"{tie.message}, and no output column keeps together the rows that depend on it",
        suggestion="carry its PARTITION BY or GROUP BY, or the key of its subquery, to the output,"
        f" or {tie.suggestion}",
    )


def computed_among_ties(relation: Relation, expr: Expr) -> Computed | None:
    """Return how a function of rows that may tie computes a value; None if it is its row's own.

    A value of a picked row is that row's own. The value of a function over the rows of a group,
    or of a frame, may come from one row and be shown beside another.

    The amount before comes from whichever order is before it, the sum from all of them:

    >>> show(
    ...     "select shop_id, order_id, lag(amount) over w as before, sum(amount) over"
    ...     " (partition by shop_id order by ordered_at rows 2 preceding) as running"
    ...     " from raw.orders window w as (partition by shop_id order by ordered_at)"
    ... )
    region: shop_id
    ties: rows may tie: ORDER BY orders.ordered_at
    decided by: shop_id
    taken among ties: before
    made among ties: running
    """
    if isinstance(relation, Scan) or not ties_of(relation):
        return None
    if isinstance(relation, Aggregate) and (calls := aggregate_calls(expr)):
        return _kind(expr, calls)
    if isinstance(relation, WindowGate) and (windows := list(expr.find_all(exp.Window))):
        return _kind(expr, [called(window) for window in windows])
    below: list[tuple[Relation, Expr]] = [(source, expr) for source in relation.inputs]
    if isinstance(relation, Join):
        below = [
            (relation.right if relation.side(part) == "right" else relation.left, part)
            for part in columns_of(expr)
        ]
    elif isinstance(relation, RowByRow):
        below = [(source, over) for source, (over,) in relation.below(expr)]
    kinds = {computed_among_ties(source, part) for source, part in below} - {None}
    return "taken" if kinds == {"taken"} and len(below) == 1 else "made" if kinds else None


def _kind(expr: Expr, calls: Sequence[Expr]) -> Computed:
    within = {id(column) for call in calls for column in _columns_around(call)}
    is_alone = len(calls) == 1 and all(id(column) in within for column in columns_of(expr))
    return "taken" if is_alone and function_name(calls[0]) in _TAKES else "made"


def _columns_around(call: Expr) -> Iterator[exp.Column]:
    """Yield the columns of a call, and of its OVER."""
    return (call.find_ancestor(exp.Window) or call).find_all(exp.Column)
