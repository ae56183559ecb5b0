"""Finds models whose SQL names a column that no table of Delta, or not their contract, takes.

Used by `plan`, before a build, and when the project is edited. Spark or dbt refuses such a model
once it is made. Only the outermost select is looked at, and only what it writes out itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from livemart.errors import ConfigError, ConfigErrors
from livemart.plan.reasons import Inapplicable
from livemart.plan.sql.determinism import line_of
from livemart.plan.sql.parse import parse
from livemart.project.declared_columns import ONE_COLUMN, STORABLE, is_storable
from livemart.project.graph import Model, Project
from livemart.project.test_places import written_line
from livemart.spark_sql import unquoted

_TABLES = ("table", "incremental")
# Spark calls a column without a name by its text, which has brackets or blanks for these.
_UNNAMED = (
    *(exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg, exp.Coalesce, exp.Case),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Window),
)


def require_table_columns(project: Project) -> None:
    """Refuse models with a column that no table takes, or that its contract lacks, all at once.

    Raises:
        ConfigError: MODEL_COLUMN_INVALID, MODEL_COLUMN_TWICE; MODEL_FAILED, of a contract.
    """
    mistakes: list[ConfigError] = []
    for model in project.models.values():
        code = model.compiled_code
        if code and model.materialized in _TABLES:
            mistakes += _mistakes(project, model, code)
        if code and model.is_contracted and model.materialized in (*_TABLES, "view"):
            mistakes += _breaches(model, code)
    if mistakes:
        raise ConfigErrors(mistakes)


def _mistakes(project: Project, model: Model, code: str) -> Iterator[ConfigError]:
    try:
        tree = parse(code)
    except Inapplicable:
        return
    first: dict[str, str] = {}
    for item in tree.selects if isinstance(tree, exp.Query) else ():
        if isinstance(item, _UNNAMED):
            hint = "give it a name: `... as total`"
            finding = f"found `{item.sql('spark')}` without a name"
            yield ConfigError(
                "MODEL_COLUMN_INVALID", f"{_place(project, model, code, item)}{finding}", hint=hint
            )
            continue
        if not isinstance(item, exp.Alias | exp.Column) or item.is_star:
            continue
        name = item.alias_or_name
        if not is_storable(name):
            hint = "rename it in the SQL: " + STORABLE
            yield ConfigError(
                "MODEL_COLUMN_INVALID",
                f"{_place(project, model, code, item)}found `{name}`",
                hint=hint,
            )
        if name.lower() in first:
            yield ConfigError(
                "MODEL_COLUMN_TWICE",
                f"{_place(project, model, code, item)}found {name} beside {first[name.lower()]}",
                hint=ONE_COLUMN,
            )
        first.setdefault(name.lower(), name)


def _breaches(model: Model, code: str) -> Iterator[ConfigError]:
    """Yield a mistake if a model selects other columns than its contract; types are Spark's."""
    try:
        tree = parse(code)
    except Inapplicable:
        return
    items = tree.selects if isinstance(tree, exp.Query) else []
    if not items or not all(isinstance(it, exp.Alias | exp.Column) for it in items):
        return
    if any(it.is_star for it in items):
        return
    selected = {it.alias_or_name.lower(): it.alias_or_name for it in items}
    promised = {unquoted(it.name).lower(): unquoted(it.name) for it in model.columns}
    breaches = [f"{promised[key]} is missing" for key in promised if key not in selected]
    breaches += [f"{selected[key]} is not in it" for key in selected if key not in promised]
    if breaches:
        yield ConfigError(
            "MODEL_FAILED",
            f"{model.file}: its enforced contract is violated: {'; '.join(breaches)}",
            hint="change the model, or the columns of its contract",
        )


def _place(project: Project, model: Model, code: str, item: exp.Expr) -> str:
    number = line_of(item)
    place = model.file
    if number is not None:
        line = written_line(project, model.file, code, number)
        place += f": line {number} of its compiled SQL" if line is None else f":{line}"
    return f"{place}: model {model.name}: "
