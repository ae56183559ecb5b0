"""Finds the columns that two full recomputations may disagree on: sketches, estimates, lists.

Used by verify, which compares estimates within a tolerance, and lists without their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.reasons import Inapplicable
from livemart.plan.relations.aggregate_calls import (
    LISTS,
    ORDER_DEPENDENT,
    PICKS,
    has_same_elements,
    is_order_seen,
    shows_order,
)
from livemart.plan.sql.determinism import APPROXIMATE_AGGREGATES, function_name
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.parse import parse, qualified

ByOrder = Literal["listed", "ordered"]
_Word = TypeVar("_Word", bound=str)
# By the name of a source, the words of its columns.
_Inherited = Mapping[str, Mapping[str, _Word]]
# These make a text or a struct that holds each element of an array as it is.
_AROUND_LISTS = (
    exp.Alias,
    exp.ArrayToString,
    exp.Cast,
    exp.Coalesce,
    exp.ConcatWs,
    exp.JSONFormat,
    exp.PropertyEQ,
    exp.Struct,
    exp.WithinGroup,
)
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
    return _columns_of(flat, columns, approximate, _approximate_function)


def columns_by_order(flat: Flat, columns: Mapping[str, tuple[str, ...]]) -> dict[str, ByOrder]:
    """Return the output columns in which all rows are taken in their order.

    Args:
        columns: the columns of each relation it reads.

    Returns:
        By name in lower case, `listed` if another order changes no more than the order of elements,
        else `ordered`; empty if the query cannot be analysed.

    >>> flat = Flat(
    ...     (
    ...         "select shop_id, array_join(collect_set(amount), ', ') as amounts,"
    ...         " collect_list(at)[0] as some from sales group by 1",
    ...     )
    ... )
    >>> columns_by_order(flat, {})
    {'amounts': 'listed', 'some': 'ordered'}
    """
    return _columns_of(flat, columns, {}, _by_order)


def _columns_of(
    flat: Flat,
    columns: Mapping[str, tuple[str, ...]],
    inherited: Mapping[str, Mapping[str, _Word]],
    word_of: Callable[[exp.Expr, _Inherited[_Word]], _Word | None],
) -> dict[str, _Word]:
    """Return the output columns of which `word_of` says something, with that word."""
    words = {
        occurrence.placeholder: inherited.get(occurrence.relation, {})
        for occurrence in flat.occurrences
    }
    try:
        tree = qualified(parse(flat.text), flat.schema(columns))
        by_scope: dict[int, dict[str, _Word]] = {}
        result: dict[str, _Word] = {}
        for scope in traverse_scope(tree):
            result = by_scope[id(scope.expression)] = _of_scope(scope, by_scope, words, word_of)
        return result
    except (Inapplicable, SqlglotError, RecursionError, KeyError, AttributeError):
        return {}


def _of_scope(
    scope: Scope,
    by_scope: Mapping[int, dict[str, _Word]],
    words: Mapping[str, Mapping[str, _Word]],
    word_of: Callable[[exp.Expr, _Inherited[_Word]], _Word | None],
) -> dict[str, _Word]:
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
        else words.get(source.name, {})
        for name, source in scope.sources.items()
    }
    of_items = {item.alias_or_name.lower(): word_of(item, inherited) for item in query.selects}
    return {name: word for name, word in of_items.items() if word is not None}


def _approximate_function(projection: exp.Expr, inherited: _Inherited[str]) -> str | None:
    for node in projection.walk():
        name = function_name(node)
        if isinstance(node, exp.Column):
            name = inherited.get(node.table, {}).get(node.name.lower())
        elif name not in _FUNCTIONS:
            continue
        if name is not None:
            return name
    return None


def _by_order(projection: exp.Expr, inherited: _Inherited[ByOrder]) -> ByOrder | None:
    seen: list[tuple[exp.Expr, ByOrder]] = []
    for node in projection.walk():
        name = function_name(node)
        if isinstance(node, exp.Column):
            word = inherited.get(node.table, {}).get(node.name.lower())
            if word is not None and is_order_seen(node):
                seen.append((node, word))
        elif name in ORDER_DEPENDENT - PICKS and shows_order(node):
            seen.append((node, "listed" if name in LISTS else "ordered"))
    if not seen:
        return None
    (node, word), *others = seen
    return "ordered" if others or not _shows_all(node, projection) else word


def _shows_all(listed: exp.Expr, projection: exp.Expr) -> bool:
    """Return True if all elements of a list are in a projection."""
    while listed is not projection and (around := listed.parent) is not None:
        if not isinstance(around, _AROUND_LISTS) and not has_same_elements(around, listed):
            return False
        listed = around
    return True
