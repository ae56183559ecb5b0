"""Turns a correlated subquery into the right side of a join.

Used by scopes and the FROM clause, for LATERAL, scalar subqueries, EXISTS and IN. The rows of the
subquery that share their keys with a row are all that decides about it; how they do is for Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice

from sqlglot import exp

from livemart.plan.reading.grouping_sets import SETS
from livemart.plan.reading.subqueries import refuse_subqueries, unsupported
from livemart.plan.reasons import Reason
from livemart.plan.relations.aggregate_calls import (
    aggregate_calls,
    is_order_dependent,
    is_total,
    order_decides,
    orders_of,
    rows_may_tie,
)
from livemart.plan.relations.alias import Alias
from livemart.plan.relations.clock import clock_values, is_clock_value
from livemart.plan.relations.equi_keys import EquiKey, equi_keys
from livemart.plan.relations.gate import Distinct, WindowGate
from livemart.plan.relations.join import Join, JoinKind
from livemart.plan.relations.relation import Expr, Relation, bare, column, columns_of, conjuncts
from livemart.plan.sql.written import sql_of

# Turns a SELECT that names nothing around it into a relation and the names of its columns.
QueryOf = Callable[[Expr], tuple[Relation, tuple[str, ...]]]

# The parts of a subquery that may decide about an answer, but bring in no row that has other keys.
_DROPPED = ("expressions", "group", "having", "qualify", "order", "limit", "distinct", "windows")
_KEY, _ORDER, _ANSWER = "__livemart_key_", "__livemart_order_", "__livemart_answer"


def beside_answer(
    left: Relation,
    subquery: Expr,
    qualifier: str,
    query_of: QueryOf,
    *,
    compared: Expr | None = None,
    is_existence: bool = False,
) -> tuple[Relation, Expr] | None:
    """Return what a query reads with what a subquery's answer depends on, and the answer.

    None if no equality ties the subquery to the query around it. Nothing can be asked of the answer
    but which rows it depends on.

    Args:
        subquery: a scalar subquery, or that of EXISTS or IN.
        compared: what the subquery's columns must equal, as in IN: one value, or a tuple.
        is_existence: it is asked whether there is a row.

    Raises:
        Inapplicable: for a shape without a rule.
    """
    select, keys = _taken_apart(subquery)
    if select is not None and compared is not None:
        group = select.args.get("group")
        if compared.find(exp.Query) or clock_values(compared) or _chooses(select):
            return None
        if group is not None and group.find(*SETS):
            # The value of a total of groups is none of its rows' own.
            return None
        keys += _keys_of_in(compared, select)
    if select is None or not keys:
        return None
    dropped = [part for name in _DROPPED for part in _parts(select, name)]
    for part in dropped:
        refuse_subqueries(part)
        if part.find(exp.Window) is not None:
            raise unsupported("a window in a correlated subquery", subquery)
    calls = [call for part in dropped for call in aggregate_calls(part)]
    is_total_of_rows = bool(calls) and select.args.get("group") is None
    limit, sorts = select.args.get("limit"), _sorts(select)
    if is_existence or is_total_of_rows or any(map(aggregate_calls, sorts)):
        # One answer, whatever their order; or one that goes by groups.
        sorts = []
    if is_existence or is_total_of_rows or _are_ordered_by(sorts, select.expressions):
        limit = None
    for name in _DROPPED:
        select.set(name, None)
    orders = [orders_of(call) for call in calls]
    select.set("expressions", _named(keys, [*sorts, *chain(*orders)]))
    relation, _ = query_of(select)
    columns = _columns(_KEY, len(keys))
    ties = [] if limit is None else _ties_of_limit(relation, limit, columns, sorts)
    names = iter(_columns(_ORDER, len(sorts) + sum(map(len, orders)))[len(sorts) :])
    for call, order in zip(calls, orders, strict=True):
        # In the relation, the order of the call has the names of its output.
        if is_order_dependent(call, relation, [*columns, *islice(names, len(order))]):
            ties.append(order_decides(call))
    right = Alias(Distinct(relation, columns, ties), qualifier, tuple(_names(_KEY, len(keys))))
    joined = Join(left, right, "left", _over(keys, qualifier), frozenset({qualifier}))
    return joined, column(_ANSWER, qualifier)


def joined_lateral(
    left: Relation, subquery: Expr, qualifier: str, query_of: QueryOf, kind: JoinKind
) -> Relation | None:
    """Return a LATERAL subquery joined; None if no equality ties it to the items before it.

    Args:
        kind: `left` or `inner`.

    Raises:
        Inapplicable: for a shape without a rule.
    """
    select, keys = _taken_apart(subquery)
    if select is None or not keys:
        return None
    if select.find(exp.Window) or any(map(select.args.get, ("offset", "distinct", "qualify"))):
        # These would need the keys among their own.
        raise unsupported("a window, DISTINCT or OFFSET in a lateral subquery", subquery)
    limit, sorts = select.args.get("limit"), _sorts(select)
    select.set("order", None)
    select.set("limit", None)
    group = select.args.get("group")
    if group is not None or any(map(aggregate_calls, select.expressions)):
        if group is None:
            # A total over no row is one row all the same.
            kind = "left"
        elif group.find(*SETS) or any(it for n, it in group.args.items() if n != "expressions"):
            raise unsupported("grouping sets in a lateral subquery", subquery)
        if limit is not None:
            raise unsupported("LIMIT of groups in a lateral subquery", subquery)
        rights = [key.right.copy() for key in keys]
        groups = group.expressions if group is not None else []
        select.set("group", exp.Group(expressions=[*groups, *rights]))
        sorts = []
    outputs = select.expressions
    select.set("expressions", [*_named(keys, sorts), *outputs])
    relation, names = query_of(select)
    if limit is not None:
        columns = _columns(_KEY, len(keys))
        is_settled = _are_ordered_by(sorts, outputs)
        ties = [] if is_settled else _ties_of_limit(relation, limit, columns, sorts)
        relation = WindowGate(relation, columns, None, (), ties)
    right = Alias(relation, qualifier, names)
    return Join(left, right, kind, _over(keys, qualifier), frozenset({qualifier}))


def _keys_of_in(compared: Expr, select: exp.Select) -> list[EquiKey]:
    """Return the equalities of `x in (select y ...)`, or of `(x, z) in (select y, max(t) ...)`.

    A total is none: the rows of its group share the other values.
    """
    values = compared.expressions if isinstance(compared, exp.Tuple) else [compared]
    outputs = map(bare, select.expressions)
    return [
        EquiKey(value, output, null_safe=False)
        for value, output in zip(values, outputs, strict=False)
        if not aggregate_calls(output)
    ]


def _chooses(select: exp.Select) -> bool:
    """Return True if a SELECT compares rows before its output is compared with anything."""
    return select.find(exp.Window) is not None or any(
        map(select.args.get, ("limit", "offset", "qualify"))
    )


def _taken_apart(subquery: Expr) -> tuple[exp.Select | None, list[EquiKey]]:
    """Return a copy of a SELECT that names nothing around it, and the equalities that did.

    Other conditions that name an outer column are left out: they only narrow the matches.
    """
    select = subquery
    while isinstance(select, exp.Subquery | exp.Paren):
        select = select.this
    if not isinstance(select, exp.Select):
        return None, []
    select = select.copy()
    inside = frozenset(_aliases(select))
    where = select.args.get("where")
    keys: list[EquiKey] = []
    if where is not None:
        parts = conjuncts(where.this)
        outside = [part for part in parts if not part.find(exp.Query) and _tables(part) - inside]
        for part in outside:
            keys += equi_keys(part, inside)
        conditions = [part for part in parts if part not in outside]
        select.set(
            "where", exp.Where(this=exp.and_(*conditions, copy=False)) if conditions else None
        )
    for reference in columns_of(select):
        _refuse_outside(reference, select, subquery)
    return select, keys


def _refuse_outside(reference: exp.Column, select: exp.Select, subquery: Expr) -> None:
    """Raise Inapplicable for a column from outside a subquery, or of a clock there."""
    around, aliases = reference.find_ancestor(exp.Select), list[str]()
    while around is not None:
        aliases += _aliases(around)
        around = around.find_ancestor(exp.Select) if around is not select else None
    is_known = reference.table in aliases or (
        not reference.table and reference.find_ancestor(exp.Ordered, exp.Select) is not select
    )
    if is_clock_value(reference) or not is_known:
        raise unsupported(f"{sql_of(reference)} in this place of a subquery", subquery)


def _parts(select: exp.Select, name: str) -> list[Expr]:
    value = select.args.get(name)
    parts = value if isinstance(value, list) else [value]
    return [part for part in parts if isinstance(part, exp.Expr)]


def _sorts(select: exp.Select) -> list[Expr]:
    """Return the order of a SELECT, where it names an output that output itself."""
    order = select.args.get("order")
    outputs = {output.alias_or_name: bare(output) for output in select.expressions}
    sorts = [bare(item.this) for item in order.expressions] if order is not None else []
    return [
        outputs.get(sort.name, sort) if isinstance(sort, exp.Column) and not sort.table else sort
        for sort in sorts
    ]


def _are_ordered_by(sorts: Sequence[Expr], outputs: Sequence[Expr]) -> bool:
    """Return True if rows that tie have the same output, so that any of them may be picked."""
    return bool(sorts) and all(bare(output) in sorts for output in outputs)


def _tables(expr: Expr) -> set[str]:
    return {reference.table for reference in columns_of(expr) if not is_clock_value(reference)}


def items_of_from(select: Expr) -> list[Expr]:
    """Return the items that a SELECT reads: tables, subqueries and lateral views."""
    from_ = select.args.get("from_")
    items = [from_.this] if from_ is not None else []
    items += [join.this for join in select.args.get("joins") or ()]
    return [*items, *(select.args.get("laterals") or ())]


def _aliases(select: exp.Select) -> list[str]:
    return [item.alias_or_name for item in items_of_from(select)]


def _named(keys: Sequence[EquiKey], sorts: Sequence[Expr]) -> list[Expr]:
    """Return a select list of the keys inside, and of the orders of LIMIT and of aggregates."""
    names = [*_names(_KEY, len(keys)), *_names(_ORDER, len(sorts))]
    values = [*(key.right for key in keys), *sorts]
    return [
        exp.alias_(value.copy(), name, copy=False)
        for name, value in zip(names, values, strict=True)
    ]


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{place}" for place in range(count)]


def _columns(prefix: str, count: int) -> list[Expr]:
    return [column(name) for name in _names(prefix, count)]


def _over(keys: Sequence[EquiKey], qualifier: str) -> list[EquiKey]:
    return [
        EquiKey(key.left, column(name, qualifier), key.null_safe)
        for key, name in zip(keys, _names(_KEY, len(keys)), strict=True)
    ]


def _ties_of_limit(
    relation: Relation, limit: Expr, keys: Sequence[Expr], sorts: Sequence[Expr]
) -> list[Reason]:
    if is_total(relation, [*keys, *_columns(_ORDER, len(sorts))]):
        return []
    written = ", ".join(map(sql_of, sorts)) or "no ORDER BY"
    return [rows_may_tie(f"{written[:80]} before LIMIT", limit)]
