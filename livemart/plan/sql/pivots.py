"""Writes PIVOT as groups and UNPIVOT as a generator, as far as their columns are known.

Used before columns are qualified, for the analysis alone: the text that is run stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp


def write_pivots(tree: exp.Expr, schema: Mapping[str, object]) -> None:
    """Replace each PIVOT and UNPIVOT by a subquery with the same columns, in place.

    Its groups are not known to add up: for a value without rows PIVOT counts NULL, not 0.

    Args:
        schema: the columns of each table, by the name that the query calls it.

    >>> from sqlglot import parse_one
    >>> text = "select * from t pivot (sum(a) for b in (1 as one))"
    >>> tree = parse_one(text, dialect="spark")
    >>> write_pivots(tree, {"t": {"a": "", "b": "", "c": ""}})
    >>> tree.find(exp.Subquery).this.sql("spark")
    'SELECT c, SUM(a) FILTER(WHERE b = 1) AS one FROM t GROUP BY c HAVING COUNT(*) > 0'
    >>> tree = parse_one("select k, v from t unpivot (v for k in (a, b))", dialect="spark")
    >>> write_pivots(tree, {"t": {"a": "", "b": ""}})
    >>> tree.find(exp.Lateral).sql("spark")
    "LATERAL VIEW STACK(2, 'a', a, 'b', b) __unpivoted AS k, v"
    """
    for item in list(tree.find_all(exp.Table, exp.Subquery)):
        pivots: list[exp.Expr] = item.args.get("pivots") or []
        columns = _columns(item, schema) if len(pivots) == 1 else None
        if not columns or len(pivots[0].args.get("fields") or ()) != 1:
            continue
        if isinstance(item.parent, exp.Join):
            # Spark takes all that is joined for its table.
            continue
        pivot = pivots[0]
        select = (_unpivoted if pivot.args.get("unpivot") else _pivoted)(pivot, columns)
        if select is None:
            continue
        alias = pivot.args.get("alias") or item.args.get("alias")
        if alias is None and isinstance(item, exp.Table):
            alias = exp.TableAlias(this=item.this.copy())
        source = item.copy()
        source.set("pivots", None)
        select.set("from_", exp.From(this=source))
        item.replace(exp.Subquery(this=select, alias=alias and alias.copy()))


def _columns(item: exp.Expr, schema: Mapping[str, object]) -> list[str] | None:
    """Return the columns of an item of FROM, in lower case; None if they are not known."""
    query: object = item.this if isinstance(item, exp.Subquery) else None
    if isinstance(item, exp.Table):
        if isinstance(columns := schema.get(item.name), Mapping) and not item.db:
            return [name.lower() for name in columns]
        query = _named(item)
    if not isinstance(query, exp.Query) or item.alias_column_names:
        return None
    names = [name.lower() for name in query.named_selects]
    return names if names and all(name not in ("", "*") for name in names) else None


def _named(item: exp.Table) -> object:
    """Return the query that a name in FROM means, None if it is not that of a plain CTE."""
    within, around = {id(item)}, item.parent
    while around is not None:
        for cte in reversed(_before(around.ctes if isinstance(around, exp.Query) else [], within)):
            if cte.alias.lower() == item.name.lower():
                return None if cte.alias_column_names else cte.this
        within.add(id(around))
        around = around.parent
    return None


def _before(ctes: Sequence[exp.Expr], within: set[int]) -> list[exp.Expr]:
    """Return the common table expressions in front of the one that a name is within."""
    place = next((n for n, cte in enumerate(ctes) if id(cte) in within), len(ctes))
    return list(ctes[:place])


def _pivoted(pivot: exp.Expr, columns: Sequence[str]) -> exp.Select | None:
    """Return the groups of a PIVOT without their FROM; None if Spark makes up a name."""
    calls = pivot.expressions
    (field,) = pivot.args["fields"]
    names = [name.name for name in pivot.args.get("columns") or ()]
    if len(names) != len(calls) * len(field.expressions) or not _are_named(calls, field):
        return None
    used = {it.name.lower() for part in (field.this, *calls) for it in part.find_all(exp.Column)}
    keys = [exp.column(name) for name in columns if name not in used]
    values = []
    for number, name in enumerate(names):
        value, call = field.expressions[number // len(calls)], calls[number % len(calls)].unalias()
        is_value = field.this.eq(value.this if isinstance(value, exp.PivotAlias) else value)
        of_value = exp.Filter(this=call.copy(), expression=exp.Where(this=is_value))
        values.append(exp.alias_(of_value, name))
    select = exp.select(*keys, *values).having(
        exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    )
    return select.group_by(*(key.copy() for key in keys)) if keys else select


def _are_named(calls: Sequence[exp.Expr], field: exp.Expr) -> bool:
    """Return True if the names of a PIVOT's columns are those that are written."""
    plain = (exp.PivotAlias, exp.Literal)
    are_values = all(isinstance(value, plain) for value in field.expressions)
    return are_values and (len(calls) == 1 or all(isinstance(it, exp.Alias) for it in calls))


def _unpivoted(pivot: exp.Expr, columns: Sequence[str]) -> exp.Select | None:
    """Return the rows of an UNPIVOT of single columns without their FROM."""
    (field,) = pivot.args["fields"]
    values = [it.this if isinstance(it, exp.PivotAlias) else it for it in field.expressions]
    if len(pivot.expressions) != 1 or not all(isinstance(it, exp.Column) for it in values):
        return None
    names = [field.this, *pivot.expressions]
    if not all(isinstance(name, exp.Identifier) for name in names):
        return None
    pairs: list[exp.Expr] = []
    for value, item in zip(values, field.expressions, strict=True):
        label = item.args["alias"].name if isinstance(item, exp.PivotAlias) else value.name
        pairs += [exp.Literal.string(label), value.copy()]
    call = exp.Stack(this=exp.Literal.number(len(values)), expressions=pairs)
    alias = exp.TableAlias(
        this=exp.to_identifier("__unpivoted"), columns=[it.copy() for it in names]
    )
    used = {value.name.lower() for value in values}
    others = [exp.column(name) for name in columns if name not in used]
    new = [exp.column(name.name, "__unpivoted") for name in names]
    select = exp.select(*others, *new)
    select.append("laterals", exp.Lateral(this=call, view=True, alias=alias))
    return select
