"""Finds models whose file has no SQL that Spark could read.

Used when the manifest is read: dbt and Spark refuse such a model when they run it.
"""

from __future__ import annotations

from collections.abc import Iterator

from livemart.errors import ConfigError
from livemart.project.graph import Model
from livemart.project.session_spec import bare_statement

_MARK = "\ufeff"
_DISABLE = "or disable it with those that read it: `enabled: false`"


def sql_mistakes(
    model: Model, language: str, *, has_asked: bool, is_read: bool = True
) -> Iterator[ConfigError]:
    """Yield MODEL_NOT_SQL if a model is Python, renders to nothing, or has a byte order mark.

    Args:
        language: of the file, in dbt's words.
        has_asked: whether the model asked the warehouse: without an answer it may be empty yet.
        is_read: whether Spark is given its SQL, which of an ephemeral model only a reader sends.
    """
    if language != "sql":
        finding = "a model in Python: dbt-spark runs SQL alone on a profile of method session"
        yield _not_sql(model, finding, f"write the model in SQL, {_DISABLE}")
    elif model.is_custom or not is_read:
        return
    elif model.raw_code.startswith(_MARK):
        finding = "a byte order mark before the text, which is no SQL to Spark"
        yield _not_sql(model, finding, "save the file as UTF-8 without a byte order mark (BOM)")
    elif _is_empty(model) and not has_asked:
        finding = "no SQL: jinja and comments leave nothing of the file"
        yield _not_sql(model, finding, f"write a select, {_DISABLE}")


def _is_empty(model: Model) -> bool:
    """Return True for a text without a statement; dbt does not compile a blank one."""
    if model.compiled_code is None:
        return model.materialized != "seed" and not model.raw_code.strip()
    return not bare_statement(model.compiled_code)


def _not_sql(model: Model, finding: str, hint: str) -> ConfigError:
    message = f"{model.file}:1: model {model.name}: found {finding}"
    return ConfigError("MODEL_NOT_SQL", message, hint=hint)
