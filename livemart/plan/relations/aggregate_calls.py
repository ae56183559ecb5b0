"""Finds the aggregate calls in an expression; some have a value that the order of rows decides.

Used where gates are built, and by the notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from livemart.plan.reasons import Reason, refusal
from livemart.plan.relations.relation import Expr, Relation, bare
from livemart.plan.sql.determinism import function_name, is_aggregate, line_of
from livemart.plan.sql.written import sql_of

# Names as the parser gives them: it has its own for some (collect_list is array_agg).
ORDER_DEPENDENT = frozenset(
    {
        "first", "first_value", "last", "last_value", "any_value", "array_agg", "collect_list",
        "array_unique_agg", "collect_set", "group_concat", "listagg", "string_agg", "arg_max",
        "arg_min", "max_by", "min_by", "mode", "approx_top_k", "approx_top_k_accumulate",
        "approx_top_k_combine", "kll_sketch_agg_bigint", "kll_sketch_agg_float",
        "kll_sketch_agg_double", "kll_merge_agg_bigint", "kll_merge_agg_float",
        "kll_merge_agg_double", "tuple_sketch_agg_double", "tuple_sketch_agg_integer",
        "tuple_union_agg_double", "tuple_union_agg_integer", "tuple_intersection_agg_double",
        "tuple_intersection_agg_integer", "count_min_sketch", "histogram_numeric",
    }
)  # fmt: skip
# Of these the answer is a value of one of the rows, whichever it is.
PICKS = frozenset(
    {
        "first", "first_value", "last", "last_value", "any_value", "arg_max", "arg_min", "max_by",
        "min_by",
    }
)  # fmt: skip
# These list what they were given, in the order of the rows.
LISTS = frozenset(
    {
        "array_agg", "collect_list", "array_unique_agg", "collect_set", "group_concat", "listagg",
        "string_agg",
    }
)  # fmt: skip
# The answer of these is the value of a row, too.
TAKE_A_VALUE = PICKS | {"max", "min", "lag", "lead", "nth_value"}
# The parser has no classes for these, whose answer is the same for any order of an array.
_WITHOUT_ORDER = frozenset({"cardinality", "arrays_overlap", "forall"})
_COLLECTED = (exp.ArrayAgg, exp.ArrayUniqueAgg)
# Their answer has the same elements for any order of the array, in its order.
_KEEP_ELEMENTS = (
    exp.ArrayCompact,
    exp.ArrayDistinct,
    exp.ArrayExcept,
    exp.ArrayFilter,
    exp.ArrayRemove,
    exp.Flatten,
    exp.Transform,
)
# The wrappers around a call that are no calls themselves.
WRAPPERS = (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)


def aggregate_calls(expr: Expr) -> list[Expr]:
    """Return the aggregate calls in an expression that are not window functions.

    >>> from sqlglot import parse_one
    >>> ratio = parse_one("sum(amount) / sum(count(*)) over ()", dialect="spark")
    >>> [call.sql() for call in aggregate_calls(ratio)]
    ['SUM(amount)', 'COUNT(*)']
    """

    def is_one(node: Expr) -> bool:
        # The arguments of a window function may hold aggregates of the same SELECT.
        window = node.find_ancestor(exp.Window)
        return is_aggregate(node) and (window is None or called(window) is not node)

    nodes = expr.dfs(prune=lambda node: isinstance(node, exp.Query) or is_one(node))
    return [node for node in nodes if is_one(node)]


def called(expr: Expr) -> Expr:
    """Return the call of an expression, below OVER, FILTER and IGNORE NULLS."""
    call: Expr = expr.this if isinstance(expr, exp.Window) else expr
    while isinstance(call, WRAPPERS):
        call = call.this
    return call


def with_wrappers(call: Expr) -> Expr:
    """Return a call with FILTER, IGNORE NULLS and WITHIN GROUP around it."""
    while isinstance(call.parent, (*WRAPPERS, exp.WithinGroup)):
        call = call.parent
    return call


def specification(window: exp.Window, select: Expr | None) -> Expr:
    """Return the window that gives partition and order: itself, or a named one of its SELECT."""
    named = select.args.get("windows") if window.alias and select is not None else None
    return next((other for other in named or () if other.this.name == window.alias), window)


def is_total(relation: Relation, within: Sequence[Expr]) -> bool:
    """Return True if no two rows of a relation agree in all of these expressions."""
    texts = {sql_of(bare(part)) for part in within}
    return any(key <= texts for key in relation.unique_keys())


def is_order_dependent(call: Expr, relation: Relation, keys: Sequence[Expr]) -> bool:
    """Return True for an aggregate whose answer may depend on the order of its rows.

    Args:
        keys: the group, or the partition of a window.

    Two orders of one moment may tie. A unique column ends their order: no two agree in both.

    >>> show(
    ...     "select shop_id, max_by(amount, ordered_at) as newest from raw.orders group by shop_id"
    ... )
    region: shop_id
    ties: max_by(orders.amount, orders.ordered_at): rows may tie
    decided by: shop_id
    taken among ties: newest
    >>> show(
    ...     "select shop_id, max_by(amount, struct(ordered_at, order_id)) as newest"
    ...     " from raw.orders group by shop_id"
    ... )
    region: shop_id

    An array that is only counted, searched or sorted has no order that anybody sees.

    >>> show(
    ...     "select shop_id, array_contains(collect_set(amount), 5) as has_five,"
    ...     " cardinality(collect_list(amount)) as orders from raw.orders group by shop_id"
    ... )
    region: shop_id
    >>> show(
    ...     "select shop_id, size(filter(collect_list(amount), x -> x > 5)) as dear,"
    ...     " array_sort(transform(collect_list(amount), x -> x * 2)) as doubled"
    ...     " from raw.orders group by shop_id"
    ... )
    region: shop_id
    >>> show(
    ...     "select order_id, shop_id, size(collect_set(amount) over (partition by shop_id))"
    ...     " as amounts from raw.orders"
    ... )
    region: shop_id
    >>> show(
    ...     "select shop_id, array_sort(transform(collect_list(amount), (x, i) -> x * i)) as a"
    ...     " from raw.orders group by shop_id"
    ... )
    region: shop_id
    ties: collect_list(orders.amount): in any order
    decided by: shop_id
    made among ties: a
    >>> show("select shop_id, approx_top_k(shop_id) as top from raw.orders group by shop_id")
    full: NONDETERMINISTIC_AGG: approx_top_k(orders.shop_id) depends on the order of rows
    """
    if function_name(call) not in ORDER_DEPENDENT:
        return False
    if isinstance(call, exp.ArgMax | exp.ArgMin):
        return not is_total(relation, [*keys, *_parts(bare(call.expression))])
    if isinstance(call, exp.Mode):
        settled = call.args.get("deterministic")
        is_settled = isinstance(settled, exp.Boolean) and bool(settled.this)
        return not (is_settled or isinstance(call.parent, exp.WithinGroup))
    if isinstance(call, exp.GroupConcat):
        return not _is_concatenated_in_order(call, relation, keys)
    return shows_order(call)


def shows_order(call: Expr) -> bool:
    """Return False for an array that is collected and only counted, searched or sorted."""
    return not isinstance(call, _COLLECTED) or is_order_seen(call)


def is_order_seen(array: Expr) -> bool:
    """Return False for an array of which the expression around it only counts or sorts elements."""
    collected = array
    while collected.parent is not None and has_same_elements(collected.parent, collected):
        collected = collected.parent
    around = collected.parent
    if isinstance(around, exp.ArrayContains):
        return around.this is not collected
    if isinstance(around, exp.ArraySort):
        # With its own comparison, equal elements may be in any order.
        return around.args.get("expression") is not None
    if isinstance(around, exp.Anonymous):
        return function_name(around) not in _WITHOUT_ORDER
    if isinstance(around, exp.Exists):
        return around.this is not collected
    return not isinstance(around, exp.ArraySize | exp.ArrayMax | exp.ArrayMin)


def has_same_elements(around: Expr, collected: Expr) -> bool:
    """Return True if the order of an array decides only the order of the expression around it."""
    if isinstance(around, exp.Filter | exp.Paren | exp.Window):
        return around.this is collected
    if not isinstance(around, _KEEP_ELEMENTS) or around.this is not collected:
        return False
    function = around.args.get("expression")
    # The second argument of a lambda is an element's place.
    return not (isinstance(function, exp.Lambda) and len(function.expressions) > 1)


def order_decides(call: Expr, *, in_frames: bool = False) -> Reason:
    """Return the note on an aggregate that takes the value of one of its rows, or lists them.

    Args:
        call: for which `is_order_dependent` is true.
        in_frames: each row has another list, by an order that may tie.

    Raises:
        Inapplicable: NONDETERMINISTIC_AGG, if it makes something else of all rows in their order,
            or lists those of frames.
    """
    text, line = sql_of(call)[:80], line_of(call)
    if function_name(call) in LISTS and not in_frames:
        return Reason("NONDETERMINISTIC_AGG", f"{text}: in any order", line, _in_order(call))
    if function_name(call) in PICKS:
        return Reason(
            "NONDETERMINISTIC_AGG",
            f"{text}: rows may tie",
            line,
            "end its order in a unique column",
        )
    raise refusal(
        "NONDETERMINISTIC_AGG",
        f"{text} depends on the order of rows",
        line,
        _in_order(call),
    )


def _in_order(call: Expr) -> str | None:
    """Return how an aggregate of all rows can be written without regard to their order."""
    if isinstance(call, exp.Mode):
        return f"write mode() within group (order by {sql_of(call.this)})" if call.this else None
    if isinstance(call, exp.GroupConcat):
        return "order by a unique column last, within group (order by ...)"
    return "sort what is collected: sort_array(...)" if isinstance(call, _COLLECTED) else None


def rows_may_tie(order: str, node: Expr) -> Reason:
    """Return the note on an order that decides about rows and may leave some of them tied."""
    return Reason(
        "NONDETERMINISTIC_ORDER",
        f"rows may tie: {order}",
        line_of(node),
        "end the order in a unique column",
    )


def orders_of(call: Expr) -> list[Expr]:
    """Return the expressions by which an aggregate puts its own rows in order, to be replaced."""
    if isinstance(call, exp.ArgMax | exp.ArgMin):
        return _parts(bare(call.expression))
    order = call.this if isinstance(call, exp.GroupConcat) else None
    if not isinstance(order, exp.Order):
        return []
    return [bare(item.this) for item in order.expressions]


def _parts(order: Expr) -> list[Expr]:
    """Return the parts by which a value is compared: a struct's fields, or the value itself."""
    if not isinstance(order, exp.Struct | exp.Tuple):
        return [order]
    return [
        bare(field.expression if isinstance(field, exp.PropertyEQ) else field)
        for field in order.expressions
    ]


def _is_concatenated_in_order(
    call: exp.GroupConcat, relation: Relation, keys: Sequence[Expr]
) -> bool:
    """Return True for `within group (order by ...)` whose ties are equal or cannot be."""
    order = call.this
    if not isinstance(order, exp.Order):
        return False
    sorts = [bare(item.this) for item in order.expressions]
    listed = order.this
    values = listed.expressions if isinstance(listed, exp.Distinct) else [listed]
    if all(sql_of(bare(value)) in {sql_of(sort) for sort in sorts} for value in values):
        return True
    return is_total(relation, [*keys, *sorts])
