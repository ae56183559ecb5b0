"""GROUP BY and OVER: the gates of a SELECT, where rows meet other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from livemart.plan.determinism import function_name, is_order_dependent, line_of
from livemart.plan.frames import frame_of, needs_total_order
from livemart.plan.functions import AGGREGATE_FUNCTIONS
from livemart.plan.reasons import Reason, Unplannable
from livemart.plan.relation import Expr, Relation, bare, columns_of, sql_of
from livemart.plan.rules.gate import Aggregate, Frame, Window


def aggregated(
    relation: Relation, tree: exp.Select, outputs: Sequence[Expr], having: list[Expr]
) -> Relation:
    """Return the groups of a SELECT; the relation itself if it has none.

    Raises:
        Unplannable: GLOBAL_AGG, NONDETERMINISTIC_AGG.
    """
    group = tree.args.get("group")
    calls = [call for expr in (*outputs, *having) for call in _aggregate_calls(expr)]
    if group is None and not calls:
        return relation
    for call in calls:
        if is_order_dependent(call):
            raise Unplannable(
                Reason(
                    "NONDETERMINISTIC_AGG",
                    f"{call.sql('spark')[:80]} depends on the order of rows",
                    line_of(call),
                    "take the row by row_number() with a unique last sort column",
                )
            )
    keys: list[Expr] = []
    if group is not None:
        if any(
            group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup", "totals")
        ) or any(
            isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets) for node in group.walk()
        ):
            raise Unplannable(
                Reason("GLOBAL_AGG", "grouping sets hold a total over all rows", line_of(group))
            )
        keys = [window_struct(bare(key), tree) for key in group.expressions]
        if group.args.get("all"):
            keys = [expr for expr in outputs if not _aggregate_calls(expr)]
    if not keys:
        raise Unplannable(
            Reason(
                "GLOBAL_AGG",
                "an aggregate without GROUP BY depends on every row",
                line_of(tree),
                "aggregate by hour in a model upstream",
            )
        )
    return Aggregate(relation, keys)


def windowed(relation: Relation, tree: exp.Select, exprs: Sequence[Expr]) -> Relation:
    """Return the window functions of a SELECT's expressions; the relation itself without any.

    Raises:
        Unplannable: WINDOW_WITHOUT_PARTITION_BY, NONDETERMINISTIC_ORDER, NONDETERMINISTIC_AGG.
    """
    named = {window.this.name: window for window in tree.args.get("windows") or ()}
    windows = [
        _window(relation, window, named) for expr in exprs for window in expr.find_all(exp.Window)
    ]
    # Windows of one SELECT read the same input: side by side they widen a change by the widest
    # of their frames, not by the sum.
    together: dict[tuple[str, ...], list[Window]] = {}
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
        relation = Window(relation, group[0].keys, frame, ranked)
    return relation


def _window(relation: Relation, window: exp.Window, named: Mapping[str, Expr]) -> Window:
    spec: Expr = window
    if window.alias and window.alias in named:
        spec = named[window.alias]
    call = window.this
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    partition = [bare(key) for key in spec.args.get("partition_by") or ()]
    order = spec.args.get("order")
    frame = frame_of(spec, call)
    if not partition and frame is None:
        raise Unplannable(
            Reason(
                "WINDOW_WITHOUT_PARTITION_BY",
                f"{window.sql('spark')[:80]}",
                line_of(window),
                "add a PARTITION BY",
            )
        )
    sorts = [bare(item.this) for item in order.expressions] if order is not None else []
    ranked: list[Expr] = []
    if needs_total_order(call, spec):
        if not _is_total(relation, [*partition, *sorts]):
            order_text = order.sql("spark").strip() if order is not None else "no ORDER BY"
            raise Unplannable(
                Reason(
                    "NONDETERMINISTIC_ORDER",
                    f"rows can tie: {order_text}",
                    line_of(window),
                    "end the order in a unique column",
                )
            )
        if function_name(call) == "row_number":
            ranked.append(window)
    elif is_order_dependent(call):
        raise Unplannable(Reason("NONDETERMINISTIC_AGG", window.sql("spark")[:80], line_of(window)))
    return Window(relation, partition, frame, ranked)


def _is_total(relation: Relation, within: Sequence[Expr]) -> bool:
    return any(
        all(composed_of_text(text, within) for text in key) for key in relation.unique_keys()
    )


def composed_of_text(text: str, parts: Sequence[Expr]) -> bool:
    """Return True if the expression with this SQL text is one of `parts`."""
    return text in {sql_of(bare(part)) for part in parts}


def _aggregate_calls(expr: Expr) -> list[Expr]:
    """Return the aggregate calls in an expression that are not window functions."""
    found: list[Expr] = []

    def visit(node: Expr) -> None:
        if isinstance(node, exp.Window):
            # The arguments of a window function may hold aggregates of the same SELECT.
            call = node.this
            for part in [*call.iter_expressions(), *(node.args.get("partition_by") or ())]:
                visit(part)
            if node.args.get("order") is not None:
                visit(node.args["order"])
            return
        if isinstance(node, exp.Query):
            return
        if isinstance(node, exp.AggFunc) or function_name(node) in AGGREGATE_FUNCTIONS:
            found.append(node)
            return
        for child in node.iter_expressions():
            visit(child)

    visit(expr)
    return found


def window_struct(expr: Expr, tree: exp.Select) -> Expr:
    """Replace `window.start`, which Spark names after the grouping call, by the call's field."""
    group = tree.args.get("group")
    if group is None:
        return expr
    calls = {
        name: key
        for key in map(bare, group.expressions)
        if (name := function_name(key)) in ("window", "session_window")
    }
    if not calls:
        return expr
    copy = expr.copy()
    for reference in list(columns_of(copy)):
        replacement: Expr | None = None
        if reference.table in calls:
            call = calls[reference.table].copy()
            replacement = exp.Dot(this=call, expression=exp.to_identifier(reference.name))
        elif not reference.table and reference.name in calls:
            replacement = calls[reference.name].copy()
        if replacement is not None:
            if reference is copy:
                return replacement
            reference.replace(replacement)
    return copy
