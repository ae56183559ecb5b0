"""Finds the columns that two full recomputations may disagree on: sketches, estimates, lists.

Used by verify, which compares estimates within a tolerance, and lists without their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.helper import ensure_list
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

_Word = TypeVar("_Word")
# By the name of a source, the words of its columns.
_Inherited = Mapping[str, Mapping[str, _Word]]
# Takes the words of both branches of a union.
_BothBranches = Callable[[dict[str, _Word], dict[str, _Word]], dict[str, _Word]]
# The clauses that decide about rows.
_DECIDING = ("where", "having", "group", "joins", "laterals", "order", "qualify", "limit")
# A list and what separates its elements.
_TWO = 2
_FUNCTIONS = APPROXIMATE_AGGREGATES | {
    *("hll_union", "theta_union", "theta_intersection", "theta_difference")
}


class ByOrder(NamedTuple):
    """How an output column takes rows in their order."""

    is_listed: bool = False
    """Another order changes no more than the order of its elements."""
    separator: str | None = None
    """The text between the elements, if the column is a text."""


def _either(left: dict[str, _Word], right: dict[str, _Word]) -> dict[str, _Word]:
    return left | right


def _alike(left: dict[str, ByOrder], right: dict[str, ByOrder]) -> dict[str, ByOrder]:
    names = left.keys() | right.keys()
    words = {name: {left.get(name, ByOrder()), right.get(name, ByOrder())} for name in names}
    return {name: both.pop() if len(both) == 1 else ByOrder() for name, both in words.items()}


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
        Names in lower case; empty if the query cannot be analysed.

    >>> flat = Flat(
    ...     (
    ...         "select shop_id, array_join(collect_set(amount), ', ') as amounts,"
    ...         " collect_list(at)[0] as some from sales group by 1",
    ...     )
    ... )
    >>> columns_by_order(flat, {})
    {'amounts': ByOrder(is_listed=True, separator=', '), 'some': ByOrder(is_listed=False, \
separator=None)}
    """
    return _columns_of(flat, columns, {}, _by_order, _alike)


def lists_decide_rows(flat: Flat, columns: Mapping[str, tuple[str, ...]]) -> bool:
    """Return True if the order of a list may decide which rows there are, or about other columns.

    Args:
        columns: the columns of each relation it reads.

    >>> joined = "array_join(collect_list(amount), ', ')"
    >>> flat = Flat((f"select shop_id from sales group by 1 having {joined} = '1, 2'",))
    >>> lists_decide_rows(flat, {})
    True
    """
    decided: list[bool] = []

    def word_of(item: exp.Expr, inherited: _Inherited[ByOrder]) -> ByOrder | None:
        if not decided:
            select = item.find_ancestor(exp.Select)
            clauses = (select.args.get(name) for name in _DECIDING) if select else ()
            parts = [part for clause in clauses for part in ensure_list(clause)]
            if any(_by_order(part, inherited) is not None for part in parts):
                decided.append(True)
        return _by_order(item, inherited)

    taken = _columns_of(flat, columns, {}, word_of, _alike)
    # SQL that only Spark can take apart has no columns here, and is not walked.
    return bool(decided) or any(
        isinstance(node, exp.Distinct)
        or (isinstance(node, exp.SetOperation) and bool(node.args.get("distinct")))
        for node in (parse(flat.text).walk() if taken else ())
    )


def _columns_of(
    flat: Flat,
    columns: Mapping[str, tuple[str, ...]],
    inherited: Mapping[str, Mapping[str, _Word]],
    word_of: Callable[[exp.Expr, _Inherited[_Word]], _Word | None],
    both_branches: _BothBranches[_Word] = _either,
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
            result = by_scope[id(scope.expression)] = _of_scope(
                scope, by_scope, words, word_of, both_branches
            )
        return result
    except (Inapplicable, SqlglotError, RecursionError, KeyError, AttributeError):
        return {}


def _of_scope(
    scope: Scope,
    by_scope: Mapping[int, dict[str, _Word]],
    words: Mapping[str, Mapping[str, _Word]],
    word_of: Callable[[exp.Expr, _Inherited[_Word]], _Word | None],
    both_branches: _BothBranches[_Word],
) -> dict[str, _Word]:
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        left, right = query.left.unnest(), query.right.unnest()
        assert isinstance(right, exp.Query)
        names = [name.lower() for name in query.named_selects]
        of_right = by_scope.get(id(right), {})
        renamed = {
            name: of_right[other.lower()]
            for name, other in zip(names, right.named_selects, strict=False)
            if other.lower() in of_right
        }
        return both_branches(by_scope.get(id(left), {}), renamed)
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
            if word is not None and (not word.is_listed or is_order_seen(node)):
                seen.append((node, word))
        elif name in ORDER_DEPENDENT - PICKS and shows_order(node):
            seen.append((node, _of_call(node)))
    if not seen:
        return None
    (node, word), *others = seen
    return ByOrder() if others or not word.is_listed else _around(node, word, projection)


def _of_call(call: exp.Expr) -> ByOrder:
    if isinstance(call, exp.GroupConcat):
        # An order that is written down counts.
        is_ordered = isinstance(call.this, exp.Order)
        return ByOrder() if is_ordered else _joined(call.args.get("separator"))
    window = call.find_ancestor(exp.Window)
    is_ordered = window is not None and window.args.get("order") is not None
    return ByOrder(function_name(call) in LISTS and not is_ordered)


def _around(listed: exp.Expr, word: ByOrder, projection: exp.Expr) -> ByOrder:
    """Return how a projection takes rows in their order that holds one list."""
    while listed is not projection and (around := listed.parent) is not None:
        is_array = word.separator is None
        if is_array and isinstance(around, exp.ArrayToString) and len(around.args) == _TWO:
            word = _joined(around.expression)
        elif is_array and isinstance(around, exp.ConcatWs) and len(around.expressions) == _TWO:
            word = _joined(around.expressions[0])
        elif isinstance(around, exp.Flatten):
            # The elements of the inner arrays have an order that counts.
            return ByOrder()
        elif not isinstance(around, exp.Alias | exp.Coalesce | exp.WithinGroup) and not (
            is_array and has_same_elements(around, listed)
        ):
            return ByOrder()
        if not word.is_listed:
            return word
        listed = around
    return word


def _joined(separator: exp.Expr | None) -> ByOrder:
    if isinstance(separator, exp.Literal) and separator.is_string and separator.name:
        return ByOrder(True, separator.name)
    return ByOrder()
