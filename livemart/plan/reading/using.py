"""Makes the column of JOIN ... USING the one of the side that the join preserves.

Used by scopes and the planner. The parser spells it `coalesce(left, right)`, which reads two sides
and so would confine nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from livemart.plan.relations.equi_keys import EquiKey
from livemart.plan.relations.relation import Expr
from livemart.plan.sql.written import sql_of

_WRITTEN = "written"


def mark_written(tree: Expr) -> None:
    """Mark every `coalesce` of the analyst's before the parser adds those of USING.

    The analyst's returns one of the values that a join finds equal as it is (7 or '07'), in its own
    type.
    """
    for call in tree.find_all(exp.Coalesce):
        call.meta[_WRITTEN] = True


def merge_keys(tree: exp.Select, keys: Iterable[EquiKey]) -> None:
    """Drop from each `coalesce` of USING the arguments that a join makes equal to another one.

    Args:
        keys: the equalities of one join, its preserved side on the left. Where a row finds
            nothing, the right side is NULL; where it finds something, both are the same.
    """
    pairs = {(sql_of(key.left), sql_of(key.right)) for key in keys}
    if not pairs:
        return
    for call in _calls(tree):
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


def _calls(tree: exp.Select) -> list[exp.Coalesce]:
    """Return the calls of USING in a SELECT, but for those in the queries that it reads."""
    nodes = tree.walk(prune=lambda node: node is not tree and isinstance(node, exp.Query))
    return [
        node for node in nodes if isinstance(node, exp.Coalesce) and not node.meta.get(_WRITTEN)
    ]
