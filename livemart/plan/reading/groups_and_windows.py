"""Puts the gates of a SELECT above its rows: GROUP BY and OVER, where rows meet other rows.

Used by scopes, after FROM and WHERE.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from livemart.plan.reading.grouping_sets import SETS, grouping_sets
from livemart.plan.reading.subqueries import refuse_subqueries
from livemart.plan.reasons import Reason, refusal
from livemart.plan.relations.aggregate_calls import (
    aggregate_calls,
    called,
    is_order_dependent,
    is_total,
    order_decides,
    rows_may_tie,
    specification,
)
from livemart.plan.relations.frames import frame_of, needs_total_order
from livemart.plan.relations.gate import Aggregate, Frame, GrandTotal, GroupsOfSets, WindowGate
from livemart.plan.relations.relation import Expr, Relation, bare, replaced
from livemart.plan.sql.determinism import function_name, line_of
from livemart.plan.sql.written import sql_of


def aggregated(
    relation: Relation,
    tree: exp.Select,
    outputs: Sequence[Expr],
    having: list[Expr],
    above: Sequence[Expr] = (),
) -> Relation:
    """Return the groups of a SELECT; the relation itself if it has none.

    HAVING makes one group of all rows even where nothing else does. `above`: what is computed of
    the groups besides, as in QUALIFY.

    Raises:
        Inapplicable: GLOBAL_AGG, NONDETERMINISTIC_AGG.
    """
    group = tree.args.get("group")
    named = [
        part
        for window in tree.args.get("windows") or ()
        for part in (*(window.args.get("partition_by") or ()), window.args.get("order"))
        if part is not None
    ]
    calls = [call for expr in (*outputs, *having, *above, *named) for call in aggregate_calls(expr)]
    if group is None and not calls and not having:
        return relation
    keys: list[Expr] = []
    if group is not None:
        if group.args.get("totals") or group.find(*SETS):
            return _groups_of_sets(relation, group, calls)
        for key in group.expressions:
            refuse_subqueries(key)
        keys = [window_struct(bare(key), tree) for key in group.expressions]
        if group.args.get("all"):
            keys = [expr for expr in outputs if not aggregate_calls(expr)]
    if not keys:
        message = "an aggregate without GROUP BY depends on every row"
        suggestion = "aggregate by hour in a model upstream"
        if isinstance(_around(tree), exp.SetOperation):
            message = "a total over all rows is a row beside others"
            suggestion = "group by hour or by key in a subquery, and total its groups"
        elif tree.parent is not None:
            message = "rows are compared with a total over all rows: when it changes, all do"
            suggestion = "store the total in a model: while it stays, only rows that change count"
        why = refusal("GLOBAL_AGG", message, line_of(tree), suggestion)
        if tree.parent is not None:
            raise why
        return GrandTotal(relation, why.reason)
    ties = [order_decides(call) for call in calls if is_order_dependent(call, relation, keys)]
    return Aggregate(relation, keys, ties)


def _groups_of_sets(relation: Relation, group: exp.Group, calls: Sequence[Expr]) -> GroupsOfSets:
    message = "grouping sets hold a total over all rows"
    suggestion = "group by all of their columns in a subquery, and add up its groups"
    why = refusal("GLOBAL_AGG", message, line_of(group), suggestion)
    if (sets := grouping_sets(group)) is None:
        raise why
    groups = GroupsOfSets(relation, sets, why.reason)
    ties = [order_decides(it) for it in calls if is_order_dependent(it, relation, groups.keys)]
    return GroupsOfSets(relation, sets, why.reason, ties) if ties else groups


def _around(tree: exp.Select) -> Expr | None:
    """Return the node that a SELECT is in, brackets aside."""
    node = tree.parent
    while isinstance(node, exp.Subquery) and not node.alias:
        node = node.parent
    return node


def windowed(relation: Relation, tree: exp.Select, exprs: Sequence[Expr]) -> Relation:
    """Return the window functions of a SELECT's expressions; the relation itself without any.

    Raises:
        Inapplicable: WINDOW_WITHOUT_PARTITION_BY, NONDETERMINISTIC_AGG.
    """
    windows = [
        _window(relation, window, tree) for expr in exprs for window in expr.find_all(exp.Window)
    ]
    # Windows of one SELECT read the same input: side by side they widen a change by the widest
    # of their frames, not by the sum.
    together: dict[tuple[str, ...], list[WindowGate]] = {}
    for window in windows:
        order = sql_of(window.frame.order) if window.frame is not None else ""
        keys = (*(sql_of(key) for key in window.keys), "order", order)
        together.setdefault(keys, []).append(window)
    for group in together.values():
        frames = [window.frame for window in group if window.frame is not None]
        frame = None
        if frames:
            before = max(frame.before for frame in frames)
            frame = Frame(frames[0].order, before, max(frame.after for frame in frames))
        ranked = [rank for window in group for rank in window.ranked]
        ties = [reason for window in group for reason in window.ties]
        windows_here = [window for member in group for window in member.windows]
        relation = WindowGate(relation, group[0].keys, frame, ranked, ties, windows_here)
    return relation


def _window(relation: Relation, window: exp.Window, tree: exp.Select) -> WindowGate:
    spec = specification(window, tree)
    call = called(window)
    partition = [bare(key) for key in spec.args.get("partition_by") or ()]
    order = spec.args.get("order")
    frame = frame_of(spec, call)
    if not partition and frame is None:
        instead = "keep it in a model of few rows, such as totals by day: its full refresh is cheap"
        if tree.args.get("group") is not None:
            instead = "group in a subquery, and compute it over its rows"
        raise refusal(
            "WINDOW_WITHOUT_PARTITION_BY",
            f"{sql_of(window)[:80]}: without a partition, its frame is found among all rows",
            line_of(window),
            f"partition by a key, if a value of each key alone is meant; else {instead}",
        )
    sorts = [bare(item.this) for item in order.expressions] if order is not None else []
    ranked: list[Expr] = []
    ties: list[Reason] = []
    is_settled = is_total(relation, [*partition, *sorts])
    if needs_total_order(call, spec):
        if not is_settled:
            order_text = sql_of(order).strip() if order is not None else "no ORDER BY"
            ties.append(rows_may_tie(order_text[:80], window))
        if function_name(call) == "row_number":
            ranked.append(window)
    elif isinstance(call, exp.ArrayAgg) and is_settled:
        # Spark lists the rows of a window in their order.
        pass
    elif is_order_dependent(call, relation, partition):
        ties.append(order_decides(call, in_frames=order is not None))
    return WindowGate(relation, partition, frame, ranked, ties, [window])


def window_struct(expr: Expr, tree: exp.Select) -> Expr:
    """Replace `window.start`, which Spark names after the grouping call, by the call's field."""
    group = tree.args.get("group")
    calls = {
        name: key
        for key in map(bare, group.expressions if group is not None else ())
        if (name := function_name(key)) in ("window", "session_window")
    }

    def call_or_field(reference: exp.Column) -> Expr | None:
        if reference.table in calls:
            field = exp.to_identifier(reference.name)
            return exp.Dot(this=calls[reference.table].copy(), expression=field)
        return None if reference.table else calls.get(reference.name)

    return replaced(expr, call_or_field) if calls else expr
