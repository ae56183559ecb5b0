"""Orders the joins of a FROM clause so that each item shares an equality with those before it.

Used by FROM clauses. `from a, b, c where a.k = c.k and c.l = b.l` has no equality between a and b:
in its written order the keys of a change would be a cross product of both. The facts may come
before the tables that they look up: each of their changed rows finds one row of each other table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from sqlglot import exp

from livemart.plan.relations.equi_keys import EquiKey, equi_keys
from livemart.plan.relations.relation import Expr, bare, columns_of
from livemart.plan.sql.written import sql_of


def has_comma_joins(query: Expr) -> bool:
    """Return True if the condition of a join may be written in a WHERE."""
    return any(
        select.args.get("where") is not None and any(map(_is_comma, select.args.get("joins") or ()))
        for select in query.find_all(exp.Select)
    )


def facts_first(
    first: Expr,
    joins: Sequence[exp.Join],
    where: Expr | None,
    unique_keys: Callable[[Expr], Collection[frozenset[str]]],
) -> tuple[Expr, list[exp.Join]]:
    """Return the first item of FROM and its joins, beginning with the facts of comma joins.

    The facts are the one item that is joined by equalities, but by none of its unique keys.

    Args:
        first: the item that is written first.
        joins: of the others, as they are written.
        where: condition of the WHERE clause.
        unique_keys: of an item; each is the SQL of its columns.
    """
    written = first, list(joins)
    if where is None or any(not _is_comma(join) for join in joins):
        return written
    items = [first, *(join.this for join in joins)]
    names = {item.alias_or_name for item in items}
    facts: list[Expr] = []
    for item in items:
        name = item.alias_or_name
        keys = keys_with([where], {name}, names - {name})
        compared = {sql_of(bare(key.right)) for key in keys}
        if not compared:
            return written
        if not any(unique <= compared for unique in unique_keys(item)):
            facts.append(item)
    if len(facts) != 1 or facts[0] is first:
        return written
    others = [exp.Join(this=first.copy()), *(join for join in joins if join.this is not facts[0])]
    return facts[0], others


def joins_in_order(
    joins: Sequence[exp.Join], first: Collection[str], where: Expr | None
) -> Iterator[tuple[exp.Join, Sequence[Expr]]]:
    """Yield each join with the conditions that hold for every joined row.

    Only inner joins, comma joins among them, change places. An item that has an equality with
    those before it comes first; among several, the one that is written first. Any other join keeps
    its place.

    Args:
        joins: as they are written.
        first: qualifiers of the first item.
        where: condition of the WHERE clause.
    """
    before = set(first)
    remaining = list(joins)
    while remaining:
        run = _inner_joins(remaining)
        conditions = [join.args["on"] for join in run if join.args.get("on") is not None]
        if where is not None:
            conditions.append(where)
        del remaining[: len(run)]
        while run:
            linked = (join for join in run if keys_with(conditions, _qualifiers(join), before))
            join = next(linked, run[0])
            run.remove(join)
            before |= _qualifiers(join)
            yield join, conditions
        if remaining:
            join = remaining.pop(0)
            before |= _qualifiers(join)
            yield join, ()


def keys_with(
    conditions: Sequence[Expr], qualifiers: Collection[str], before: Collection[str]
) -> list[EquiKey]:
    """Return the equalities between an item and items before it."""
    keys = (key for it in conditions for key in equi_keys(it, frozenset(qualifiers)))
    return [key for key in keys if {column.table for column in columns_of(key.left)} <= {*before}]


def _inner_joins(joins: Sequence[exp.Join]) -> list[exp.Join]:
    """Return the inner joins with which a list begins."""
    count = next((n for n, join in enumerate(joins) if not _is_inner(join)), len(joins))
    return list(joins[:count])


def _is_inner(join: exp.Join) -> bool:
    is_plain = (join.kind or "").lower() in ("", "inner", "cross") and not join.side
    return is_plain and not join.method and not isinstance(join.this, exp.Lateral)


def _is_comma(join: exp.Join) -> bool:
    return _is_inner(join) and not any(map(join.args.get, ("on", "using")))


def _qualifiers(join: exp.Join) -> set[str]:
    return {join.this.alias_or_name}
