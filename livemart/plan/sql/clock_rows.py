"""Writes a SELECT without FROM that reads the clock as a SELECT from the clock.

Used before columns are qualified, for the analysis alone. Both have one row, and of the second the
analysis knows that its columns are times of the clock.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

_TABLE = "__clock"


def select_from_clock(tree: exp.Expr, clocks: Collection[str]) -> None:
    """Replace the scalar subquery of each such item of FROM by a column of its clock, in place.

    Args:
        clocks: the names by which the query calls the clock, in lower case.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("with p as (select (select as_of from c) as now, 7 as n) select 1 from p")
    >>> select_from_clock(tree, {"c"})
    >>> tree.ctes[0].this.sql("spark")
    'SELECT __clock.as_of AS now, 7 AS n FROM c AS __clock'
    """
    for around in list(tree.find_all(exp.CTE, exp.Subquery)):
        select = around.this
        is_item = isinstance(around, exp.CTE) or isinstance(around.parent, exp.From | exp.Join)
        if not is_item or not isinstance(select, exp.Select) or _clauses(select) != {"expressions"}:
            continue
        asked = [query for item in select.expressions for query in item.find_all(exp.Query)]
        asked = [query for query in asked if isinstance(query, exp.Select)]
        if len(asked) != 1 or not isinstance(asked[0].parent, exp.Subquery):
            continue
        columns = [it for item in select.expressions for it in item.find_all(exp.Column)]
        if any(column.find_ancestor(exp.Select) is select for column in columns):
            # The name of another item, or of the clock's column.
            continue
        table_and_value = _value_of(asked[0])
        if table_and_value is None or table_and_value[0].name.lower() not in clocks:
            continue
        table, value = table_and_value
        asked[0].parent.replace(exp.column(value.this.copy(), _TABLE))
        alias = exp.TableAlias(this=exp.to_identifier(_TABLE))
        select.set("from_", exp.From(this=exp.Table(this=table.this.copy(), alias=alias)))


def _value_of(select: exp.Select) -> tuple[exp.Table, exp.Column] | None:
    """Return table and column of a query of one column, None of another query."""
    if _clauses(select) != {"expressions", "from_"} or len(select.expressions) != 1:
        return None
    table, value = select.args["from_"].this, select.expressions[0].unalias()
    is_plain = isinstance(table, exp.Table) and not (table.db or table.args.get("joins"))
    return (table, value) if is_plain and isinstance(value, exp.Column) else None


def _clauses(select: exp.Select) -> set[str]:
    return {name for name, value in select.args.items() if value}
