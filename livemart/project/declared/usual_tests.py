"""Says whether a data test asks what its name says, as dbt's and dbt_utils' tests of that name do.

Used when the project is read. A project or a package may define another test under such a name:
then neither a key nor a proof follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from livemart.spark_sql import unquoted

if TYPE_CHECKING:
    from sqlglot import exp


def is_usual(kind: str | None, columns: Sequence[str], code: str) -> bool:
    """Return True unless a test has a name that says something, and SQL that asks something else.

    Args:
        kind: name of the test.
        columns: that it names, as written.
        code: its SQL; empty while it is not compiled, and the name is believed.

    >>> is_usual("not_null", ["city"], "select city from m.shops where city is null")
    True
    >>> is_usual("not_null", ["city"], "select city from m.shops where trim(city) = ''")
    False
    """
    asks = _ASKS.get(kind or "")
    if asks is None or not code:
        return True
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(code, dialect="spark")
        named = [sqlglot.parse_one(column, dialect="spark") for column in columns]
    except (sqlglot.errors.SqlglotError, RecursionError):
        return False
    if not isinstance(tree, exp.Select) or not named:
        return False
    if kind == "accepted_values":
        return asks(tree, named)
    select = _inner(tree)
    return select is not None and asks(select, named)


def _inner(tree: exp.Select) -> exp.Select | None:
    """Return the select whose rows a query passes on as they are; None if there is no such."""
    from sqlglot import exp

    if tree.ctes:
        source = tree.args["from_"].this if tree.args.get("from_") else None
        (cte, *others) = tree.ctes
        is_named = isinstance(source, exp.Table) and source.name == cte.alias
        is_all = [type(column) for column in tree.expressions] == [exp.Star]
        if others or not (is_named and is_all and _has_only(tree, "with_", "expressions", "from_")):
            return None
        tree = cte.this
    return tree if isinstance(tree, exp.Select) and not tree.ctes and _is_of_table(tree) else None


def _is_of_table(select: exp.Select) -> bool:
    """Return True if a select reads one table, or the rows of it that a `where` of YAML leaves."""
    from sqlglot import exp

    source = select.args["from_"].this if select.args.get("from_") else None
    is_filtered = isinstance(source, exp.Subquery) and source.alias == "dbt_subquery"
    return isinstance(source, exp.Table) or is_filtered


def _has_only(select: exp.Select, *names: str) -> bool:
    return all(name in names for name, value in select.args.items() if value)


def _is_not_null(select: exp.Select, columns: Sequence[exp.Expr]) -> bool:
    from sqlglot import exp

    if not _has_only(select, "expressions", "from_", "where") or not select.args.get("where"):
        return False
    if any(column.find(exp.AggFunc) for column in select.expressions):
        return False
    return _is_null(select.args["where"].this, columns[0])


def _is_unique(select: exp.Select, columns: Sequence[exp.Expr]) -> bool:
    from sqlglot import exp

    where = select.args.get("where")
    if where is not None:
        is_of_values = isinstance(where.this, exp.Not) and _is_null(where.this.this, columns[0])
        if not is_of_values:
            return False
    return _counts_groups(select, columns)


def _is_combination(select: exp.Select, columns: Sequence[exp.Expr]) -> bool:
    return not select.args.get("where") and _counts_groups(select, columns)


def _counts_groups(select: exp.Select, columns: Sequence[exp.Expr]) -> bool:
    """Return True if a select gives the groups of these columns that have more than one row."""
    from sqlglot import exp

    if not _has_only(select, "expressions", "from_", "where", "group", "having"):
        return False
    group, having = select.args.get("group"), select.args.get("having")
    if group is None or having is None or not _has_only(group, "expressions"):
        return False
    more = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Literal.number(1))
    is_counted = having.this.sql(dialect="spark") == more.sql(dialect="spark")
    return is_counted and set(map(_name, group.expressions)) == set(map(_name, columns))


def _is_accepted(tree: exp.Select, columns: Sequence[exp.Expr]) -> bool:
    from sqlglot import exp

    where = tree.args.get("where")
    test = where.this if where is not None else None
    if not (isinstance(test, exp.Not) and isinstance(test.this, exp.In) and tree.ctes):
        return False
    values = tree.ctes[0].this
    if not isinstance(values, exp.Select) or not _is_of_table(values):
        return False
    group = values.args.get("group")
    return (
        _has_only(tree, "with_", "expressions", "from_", "where")
        and _has_only(values, "expressions", "from_", "group")
        and len(tree.ctes) == 1
        and group is not None
        and list(map(_name, group.expressions)) == list(map(_name, columns))
        and bool(test.this.expressions)
        and _name(values.expressions[0].unalias()) == _name(columns[0])
        and _name(test.this.this) == values.expressions[0].alias_or_name.lower()
    )


def _is_null(condition: exp.Expr, column: exp.Expr) -> bool:
    from sqlglot import exp

    is_null = isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null)
    return is_null and _name(condition.this) == _name(column)


def _name(column: exp.Expr) -> str:
    return unquoted(column.sql(dialect="spark")).lower()


_ASKS: dict[str, Callable[[exp.Select, Sequence[exp.Expr]], bool]] = {
    "not_null": _is_not_null,
    "accepted_values": _is_accepted,
    "unique": _is_unique,
    "unique_combination": _is_combination,
    "unique_combination_of_columns": _is_combination,
}
