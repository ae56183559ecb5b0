"""Makes the column of JOIN ... USING the one of the side that the join preserves.

Used by scopes and the planner. The parser spells it `coalesce(left, right)`, which reads two sides
and so would confine nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from livemart.plan.relations.equi_keys import EquiKey
from livemart.plan.relations.relation import Expr
from livemart.plan.sql.written import sql_of

_WRITTEN = "written"


def mark_written(tree: Expr) -> None:
    """Mark every `coalesce` of the analyst's before the parser adds those of USING.

    Of what a join finds equal the analyst's gives one as it is (7 or '07'), in a type of its own.
    """
    for call in tree.find_all(exp.Coalesce):
        call.meta[_WRITTEN] = True


def merge_keys(tree: exp.Select, keys: Iterable[EquiKey]) -> None:
    """Leave out of each `coalesce` of USING what a join makes equal to another of its arguments.

    Args:
        keys: the equalities of one join, its preserved side on the left. Where a row finds
            nothing, the right side is NULL; where it finds something, both are the same.
    """
    pairs = {(sql_of(key.left), sql_of(key.right)) for key in keys}
    if not pairs:
        return
    for call in list(_calls(tree)):
        arguments = [call.this, *call.expressions]
        for place in reversed(range(len(arguments))):
            text = sql_of(arguments[place])
            before = {(sql_of(other), text) for other in arguments[:place]}
            after = {(sql_of(other), text) for other in arguments[place + 1 : place + 2]}
            if pairs & (before | after):
                del arguments[place]
        if len(arguments) == 1:
            call.replace(exp.Paren(this=arguments[0]))
        elif len(arguments) <= len(call.expressions):
            call.set("this", arguments[0])
            call.set("expressions", arguments[1:])


def _calls(tree: Expr) -> Iterator[exp.Coalesce]:
    """Yield the calls of a SELECT, but for those of the queries that it reads."""
    for clause in tree.iter_expressions():
        if clause.arg_key in ("with_", "from_"):
            continue
        if isinstance(clause, exp.Join):
            condition = clause.args.get("on")
            if condition is not None:
                yield from _calls_in(condition)
        else:
            yield from _calls_in(clause)


def _calls_in(expr: Expr) -> Iterator[exp.Coalesce]:
    for node in expr.walk(prune=lambda node: isinstance(node, exp.Query)):
        if isinstance(node, exp.Coalesce) and not node.meta.get(_WRITTEN):
            yield node
