"""Orders the joins of a FROM clause so that each item shares an equality with those before it.

Used by FROM clauses. `from a, b, c where a.k = c.k and c.l = b.l` has no equality between a and b:
in its written order the keys of a change would be a cross product of both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlglot import exp

from livemart.plan.relations.equi_keys import EquiKey, equi_keys
from livemart.plan.relations.relation import Expr, columns_of


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


def _qualifiers(join: exp.Join) -> set[str]:
    return {join.this.alias_or_name}
