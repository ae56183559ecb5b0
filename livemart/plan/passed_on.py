"""Finds the columns whose values a model passes on as it reads them, bit for bit.

Used by verify, which compares the sign of a zero and the order of a map's entries only in these
columns. SQL leaves both open elsewhere: the greater of -0.0 and 0.0 is either, Spark's own code
paths disagree on the key of `map(d, 1)`. A map of collected entries is in any order.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.parse import parse, qualified

_Names = frozenset[str]
_NONE: _Names = frozenset()


def passed_on_columns(
    flat: Flat, columns: Mapping[str, tuple[str, ...]], passed_on: Mapping[str, _Names]
) -> _Names:
    """Return the output columns that are columns of a source, not computed or grouped by.

    Args:
        columns: the columns of each relation it reads.
        passed_on: what this function returned for each relation that is a model; of others all
            columns count.

    Returns:
        Names in lower case; empty if the query cannot be analysed.
    """
    of_relations = {
        mention.placeholder: passed_on.get(
            mention.relation, frozenset(map(str.lower, columns.get(mention.relation, ())))
        )
        for mention in flat.occurrences
    }
    try:
        tree = qualified(parse(flat.text), flat.schema(columns))
        by_scope: dict[int, _Names] = {}
        result = _NONE
        for scope in traverse_scope(tree):
            result = by_scope[id(scope.expression)] = _of_scope(scope, by_scope, of_relations)
        return result
    except (Inapplicable, SqlglotError, RecursionError, KeyError, AttributeError):
        return _NONE


def _of_scope(
    scope: Scope, by_scope: Mapping[int, _Names], of_relations: Mapping[str, _Names]
) -> _Names:
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        if not isinstance(query, exp.Union) or query.args.get("distinct"):
            return _NONE
        left, right = query.left.unnest(), query.right.unnest()
        assert isinstance(right, exp.Query)
        names = [name.lower() for name in query.named_selects]
        others = names if query.args.get("by_name") else map(str.lower, right.named_selects)
        of_left, of_right = by_scope.get(id(left), _NONE), by_scope.get(id(right), _NONE)
        return frozenset(
            name
            for name, other in zip(names, others, strict=True)
            if name in of_left and other in of_right
        )
    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("distinct"):
        return _NONE
    inherited = {
        name: _of_source(source, by_scope, of_relations) for name, source in scope.sources.items()
    }
    return frozenset(
        item.alias_or_name.lower()
        for item in query.selects
        if isinstance(column := item.unalias().unnest(), exp.Column)
        and column.name.lower() in inherited.get(column.table, _NONE)
    )


def _of_source(
    source: Scope | exp.Expr, by_scope: Mapping[int, _Names], of_relations: Mapping[str, _Names]
) -> _Names:
    if isinstance(source, Scope):
        return by_scope.get(id(source.expression), _NONE)
    # A pivot computes columns, and names them at will.
    return _NONE if source.args.get("pivots") else of_relations.get(source.name, _NONE)
