"""Finds the models whose rows do not all come from their SQL: dbt alone writes their tables.

Used when the project is read. Packages that keep a log of each run do it so: the model is an empty
select, which makes the table, and a hook inserts the rows. A refresh takes it over as it finds it.
A materialization of the project's own may store other rows than those of the SQL, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from livemart.project.graph import Filled, Model, Project
from livemart.project.hooks.dbt_hooks import NOT_RENDERED, Hooks
from livemart.project.session_spec import bare_statement
from livemart.spark_sql import unquoted

# An expression of dbt's, or a part of a name: what follows it is the rest of the name.
_NAME = r"((?:\{\{.*?\}\}|`[^`]+`|[\w.])+)"
_WRITES = re.compile(
    r"(?:(?:with|from)\b.*?)?\b(?:insert\s+(?:into|overwrite)(?:\s+table)?|merge\s+(?:with\s+schema\s+"
    r"evolution\s+)?into|delete\s+from|update|truncate\s+table|copy\s+into"
    rf"|create\s+or\s+replace\s+table|restore\s+(?:table\s+)?)\s+{_NAME}",
    re.IGNORECASE | re.DOTALL,
)
_IMMEDIATE = re.compile(r"execute\s+immediate\s+(['\"])(.*)\1", re.IGNORECASE | re.DOTALL)
_EXECUTES = re.compile(r"execute\s+immediate\b|begin\b", re.IGNORECASE)
_REF = re.compile(r"\bref\s*\((?:[^()]*,)?\s*['\"](\w+)['\"]\s*(?:,\s*v\w*\s*=[^()]*)?\)")
_THIS = re.compile(r"\{\{-?\s*this\s*-?\}\}")
# A condition, a loop or a comment of a template.
_BLOCK = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_JINJA = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# With them a group may consist of no rows.
_GROUPINGS = ("rollup", "cube", "grouping_sets", "all")
_MAY_BE_EMPTY = re.compile(r"\bfalse\b|\blimit\s+0\b|\b\d+\s*(?:=|<>|!=|<|>)\s*\d+", re.IGNORECASE)


def with_filled_tables(
    project: Project, hooks: Hooks, is_table: Callable[[str], bool] = lambda relation: False
) -> Project:
    """Return the project with the rows that dbt alone writes into the table of each model.

    Args:
        hooks: of the project and its nodes.
        is_table: whether the warehouse has a table of this name. Only then is a model with a
            materialization of the project's own known to be one.
    """
    statements = list(_statements(hooks))
    written = {
        key
        for owner, is_before, statement in statements
        for key in _written_by(project, owner, statement)
        # Rows that a pre-hook writes into its own table are gone when the table is made.
        if not (is_before and key == owner)
    }
    is_any_unknown = any(_is_unknown(statement) for _, _, statement in statements)
    models = {
        unique_id: replace(model, filled=_filled(model, unique_id in written, is_any_unknown))
        if model.materialized in ("table", "incremental")
        else replace(model, filled="partly")
        if model.is_custom and model.filled_by != "sql" and is_table(model.relation)
        else model
        for unique_id, model in project.models.items()
    }
    return replace(project, models=models)


def _filled(model: Model, is_written: bool, is_any_unknown: bool) -> Filled:
    """Return the statements by which hooks write into a table.

    Args:
        is_written: a hook is known that does.
        is_any_unknown: a macro of a hook may write anywhere.
    """
    sql = model.compiled_code
    if model.filled_by == "sql" or sql is None:
        return "no"
    is_kept = model.materialized == "incremental" and model.config.get("full_refresh") is False
    is_filled = is_written or model.filled_by == "hooks"
    if (is_filled or is_kept or (is_any_unknown and not model.depends_on)) and yields_nothing(sql):
        return "wholly"
    # dbt adds to such a table in each run: its rows of yesterday are said by no SQL.
    return "partly" if is_filled or (is_kept and _reads_nothing(sql)) else "no"


def _statements(hooks: Hooks) -> Iterator[tuple[str | None, bool, str]]:
    """Yield each statement with the node whose hook it is, and whether that is a pre-hook."""
    for is_before, of_nodes in ((True, hooks.before), (False, hooks.after)):
        for owner, statements in of_nodes.items():
            yield from ((owner, is_before, statement) for statement in statements)
    yield from ((None, False, hook) for hook in (*hooks.on_run_start, *hooks.on_run_end))


def _written_by(project: Project, owner: str | None, statement: str) -> Iterable[str]:
    """Return the models that a statement of a hook writes rows into."""
    if (match := _WRITES.match(_statement_in(statement))) is None:
        return ()
    target = match[1]
    if owner is not None and _THIS.fullmatch(target):
        return (owner,)
    models = project.models.items()
    if (ref := _REF.search(target)) is not None:
        return tuple(key for key, model in models if model.name == ref[1])
    parts = [unquoted(part).lower() for part in _JINJA.sub("", target).strip(".").split(".")]
    # If only a run knows the schema of a name, its last part is enough.
    is_whole = "{{" not in target and len(parts) > 1
    name = ".".join(parts[-2:]) if is_whole else parts[-1]
    return tuple(
        key
        for key, model in models
        if name == (model.relation if is_whole else model.identifier.lower())
    )


def _is_unknown(statement: str) -> bool:
    """Return True for a hook whose text does not show its effect: a run renders or computes it."""
    text = statement.removeprefix(NOT_RENDERED)
    if _EXECUTES.match(_statement_in(statement)):
        return True
    return text != statement and _WRITES.match(_statement_in(statement)) is None and "{" in text


def _statement_in(hook: str) -> str:
    """Return the statement of a hook; of one that is not rendered, behind all conditions."""
    text = hook.removeprefix(NOT_RENDERED)
    statement = bare_statement(text if text == hook else _BLOCK.sub(" ", text))
    quoted = _IMMEDIATE.match(statement)
    return statement if quoted is None else bare_statement(quoted[2])


def _reads_nothing(sql: str) -> bool:
    """Return True if a query names no table."""
    import sqlglot
    from sqlglot import exp

    try:
        query = sqlglot.parse_one(sql, dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return False
    named = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    return all(not table.db and table.name.lower() in named for table in query.find_all(exp.Table))


def yields_nothing(sql: str) -> bool:
    """Return True if the text of a query alone shows that it has no rows, whatever tables hold.

    >>> yields_nothing("with one as (select 1 as n) select n from one where 1 = 0")
    True
    >>> yields_nothing("select count(*) as n from mini.orders where false")
    False
    """
    if not _MAY_BE_EMPTY.search(sql):
        return False
    import sqlglot

    try:
        return _is_empty(sqlglot.parse_one(sql, dialect="spark"), frozenset())
    except (sqlglot.errors.SqlglotError, RecursionError):
        return False


def _is_empty(query: object, empty: frozenset[str]) -> bool:
    """Return True of a query without rows; `empty` are names of CTEs that have none."""
    from sqlglot import exp
    from sqlglot.optimizer.simplify import simplify

    if not isinstance(query, exp.Query):
        return False
    for cte in query.ctes:
        name = frozenset((cte.alias.lower(),))
        empty = empty | name if _is_empty(cte.this, empty) else empty - name
    limit = query.args.get("limit")
    if limit is not None and limit.expression is not None and limit.expression.name == "0":
        return True
    if isinstance(query, exp.Subquery):
        return _is_empty(query.this, empty)
    if isinstance(query, exp.Union):
        return all(_is_empty(side, empty) for side in (query.left, query.right))
    if not isinstance(query, exp.Select):
        return False
    # An aggregate of no rows is one row.
    group = query.args.get("group")
    if group is None:
        asked = (*query.expressions, *filter(None, (query.args.get("having"),)))
        if any(part.find(exp.AggFunc, exp.Anonymous, exp.Having) for part in asked):
            return False
    elif any(group.args.get(name) for name in _GROUPINGS):
        return False
    where = query.args.get("where")
    if where is not None and simplify(where.this.copy()) == exp.false():
        return True
    source = query.args.get("from_") or query.args.get("from")
    if source is None or any(join.side for join in query.args.get("joins") or ()):
        return False
    table = source.this
    if isinstance(table, exp.Table):
        return not table.db and table.name.lower() in empty
    return _is_empty(table, empty)
