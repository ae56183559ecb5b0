"""Finds the columns that two full recomputations may disagree on: sketches and their estimates.

Used by verify, which compares them within a tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.determinism import APPROXIMATE_AGGREGATES, function_name
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.parse import parse, qualified

_SCALARS = frozenset({"hll_union", "theta_union", "theta_intersection", "theta_difference"})


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
    schema: dict[str, object] = {
        occurrence.placeholder: {name.lower(): "unknown" for name in columns[occurrence.relation]}
        for occurrence in flat.occurrences
        if occurrence.relation in columns
    }
    functions = {
        occurrence.placeholder: approximate.get(occurrence.relation, {})
        for occurrence in flat.occurrences
    }
    try:
        tree = qualified(parse(flat.text), schema)
        by_scope: dict[int, dict[str, str]] = {}
        result: dict[str, str] = {}
        for scope in traverse_scope(tree):
            result = by_scope[id(scope.expression)] = _of_scope(scope, by_scope, functions)
        return result
    except (Inapplicable, SqlglotError, RecursionError, KeyError, AttributeError):
        return {}


def _of_scope(
    scope: Scope, by_scope: Mapping[int, dict[str, str]], functions: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        left, right = query.left.unnest(), query.right.unnest()
        assert isinstance(right, exp.Query)
        names = [name.lower() for name in query.named_selects]
        pairs = zip(names, right.named_selects, strict=False)
        flags = dict(by_scope.get(id(left), {}))
        flags |= {
            name: by_scope[id(right)][other.lower()]
            for name, other in pairs
            if other.lower() in by_scope.get(id(right), {})
        }
        return flags
    if not isinstance(query, exp.Select):
        return {}
    flags = {}
    for projection in query.selects:
        function = _function_below(projection, scope, by_scope, functions)
        if function is not None:
            flags[projection.alias_or_name.lower()] = function
    return flags


def _function_below(
    projection: exp.Expr,
    scope: Scope,
    by_scope: Mapping[int, dict[str, str]],
    functions: Mapping[str, Mapping[str, str]],
) -> str | None:
    for node in projection.walk():
        name = function_name(node)
        if name is not None and (name in APPROXIMATE_AGGREGATES or name in _SCALARS):
            return name
        if isinstance(node, exp.Column):
            source = scope.sources.get(node.table)
            if isinstance(source, Scope):
                inherited = by_scope.get(id(source.expression), {}).get(node.name.lower())
            elif isinstance(source, exp.Table):
                inherited = functions.get(source.name, {}).get(node.name.lower())
            else:
                inherited = None
            if inherited is not None:
                return inherited
    return None
