"""Finds models whose SQL names a column that no table of Delta, or not their contract, takes.

Used by `plan`, before a build, and when the project is edited. Spark or dbt refuses such a model
once it is made. Only the outermost select is looked at, and only what it writes out itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
# More texts than the models of a project.
_KNOWN_TEXTS = 4_000
# Spark calls a column without a name by its text, which has brackets or blanks for these.
_UNNAMED = (
    *(exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg, exp.Coalesce, exp.Case),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Window),
)


@dataclass(frozen=True, slots=True)
class SelectedItem:
    """An item of the outermost select; a star has no name, nor has SQL that Spark may name."""

    name: str | None
    line: int | None
    nameless: str | None = None
    """SQL that Spark gives a name which no table takes."""


def require_table_columns(project: Project) -> None:
    """Refuse models with a column that no table takes, or that its contract lacks, all at once.

    Raises:
        ConfigError: MODEL_COLUMN_INVALID, MODEL_COLUMN_TWICE; MODEL_FAILED, of a contract.
    """
    mistakes: list[ConfigError] = []
    for model in project.models.values():
        if not model.compiled_code or model.materialized not in (*_TABLES, "view"):
            continue
        items = selected_items(model.compiled_code) or ()
        if model.materialized in _TABLES:
            mistakes += _mistakes(project, model, items)
        if model.is_contracted:
            mistakes += _breaches(model, items)
    if mistakes:
        raise ConfigErrors(mistakes)


# An edit changes few of the texts of a project.
@lru_cache(maxsize=_KNOWN_TEXTS)
def selected_items(text: str) -> tuple[SelectedItem, ...] | None:
    """Return the items of the outermost select; none without one, None for text of no rule."""
    try:
        tree = parse(text)
    except Inapplicable:
        return None
    return tuple(map(_item, tree.selects if isinstance(tree, exp.Query) else ()))


def _item(item: exp.Expr) -> SelectedItem:
    if isinstance(item, _UNNAMED):
        return SelectedItem(None, line_of(item), item.sql("spark"))
    has_name = isinstance(item, exp.Alias | exp.Column) and not item.is_star
    return SelectedItem(item.alias_or_name if has_name else None, line_of(item))


def _mistakes(
    project: Project, model: Model, items: Iterable[SelectedItem]
) -> Iterator[ConfigError]:
    first: dict[str, str] = {}
    for item in items:
        if item.nameless is not None:
            hint = "give it a name: `... as total`"
            finding = f"found `{item.nameless}` without a name"
            yield ConfigError(
                "MODEL_COLUMN_INVALID", f"{_place(project, model, item)}{finding}", hint=hint
            )
        if (name := item.name) is None:
            continue
        if not is_storable(name):
            hint = "rename it in the SQL: " + STORABLE
            yield ConfigError(
                "MODEL_COLUMN_INVALID", f"{_place(project, model, item)}found `{name}`", hint=hint
            )
        if name.lower() in first:
            yield ConfigError(
                "MODEL_COLUMN_TWICE",
                f"{_place(project, model, item)}found {name} beside {first[name.lower()]}",
                hint=ONE_COLUMN,
            )
        first.setdefault(name.lower(), name)


def _breaches(model: Model, items: Sequence[SelectedItem]) -> Iterator[ConfigError]:
    """Yield a mistake if a model selects other columns than its contract; types are Spark's."""
    names = [item.name for item in items if item.name is not None]
    if not names or len(names) < len(items):
        return
    selected = {name.lower(): name for name in names}
    promised = {unquoted(it.name).lower(): unquoted(it.name) for it in model.columns}
    breaches = [f"{promised[key]} is missing" for key in promised if key not in selected]
    breaches += [f"{selected[key]} is not in it" for key in selected if key not in promised]
    if breaches:
        yield ConfigError(
            "MODEL_FAILED",
            f"{model.file}: its enforced contract is violated: {'; '.join(breaches)}",
            hint="change the model, or the columns of its contract",
        )


def _place(project: Project, model: Model, item: SelectedItem) -> str:
    place = model.file
    if item.line is not None:
        line = written_line(project, model.file, model.compiled_code or "", item.line)
        place += f": line {item.line} of its compiled SQL" if line is None else f":{line}"
    return f"{place}: model {model.name}: "
