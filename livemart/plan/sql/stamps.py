"""Finds the columns that do nothing but stamp a row with the run that wrote it.

Used by the planner, for SQL that differs from run to run. Such a column is a constant of its run,
and no row comes or goes with it: what is left without these columns is the same SQL in every run.
Columns are left out by sqlglot's `pushdown_projections`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.scope import Scope, build_scope

from livemart.plan.reasons import Inapplicable, Reason
from livemart.plan.sql.determinism import function_name, require_deterministic
from livemart.plan.sql.functions import GENERATORS
from livemart.plan.sql.parse import parse, qualified, selected
from livemart.plan.sql.written import sql_of

_NAMELESS = Reason("PARSE_UNSUPPORTED", "its columns have no names", None)
_UNSTAMPED = "__unstamped__"
_OUTER = ("LEFT", "RIGHT", "FULL")
_SUBTOTALS = ("rollup", "cube", "grouping_sets", "totals", "all")
# The parser's own name for one is among them.
_GENERATORS = GENERATORS | {"unnest"}


def stamps_of(
    texts: Sequence[str], schema: Mapping[str, object]
) -> tuple[tuple[str, ...], dict[str, str] | None]:
    """Return the columns that SQL yields, and the SQL of those that stamp in this run, by name.

    The latter is None if rows depend on the run.

    Args:
        texts: SQL as of this run, then as of others.
        schema: what sqlglot is to know of the tables' columns.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, or a call of a function that differs at each call.
    """
    trees = [_qualified(text, schema) for text in texts]
    names = _names_of(trees[0])
    if any(_names_of(tree) != names for tree in trees):
        return names, None
    scopes = [scope for tree in trees if (scope := build_scope(tree)) is not None]
    stamps: dict[str, str] = {}
    for name in names:
        constants = [_constant(scope, name) for scope in scopes]
        values = [sql_of(constant) for constant in constants if constant is not None]
        if len(values) == len(trees) and len(set(values)) > 1:
            stamps[name] = values[0]
    unstamped = [name for name in names if name not in stamps]
    if not unstamped or not _is_same(trees, unstamped) or not _makes_same_rows(trees):
        return names, None
    return names, stamps


def without_stamps(text: str, names: Sequence[str]) -> str:
    """Return SQL that yields only some of its columns; the lines stay where they are."""
    return selected(text, names, _UNSTAMPED)


def _qualified(text: str, schema: Mapping[str, object]) -> exp.Query:
    tree = parse(text)
    if not isinstance(tree, exp.Query):
        raise Inapplicable(_NAMELESS)
    require_deterministic(tree)
    if any(not isinstance(item, exp.Alias | exp.Column | exp.Star) for item in tree.selects):
        # Spark names it, and maybe more than one column.
        raise Inapplicable(_NAMELESS)
    tree = qualified(tree, schema)
    for group in tree.find_all(exp.Group):
        # A constant among the keys parts nothing, but where there are subtotals.
        keys = [key for key in group.expressions if key.find(exp.Column)]
        if keys and not any(group.args.get(name) for name in _SUBTOTALS):
            group.set("expressions", keys)
    return tree


def _names_of(tree: exp.Query) -> tuple[str, ...]:
    names = tree.named_selects
    if not names or not all(names) or "*" in names:
        raise Inapplicable(_NAMELESS)
    return tuple(name.lower() for name in names)


def _makes_same_rows(trees: Sequence[exp.Query]) -> bool:
    """Return True if no generator differs: it makes rows even if no query uses its column."""
    generators = [
        [sql_of(call) for call in tree.find_all(exp.Func) if function_name(call) in _GENERATORS]
        for tree in trees
    ]
    return all(calls == generators[0] for calls in generators)


def _is_same(trees: Sequence[exp.Query], names: Sequence[str]) -> bool:
    """Return True if SQL is the same in all runs, as far as some columns need it."""
    pruned = {_only(tree, names) for tree in trees}
    return len(pruned) == 1 and None not in pruned


def _only(tree: exp.Query, names: Sequence[str]) -> str | None:
    """Return the SQL with some columns alone, and nothing that only the others need.

    None if it is not known what the others are needed for.
    """
    columns = [exp.column(name, table=_UNSTAMPED) for name in names]
    alias = exp.TableAlias(this=exp.to_identifier(_UNSTAMPED))
    around = exp.select(*columns).from_(exp.Subquery(this=tree.copy(), alias=alias))
    pruned = pushdown_projections(around)
    if any(not column.table for column in pruned.find_all(exp.Column)):
        return None
    return sql_of(pruned)


def _constant(scope: Scope, name: str) -> exp.Expr | None:
    """Return the constant that is a column of a query; None if it is none, in every row."""
    select = scope.expression
    if not isinstance(select, exp.Select):
        return None
    chosen = next(
        (item for item in select.expressions if item.alias_or_name.lower() == name.lower()), None
    )
    if chosen is None:
        return None
    value = chosen.unalias()
    if not isinstance(value, exp.Column):
        parts = (exp.Column, exp.Query, exp.AggFunc, exp.Window)
        return None if any(value.find_all(*parts)) else value
    if any(str(join.side).upper() in _OUTER for join in select.args.get("joins") or ()):
        # It is NULL where the other side has no row.
        return None
    source = scope.sources.get(value.table)
    return _constant(source, value.name) if isinstance(source, Scope) else None
