"""Finds the stored columns that a query needs: the other columns are not read.

Used by the planner, where no answer means all columns, and when a table has other columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.flatten import Flat
from livemart.plan.sql.parse import parse, qualified


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


def open_names(flat: Flat) -> frozenset[str] | None:
    """Return the names that a query writes without a table before them, in lower case.

    A new column of an input may take such a name over: from an alias, from another input, or
    from the query around a subquery. None if the query has every column of an input, or names them
    by their places: any column that comes, goes or changes its place makes another query.
    """
    try:
        tree = parse(flat.text)
    except Inapplicable:
        return None
    if any(join.args.get("method") == "NATURAL" for join in tree.find_all(exp.Join)):
        return None
    # PIVOT takes all columns that it does not name as keys.
    if tree.find(exp.Pivot) or any(it.alias_column_names for it in tree.find_all(exp.Table)):
        return None
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return None
    # The first of several parts may be a column with fields.
    return frozenset(column.parts[0].name.lower() for column in tree.find_all(exp.Column))


def named_columns(flat: Flat, columns: Mapping[str, tuple[str, ...]]) -> frozenset[tuple[str, str]]:
    """Return the stored columns that a query names: relation and column, in lower case.

    A column that nothing but `*` brings is not named; one behind a `*` is named where it is
    selected from there. The set is empty for SQL that the parser does not know.

    Args:
        flat: the query.
        columns: those of the stored relations; of another one no column is returned.
    """
    schema = flat.schema(columns)
    relations = {mention.placeholder.lower(): mention.relation for mention in flat.occurrences}
    try:
        scopes = traverse_scope(qualified(parse(flat.text), schema, expand_stars=False))
    except Exception:
        return frozenset()
    return frozenset(
        (relations[table.lower()], name)
        for scope in scopes
        for column in scope.columns
        # Behind a star it is not known of which source a column without a table is.
        for alias in ([column.table] if column.table else scope.selected_sources)
        for table, name in _origins(scope, alias, column.name.lower())
        if name in map(str.lower, columns.get(relations.get(table.lower(), ""), ()))
    )


def output_columns(flat: Flat, columns: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names that a query yields, in lower case, with `*` where they are not known.

    The names are empty for SQL that the parser does not know.

    Args:
        flat: the query.
        columns: those of the stored relations.
    """
    try:
        tree = qualified(parse(flat.text), flat.schema(columns))
    except Exception:
        return ()
    names = tree.named_selects if isinstance(tree, exp.Query) else ()
    return tuple(map(str.lower, names))


def _origins(scope: Scope, alias: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the tables from which a column may come through stars, each with its name there."""
    source = scope.sources.get(alias)
    if isinstance(source, exp.Table):
        yield source.name, name
    elif isinstance(source, Scope):
        yield from _through_stars(source, name)


def _through_stars(scope: Scope, name: str) -> Iterator[tuple[str, str]]:
    for side in scope.set_operation_scopes:
        yield from _through_stars(side, name)
    if not isinstance(query := scope.expression, exp.Select):
        return
    if name in (item.alias_or_name.lower() for item in query.expressions):
        # Its own scope names the columns that it is computed from.
        return
    for star in query.expressions:
        if not star.is_star:
            continue
        left_out = star.find(exp.Star).args.get("except_") or ()
        if name in (item.name.lower() for item in left_out):
            continue
        for alias in [star.table] if isinstance(star, exp.Column) else scope.selected_sources:
            yield from _origins(scope, alias, name)


def _is_plain_union(node: exp.Expr) -> bool:
    """Return True for UNION [ALL] as it is usually written: columns meet by position."""
    return type(node) is exp.Union and not any(
        node.args.get(name) for name in ("by_name", "kind", "side")
    )
