"""Distinguishes wrong SQL from SQL that only the planner cannot read, by Spark's parser.

Used by `plan`, which runs no SQL that would show it. It asks Spark about models that the planner
cannot read or reads more than Spark does, and about no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livemart.errors import PlanError
from livemart.plan.sql.parse import has_empty_item
from livemart.plan.table_columns import selected_items
from livemart.project.cursors import SessionFactory
from livemart.project.graph import Model, Project
from livemart.project.sessions import session_of
from livemart.project.test_places import written_line
from livemart.spark.model_errors import syntax_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_syntax_errors(project: Project, session: SessionFactory) -> None:
    """Refuse models whose SQL Spark cannot parse, all at once.

    On a machine where Spark cannot be started nothing is refused.

    Raises:
        PlanError: SYNTAX_ERROR.
    """
    # Spark is given no ephemeral model that has no reader.
    inlined = project.inlined()
    unread = [
        model
        for key, model in project.models.items()
        if not _is_read(model) and (model.materialized != "ephemeral" or key in inlined)
    ]
    if not unread:
        return
    try:
        spark = session()
    except Exception:
        # No fault of Spark's start ends a command that can do without Spark.
        return
    if mistakes := [line for model in unread if (line := _mistake(spark, project, model))]:
        raise PlanError("SYNTAX_ERROR", "\n".join(mistakes), hint="correct the SQL")


def _is_read(model: Model) -> bool:
    if model.compiled_code is None:
        return True
    is_parsed = selected_items(model.compiled_code) is not None
    return is_parsed and not has_empty_item(model.compiled_code)


def _mistake(spark: SparkSession, project: Project, model: Model) -> str | None:
    code = model.compiled_code or ""
    try:
        spark = session_of(spark, model.session)
    except Exception:
        # A statement of a hook fails: the build says so.
        return None
    if (refused := syntax_error(spark, code)) is None:
        return None
    number, message = refused
    if number is None:
        return f"{model.file}: {message}"
    lines = code.splitlines()
    shown = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    if (line := written_line(project, model.file, code, number)) is not None:
        return f"{model.file}:{line}: `{shown}`: {message}"
    return f"{model.file}: line {number} of its compiled SQL: `{shown}`: {message}"
