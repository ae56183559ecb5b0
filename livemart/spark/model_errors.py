"""Says why a model cannot be computed, in the analyst's own words: file, line and SQL as compiled.

Used by the refresh of a project, where a full refresh has failed. The failed statement has our
names and reads spliced in. So the same error is asked of the model's compiled SQL, unchanged, and
the analyst is shown nothing that livemart wrote.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from livemart.conflicts import may_pass
from livemart.errors import RefreshError
from livemart.project.graph import Model, Project, SourceTable
from livemart.project.node_results import WRONG_ADVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

_HINT = "correct the model; readers keep the last published snapshot"
# Pieces that refresh splices into a statement, and file paths of tables.
_OURS = re.compile(
    r"(?<!\w)__(?!dbt__)\w+|\bversion as of \d+|\bdelta\.`|\b_(old|new)_count\b|`[qsrt]`\."
)
_MISSING_TABLE = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view ((?:`[^`]+`\.?)+)")
# Spark 4.2 has no words for this condition, which SQL of Databricks meets.
_NO_VARIANT = re.compile(
    r"\[INTERNAL_ERROR\] Cannot find main error class '(COLUMN_IS_NOT_VARIANT_TYPE)'"
)
_PATH_OF_TEXT = (
    r"[\1] Spark reads `column:path` of a VARIANT alone; "
    "in a string get_json_object(column, '$.path') finds the value"
)
_MOST_EXCERPT = 200


class ModelFailedError(RefreshError):
    """A model that even a full refresh cannot compute; `is_retriable`: the batch is run again."""

    is_retriable = False

    def __init__(self, model: Model, message: str, hint: str = _HINT) -> None:
        super().__init__("MODEL_FAILED", message, hint=hint, models=[model.unique_id])
        self.unique_id = model.unique_id


def model_failed(
    session: Callable[[Model], SparkSession], model: Model, error: Exception
) -> ModelFailedError:
    """Return the message for the author of a model that an error ended.

    Args:
        session: gives the session of a model, which knows the tables by the names that the model
            uses.
    """
    if (written := error_as_written(session, model)) is not None:
        return ModelFailedError(model, f"{model.file}: {written}")
    message = message_of(error)
    if _OURS.search(message):
        condition = re.match(r"\[[A-Z0-9_.]+\]", message)
        message = f"{condition.group() if condition else type(error).__name__}: " + (
            "the SQL fails in this batch, but not when it runs alone"
        )
    return ModelFailedError(
        model, f"{model.file}: {message}", f"{_HINT}; --debug shows the whole error"
    )


def error_as_written(session: Callable[[Model], SparkSession], model: Model) -> str | None:
    """Return where and why a model's SQL fails as it was written, None if it does not."""
    if model.compiled_code is None:
        return None
    try:
        spark = session(model)
    except Exception as error:
        # A statement of a hook, and not of the model.
        return None if may_pass(error) else f"its session: {message_of(error)}"
    return _error_in(
        model, lambda text: spark.sql(text).write.format("noop").mode("overwrite").save()
    )


def analysis_error(spark: SparkSession, model: Model) -> str | None:
    """Return where and why Spark cannot read a model's SQL, None if it can; no row is computed."""
    message = _error_in(model, spark.sql)
    return message and f"{model.file}: {message}"


def _error_in(model: Model, run: Callable[[str], object]) -> str | None:
    """Return where and why a model's SQL fails when it is run, None if it does not."""
    text = model.compiled_code
    if text is None:
        return None
    try:
        run(text)
    except Exception as error:
        return None if may_pass(error) else _place(error, text) + message_of(error)
    return None


def missing_sources(project: Project, messages: Iterable[str]) -> list[SourceTable]:
    """Return the sources that nothing lands and whose table Spark's messages do not find."""
    missing = {
        mention[1].replace("`", "").lower()
        for message in messages
        for mention in _MISSING_TABLE.finditer(message)
    }
    sources = project.sources.values()
    return [source for source in sources if source.stream is None and source.relation in missing]


