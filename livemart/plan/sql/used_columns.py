"""Finds the stored columns that a query needs: what else a table holds is not read.

Used by the planner, where no answer means all columns, and when a table has other columns.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.scope import traverse_scope

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.parse import parse


def used_columns(qualified: exp.Query, occurrences: Mapping[str, int]) -> dict[int, frozenset[str]]:
    """Return the stored columns a query needs; none where that is not for certain."""
    if any(
        isinstance(node, exp.Lateral | exp.SetOperation) and not _is_plain_union(node)
        for node in qualified.walk()
    ):
        return {}
    if any(table.alias_column_names for table in qualified.find_all(exp.Table)):
        # `from orders as o (a, b)`: the query names no stored column.
        return {}
    pruned = pushdown_projections(qualified.copy())
    used: dict[int, set[str]] = {}
    for scope in traverse_scope(pruned):
        for alias, source in scope.sources.items():
            if isinstance(source, exp.Table) and source.name.lower() in occurrences:
                names = used.setdefault(occurrences[source.name.lower()], set())
                names |= {reference.name for reference in scope.source_columns(alias)}
                if scope.stars:
                    return {}
    return {occurrence: frozenset(names) for occurrence, names in used.items()}


def reads_every_column(flat: Flat) -> bool:
    """Return True if the columns of an input decide which ones the query has."""
    try:
        tree = parse(flat.text)
    except Inapplicable:
        return True
    if any(join.args.get("method") == "NATURAL" for join in tree.find_all(exp.Join)):
        return True
    return any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))


def _is_plain_union(node: exp.Expr) -> bool:
    """Return True for UNION [ALL] as it is usually written: columns meet by position."""
    return type(node) is exp.Union and not any(
        node.args.get(name) for name in ("by_name", "kind", "side")
    )
