"""Finds the columns that two full recomputations may disagree on: sketches, estimates, lists.

Used by verify, which compares estimates within a tolerance, and lists without their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.reasons import Inapplicable
from livemart.plan.relations.aggregate_calls import ORDER_DEPENDENT, PICKS, shows_order
from livemart.plan.sql.determinism import APPROXIMATE_AGGREGATES, function_name
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.parse import parse, qualified

_FUNCTIONS = APPROXIMATE_AGGREGATES | {
    *("hll_union", "theta_union", "theta_intersection", "theta_difference")
}


def approximate_columns(
    flat: Flat,
    columns: Mapping[str, tuple[str, ...]],
    approximate: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    """Return the output columns that come from an approximate function, with that function's name.

    Args:
        columns: the columns of each relation it reads.
        approximate: what this function returned for each of them.

    Returns:
        Names in lower case; empty if the query cannot be analysed.
    """
    return _columns_of(flat, columns, approximate, lambda node: function_name(node) in _FUNCTIONS)


def columns_by_order(flat: Flat, columns: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the output columns in which all rows are taken in their order, with the function.

    Args:
        columns: the columns of each relation it reads.

    Returns:
        Names in lower case; empty if the query cannot be analysed.

    >>> flat = Flat(("select shop_id, collect_set(amount) as amounts from sales group by 1",))
    >>> columns_by_order(flat, {})
    {'amounts': 'array_unique_agg'}
    """
    return _columns_of(flat, columns, {}, _takes_rows_in_order)


def _takes_rows_in_order(node: exp.Expr) -> bool:
    return function_name(node) in ORDER_DEPENDENT - PICKS and shows_order(node)


def _columns_of(
    flat: Flat,
    columns: Mapping[str, tuple[str, ...]],
    inherited: Mapping[str, Mapping[str, str]],
    is_one: Callable[[exp.Expr], bool],
) -> dict[str, str]:
    """Return the output columns that come from one of some functions, with its name."""
    functions = {
        occurrence.placeholder: inherited.get(occurrence.relation, {})
        for occurrence in flat.occurrences
    }
    try:
        tree = qualified(parse(flat.text), flat.schema(columns))
        by_scope: dict[int, dict[str, str]] = {}
        result: dict[str, str] = {}
        for scope in traverse_scope(tree):
            result = by_scope[id(scope.expression)] = _of_scope(scope, by_scope, functions, is_one)
        return result
    except (Inapplicable, SqlglotError, RecursionError, KeyError, AttributeError):
        return {}


def _of_scope(
    scope: Scope,
    by_scope: Mapping[int, dict[str, str]],
    functions: Mapping[str, Mapping[str, str]],
    is_one: Callable[[exp.Expr], bool],
) -> dict[str, str]:
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        left, right = query.left.unnest(), query.right.unnest()
        assert isinstance(right, exp.Query)
        names = [name.lower() for name in query.named_selects]
        of_right = by_scope.get(id(right), {})
        return by_scope.get(id(left), {}) | {
            name: of_right[other.lower()]
            for name, other in zip(names, right.named_selects, strict=False)
            if other.lower() in of_right
        }
    if not isinstance(query, exp.Select):
        return {}
    inherited = {
        name: by_scope.get(id(source.expression), {})
        if isinstance(source, Scope)
        else functions.get(source.name, {})
        for name, source in scope.sources.items()
    }
    flags = {
        item.alias_or_name.lower(): _function_below(item, inherited, is_one)
        for item in query.selects
    }
    return {name: function for name, function in flags.items() if function is not None}


def _function_below(
    projection: exp.Expr,
    inherited: Mapping[str, Mapping[str, str]],
    is_one: Callable[[exp.Expr], bool],
) -> str | None:
    for node in projection.walk():
        name = function_name(node)
        if isinstance(node, exp.Column):
            name = inherited.get(node.table, {}).get(node.name.lower())
        elif not is_one(node):
            continue
        if name is not None:
            return name
    return None
