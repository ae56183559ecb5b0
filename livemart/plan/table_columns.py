"""Finds models whose own SQL names a column that no table of Delta takes.

Used by `plan`, before a build, and when the project is edited. Spark refuses such a model once its
table is made. Only the outermost select is looked at, and only what it writes out itself.
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

_TABLES = ("table", "incremental")
# Spark calls a column without a name by its text, which has brackets or blanks for these.
_UNNAMED = (
    *(exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg, exp.Coalesce, exp.Case),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Window),
)


def require_table_columns(project: Project) -> None:
    """Refuse models with a column that no table takes, all at once.

    Raises:
        ConfigError: MODEL_COLUMN_INVALID, MODEL_COLUMN_TWICE.
    """
    mistakes = [
        mistake
        for model in project.models.values()
        if model.materialized in _TABLES and model.compiled_code
        for mistake in _mistakes(project, model, model.compiled_code)
    ]
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


def _place(project: Project, model: Model, code: str, item: exp.Expr) -> str:
    number = line_of(item)
    place = model.file
    if number is not None:
        line = written_line(project, model.file, code, number)
        place += f": line {number} of its compiled SQL" if line is None else f":{line}"
    return f"{place}: model {model.name}: "