def how_to_fill(project: Project, missing: Sequence[SourceTable]) -> str:
    """Return the next step for sources that have no table."""
    to_land, disabled, elsewhere = list[str](), list[str](), list[str]()
    for source in missing:
        if source.disabled_seed is not None:
            disabled.append(source.disabled_seed)
        elif (seed := project.seed_of_another_schema(source)) is not None:
            elsewhere.append(f"{source.relation} from {seed.relation}")
        else:
            to_land.append(f"{source.relation} ({source.file})")
    steps = {
        "nothing lands {}: `livemart init --from-dbt` shows what to write there": to_land,
        "seeds that fill its sources are disabled: enable {}, often by a variable that `enabled` "
        "reads (--vars)": disabled,
        "seeds of these sources are in another schema: fill {}, by one schema for both": elsewhere,
    }
    return "; ".join(step.format(", ".join(names)) for step, names in steps.items() if names)


def syntax_error(spark: SparkSession, text: str) -> tuple[int | None, str] | None:
    """Return line and message of Spark's parser for a text; None if it reads the text.

    Nothing is looked up: tables need not be there.
    """
    from pyspark.errors import ParseException

    session: Any = spark
    try:
        session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except ParseException as error:
        return _line_of(error), message_of(error)
    return None


def message_of(error: Exception) -> str:
    """Return Spark's message, without the statement and the plan that it shows below.

    If an exception has no message: class and message of its innermost cause.
    """
    text = _answer(error, "getMessage") or str(error)
    said, _, stack = text.partition("JVM stacktrace:")
    if not said.strip() or "An error occurred while calling" in said:
        text = _innermost(stack or said) or said
    text = _NO_VARIANT.sub(_PATH_OF_TEXT, WRONG_ADVICE.sub("", text))
    text = re.split(r"\n*== SQL|\n*JVM stacktrace|; line \d+ pos \d+|SQLSTATE", text)[0].strip()
    lines = text.splitlines() or [type(error).__name__]
    ends = (n for n, line in enumerate(lines) if n and line.lstrip().startswith(("'", "+-", ":-")))
    return "\n".join(lines[: min(next(ends, len(lines)), 5)]).strip()


def _answer(error: Exception, method: str) -> Any:
    """Return the answer of a method of an error; None if it has none, or fails.

    PySpark asks the JVM, and fails for an error of Delta's that has no condition.
    """
    ask: Any = getattr(error, method, None)
    try:
        return ask() if callable(ask) else None
    except Exception:
        return None


def _innermost(stack: str) -> str | None:
    r"""Return the condition that a stack trace names, or its innermost exception; None if neither.

    >>> _innermost("a.b.OuterException: out\n\tat x\nCaused by: a.b.InnerException: in\n\tat y")
    'a.b.InnerException: in'
    """
    if conditions := re.findall(r"\[[A-Z][A-Z0-9_.]+\] .*", stack):
        return str(conditions[0])
    exceptions = re.findall(
        r"^(?:: |Caused by: )?((?:[\w$]+\.)+[\w$]+(?:: .*)?)$", stack, re.MULTILINE
    )
    return str(exceptions[-1]) if exceptions else None


def _place(error: Exception, text: str) -> str:
    """Return where in the SQL the error is, with the text there; nothing if Spark does not say it.

    >>> _place(ValueError("no idea"), "select 1")
    ''
    """
    for context in _answer(error, "getQueryContext") or ():
        try:
            name, start = context.objectName(), context.startIndex()
            fragment = " ".join(context.fragment().split())[:_MOST_EXCERPT]
        except Exception:
            # A context of a DataFrame has no SQL.
            continue
        if name:
            return f"in {context.objectType().lower()} {name}: `{fragment}`: "
        if 0 <= start < len(text):
            line = text.count("\n", 0, start) + 1
            return f"line {line} of its compiled SQL: `{fragment}`: "
    line, lines = _line_of(error) or 0, text.splitlines()
    excerpt = lines[line - 1].strip()[:_MOST_EXCERPT] if 0 < line <= len(lines) else ""
    return f"line {line} of its compiled SQL: `{excerpt}`: " if excerpt else ""


def _line_of(error: Exception) -> int | None:
    """Return the line that an error's text names.

    >>> _line_of(ValueError("near 'form' (line 2, pos 7)")), _line_of(ValueError("line 3 pos 1"))
    (2, 3)
    """
    at = re.search(r"\bline (\d+),? pos(?:ition)? \d+", str(error))
    return int(at[1]) if at else None
