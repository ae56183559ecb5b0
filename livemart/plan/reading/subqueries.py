"""Turns a subquery in an expression into the value of a one-row relation, or says why not.

Used by scopes. Such a value is a parameter: when it changes, every row may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from livemart.plan.reasons import Inapplicable, refusal
from livemart.plan.relations.alias import Alias
from livemart.plan.relations.clock import clock_value
from livemart.plan.relations.project import Projection
from livemart.plan.relations.relation import Expr, Relation, Scan, bare, replaced
from livemart.plan.sql.determinism import line_of
from livemart.plan.sql.written import sql_of

# The operations on the column of a scalar subquery that still move a value by a constant.
_MOVED = (
    exp.Column,
    exp.Identifier,
    exp.Add,
    exp.Sub,
    exp.Interval,
    exp.Literal,
    exp.Var,
    exp.Paren,
)


@dataclass(slots=True)
class Parameter:
    """A one-row relation read for a value: the clock, or a scalar subquery on a stored relation."""

    occurrence: int
    relation: str
    compared_with_time: bool = True


def scalar_value(
    select: exp.Select, source: Callable[[Expr], Relation]
) -> tuple[Scan, Expr] | None:
    """Return scan and value of `select c from r` over a stored relation, unfiltered.

    The value may be moved by a constant (`select c - interval 1 hour from r`), and computed in a
    query that it is read from; in it the column is a marker. `source` turns an item of FROM into a
    relation.
    """
    plain = {"expressions", "from_", "kind"}
    if any(value for key, value in select.args.items() if key not in plain):
        return None
    from_ = select.args.get("from_")
    if len(select.expressions) != 1 or from_ is None:
        return None
    projected = bare(select.expressions[0])
    columns = list(projected.find_all(exp.Column))
    if len(columns) != 1 or not all(isinstance(node, _MOVED) for node in projected.walk()):
        return None
    relation = source(from_.this)
    scan = only_scan(relation)
    sites = relation.trace(columns[0]) if scan is not None else None
    if scan is None or not sites:
        return None
    occurrence = scan.occurrence
    value = replaced(sites[0][1], lambda it: clock_value(occurrence, it.name))
    value = value if isinstance(value, exp.Column) else exp.Paren(this=value)
    if projected is columns[0]:
        return scan, value
    columns[0].replace(value)
    return scan, exp.Paren(this=projected)


def refuse_attached(item: Expr) -> None:
    """Raise Inapplicable for a clause that may follow a table or a subquery within its brackets."""
    if item.args.get("sample"):
        raise unsupported("TABLESAMPLE", item)
    if pivots := item.args.get("pivots"):
        # One that makes columns of rows has a plain spelling.
        written, way = "PIVOT", "write `sum(x) filter (where column = value)` for each value"
        if pivots[0].args.get("unpivot"):
            written, way = "UNPIVOT", "write `lateral view stack(...)`"
        raise refusal("PARSE_UNSUPPORTED", f"{written} has no rule", line_of(item), way)
    if item.args.get("joins") or item.args.get("laterals"):
        raise unsupported("a nested join", item)


def refuse_subqueries(
    condition: Expr, instead: str = "compute it in a subquery of FROM, and join that"
) -> None:
    """Raise Inapplicable for a subquery in an expression; `instead`: the SQL to write."""
    for node in condition.walk():
        if isinstance(node, exp.Exists) and not isinstance(node.this, exp.Query):
            # exists(array, element -> condition)
            continue
        if isinstance(node, exp.Query | exp.Exists):
            parent = node.parent
            negated = isinstance(parent, exp.In) and isinstance(parent.parent, exp.Not)
            code = "NULL_AWARE_ANTI" if negated else "SUBQUERY_NOT_INCREMENTALIZABLE"
            hint = instead
            if isinstance(parent, exp.In) and not negated:
                # Beside a NULL it is false where `in` is NULL.
                hint = "write `exists (...)` with an equality"
            elif isinstance(parent, exp.In):
                # A row whose own value is NULL is left out, too, unless nothing is selected.
                value = sql_of(parent.this)
                hint = f"if no NULL is selected, write `{value} is not null and not exists (...)`"
            text = sql_of(parent or node).strip()[:80]
            raise refusal(code, f"subquery in {text}", line_of(node), hint)


def only_scan(relation: Relation) -> Scan | None:
    """Return the scan at the foot of renamings alone."""
    while isinstance(relation, Alias | Projection):
        relation = relation.inputs[0]
    return relation if isinstance(relation, Scan) else None


def is_within_query(node: Expr, root: Expr) -> bool:
    """Return True if a query is between an expression and the root that it is part of."""
    queries = (exp.Select, exp.SetOperation)
    return node.find_ancestor(*queries) is not root.find_ancestor(*queries)


def unsupported(part: str, node: Expr) -> Inapplicable:
    """Return the reason that no rule knows a part of the SQL."""
    return refusal("PARSE_UNSUPPORTED", f"{part} has no rule", line_of(node))
