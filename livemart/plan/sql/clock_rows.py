"""Writes a SELECT without FROM that reads the clock as a SELECT from the clock.

Used before columns are qualified, for the analysis alone. Both have one row, and of the second the
analysis knows that its columns are times of the clock.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

_TABLE = "__clock"


def select_from_clock(tree: exp.Expr, clocks: Mapping[str, str]) -> None:
    """Replace the scalar subqueries of each such item of FROM by columns of its clock, in place.

    Each mention of the clock stays a table of the query, though its columns are those of the first.

    Args:
        clocks: the relation by each name that the query has for a clock, in lower case.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("with p as (select (select as_of from c) as now, 7 as n) select 1 from p")
    >>> select_from_clock(tree, {"c": "livemart.clock"})
    >>> tree.ctes[0].this.sql("spark")
    'SELECT __clock.as_of AS now, 7 AS n FROM c AS __clock'
    """
    for around in list(tree.find_all(exp.CTE, exp.Subquery)):
        select = around.this
        is_item = isinstance(around, exp.CTE) or isinstance(around.parent, exp.From | exp.Join)
        if not is_item or not isinstance(select, exp.Select) or _clauses(select) != {"expressions"}:
            continue
        asked = [query for item in select.expressions for query in item.find_all(exp.Query)]
        columns = [it for item in select.expressions for it in item.find_all(exp.Column)]
        if any(column.find_ancestor(exp.Select) is select for column in columns):
            # The name of another item, or of the clock's column.
            continue
        values = [_value_of(query) for query in asked if not isinstance(query, exp.Subquery)]
        relations = {clocks.get(it[0].name.lower()) if it else None for it in values}
        if len(relations) != 1 or None in relations:
            continue
        for number, (table, read) in enumerate(filter(None, values)):
            subquery = read.find_ancestor(exp.Subquery)
            assert subquery is not None
            subquery.replace(exp.column(read.this.copy(), _TABLE))
            name = f"{_TABLE}_{number + 1}" if number else _TABLE
            alias = exp.TableAlias(this=exp.to_identifier(name))
            item = exp.Table(this=table.this.copy(), alias=alias)
            if number:
                select.append("joins", exp.Join(this=item))
            else:
                select.set("from_", exp.From(this=item))


def _value_of(select: exp.Query) -> tuple[exp.Table, exp.Column] | None:
    """Return table and column of a scalar subquery of one column, None of another query."""
    if not isinstance(select, exp.Select) or not isinstance(select.parent, exp.Subquery):
        return None
    if _clauses(select) != {"expressions", "from_"} or len(select.expressions) != 1:
        return None
    table, value = select.args["from_"].this, select.expressions[0].unalias()
    is_plain = isinstance(table, exp.Table) and not (table.db or table.args.get("joins"))
    return (table, value) if is_plain and isinstance(value, exp.Column) else None


def _clauses(select: exp.Select) -> set[str]:
    return {name for name, value in select.args.items() if value}
