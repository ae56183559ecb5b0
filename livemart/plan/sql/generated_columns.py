"""Writes a generator of several columns in a select list as the LATERAL VIEW that means the same.

Used before columns are qualified, since the library of the parser gives it no columns there.
"""

from __future__ import annotations

from sqlglot import exp

from livemart.plan.sql.determinism import function_name, is_aggregate
from livemart.plan.sql.functions import GENERATORS

# Rows meet other rows there, above or below those that are generated.
_GATES = ("group", "having", "qualify", "windows")


def move_generators(tree: exp.Expr) -> None:
    """Move each such generator behind the tables of its SELECT, in place.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("select a, inline(b) as (c, d) from t", dialect="spark")
    >>> move_generators(tree)
    >>> tree.sql("spark")
    'SELECT a, __generated.c, __generated.d FROM t LATERAL VIEW INLINE(b) __generated AS c, d'

    Windows and groups of the same SELECT leave it where it is.

    >>> tree = parse_one("select inline(b) as (c, d), count(*) over () from t", dialect="spark")
    >>> move_generators(tree)
    >>> tree.find(exp.Lateral)
    """
    for select in list(tree.find_all(exp.Select)):
        named = [item for item in select.expressions if isinstance(item, exp.Aliases)]
        if len(named) == 1 and function_name(named[0].this) in GENERATORS and _is_plain(select):
            _move(select, named[0])


def _is_plain(select: exp.Select) -> bool:
    if select.args.get("from_") is None or any(map(select.args.get, _GATES)):
        return False
    nodes = [node for item in select.expressions for node in item.walk()]
    return not any(isinstance(node, exp.Window) or is_aggregate(node) for node in nodes)


def _move(select: exp.Select, generated: exp.Aliases) -> None:
    stars = [item for item in select.expressions if isinstance(item, exp.Star)]
    item = select.args["from_"].this
    if stars and (
        select.args.get("joins") or select.args.get("laterals") or not item.alias_or_name
    ):
        # Its columns are not those of one table.
        return
    new = {name.name.lower() for name in generated.expressions}
    if any(
        column.name.lower() in new and not column.table and column.find_ancestor(exp.Order) is None
        for column in select.find_all(exp.Column)
    ):
        # It may be a column of a table that has the same name.
        return
    for star in stars:
        star.replace(exp.Column(this=star.copy(), table=exp.to_identifier(item.alias_or_name)))
    table = exp.to_identifier("__generated")
    names = [name.copy() for name in generated.expressions]
    columns = [exp.Column(this=name.copy(), table=table.copy()) for name in names]
    alias = exp.TableAlias(this=table, columns=names)
    select.append("laterals", exp.Lateral(this=generated.this.copy(), view=True, alias=alias))
    place = select.expressions.index(generated)
    select.expressions[place : place + 1] = columns
    select.set("expressions", select.expressions)
