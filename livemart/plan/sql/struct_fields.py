"""Finds fields of structs whose column is named as its table: `item.dish` of `... item as item`.

Used before columns are qualified, since the library of the parser takes `item` for the table alone.
Spark takes a column of the table first, and a field of a column if the table has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

# Names in lower case; None if they are not known.
_Names = frozenset[str] | None


def name_fields(tree: exp.Expr, schema: Mapping[str, object]) -> None:
    """Write each such field as one of the table's column, in place.

    Args:
        schema: the columns of each table, by the name that the query calls it.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("select item.dish from t lateral view explode(items) item as item")
    >>> name_fields(tree, {"t": {"items": ""}})
    >>> tree.sql("spark")
    'SELECT item.item.dish FROM t LATERAL VIEW EXPLODE(items) item AS item'
    """
    if not _may_have_any(tree, schema):
        return
    columns = _Columns(schema)
    for scope in traverse_scope(tree):
        names = {name.lower(): columns.of(source) for name, source in scope.sources.items()}
        for reference in scope.columns:
            root, *parts = reference.parts
            of_table = names.get(root.name.lower())
            if not parts or of_table is None or parts[0].name.lower() in of_table:
                continue
            owners = [
                name
                for name, of_other in names.items()
                if of_other and root.name.lower() in of_other
            ]
            if owners:
                # The table that has the name, if several have such a column.
                owner = root.name.lower() if root.name.lower() in owners else owners[0]
                column = exp.column(root, table=owner)
                reference.replace(exp.Dot.build([column, *parts]))


def _may_have_any(tree: exp.Expr, schema: Mapping[str, object]) -> bool:
    """Return True if a column of some table has the name by which another column calls a table."""
    called = {reference.parts[0].name.lower() for reference in tree.find_all(exp.Column)}
    of_tables = {
        name.lower()
        for columns in schema.values()
        for name in (columns if isinstance(columns, Mapping) else ())
    }
    of_tables |= {item.alias.lower() for item in tree.find_all(exp.Alias)}
    for alias in tree.find_all(exp.TableAlias):
        of_tables |= {it.name.lower() for it in alias.args.get("columns") or ()}
    tables = {
        it.alias_or_name.lower() for it in tree.find_all(exp.Table, exp.Subquery, exp.Lateral)
    }
    return not called.isdisjoint(of_tables & tables)


class _Columns:
    """The columns of the sources of a query."""

    def __init__(self, schema: Mapping[str, object]) -> None:
        self._schema = {name.lower(): columns for name, columns in schema.items()}
        self._known: dict[int, _Names] = {}

    def of(self, source: exp.Expr | Scope) -> _Names:
        if isinstance(source, Scope):
            return self._of_query(source)
        columns = self._schema.get(source.name.lower())
        if not isinstance(columns, Mapping) or not columns:
            return None
        return frozenset(name.lower() for name in columns)

    def _of_query(self, scope: Scope) -> _Names:
        key = id(scope.expression)
        if key not in self._known:
            self._known[key] = self._found(scope)
        return self._known[key]

    def _found(self, scope: Scope) -> _Names:
        query = scope.expression
        around = query.parent
        renamed = query if isinstance(query, exp.Lateral) else around
        if isinstance(renamed, exp.CTE | exp.Subquery | exp.Lateral) and (
            names := renamed.alias_column_names
        ):
            return frozenset(name.lower() for name in names)
        if isinstance(query, exp.SetOperation):
            of_first = frozenset(name.lower() for name in query.named_selects)
            return None if "*" in of_first else of_first
        if not isinstance(query, exp.Select):
            return None
        selected: set[str] = set()
        for item in query.expressions:
            if isinstance(item, exp.Aliases) or (item.is_star and query.args.get("laterals")):
                return None
            if not item.is_star:
                selected.add(item.alias_or_name.lower())
                continue
            star = item.this if isinstance(item, exp.Column) else item
            tables = [item.table] if isinstance(item, exp.Column) else list(scope.selected_sources)
            left_out = {it.name.lower() for it in star.args.get("except_") or ()}
            for table in tables:
                source = scope.sources.get(table)
                columns = self.of(source) if source is not None else None
                if columns is None:
                    return None
                selected |= columns - left_out
        return frozenset(selected)
