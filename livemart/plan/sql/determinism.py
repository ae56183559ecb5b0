"""Tells whether a call may give another answer for the same rows, by the function's name.

Used before a query is planned. Catalyst reports `deterministic=true` for several that do
(current_timestamp, first, collect_list, max_by, mode), so the list is our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from livemart.plan.reasons import refusal
from livemart.plan.sql.functions import AGGREGATE_FUNCTIONS
from livemart.plan.sql.written import sql_of
from livemart.project.session_spec import without_texts

VOLATILE_FUNCTIONS = frozenset(
    {
        "rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "now", "curdate",
        "current_timestamp", "current_date", "current_time", "localtimestamp", "localtime",
        "current_user", "session_user", "user", "current_database", "current_schema",
        "current_catalog", "current_timezone", "monotonically_increasing_id", "spark_partition_id",
        "input_file_name", "input_file_block_start", "input_file_block_length", "version",
        "current_version", "current_path", "utc_timestamp", "utc_date", "utc_time",
        # Each chooses its own initialisation vector, or calls a method.
        "aes_encrypt", "java_method", "reflect", "try_reflect",
    }
)  # fmt: skip
_CLOCKS = frozenset(
    {
        "now", "curdate", "current_timestamp", "current_date", "current_time", "localtimestamp",
        "localtime", "utc_timestamp", "utc_date", "utc_time", "unix_timestamp",
    }
)  # fmt: skip
_RANDOM = frozenset(
    {"rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "aes_encrypt"}
)
# A function whose statement holds one of these words may read tables, or differ between two runs.
_UNSTEADY = re.compile(
    rf"\b(?:select|from|table|not\s+deterministic|{'|'.join(sorted(VOLATILE_FUNCTIONS))})\b",
    re.IGNORECASE,
)
# The `from` of these reads no table.
_FROM_A_VALUE = re.compile(
    r"(\b(?:extract|trim|substr|substring|overlay)\s*\([^()]*|\bdistinct\s+)\bfrom\b", re.IGNORECASE
)
# These need no brackets: where no column has such a name, the function is meant.
BARE_FUNCTIONS = frozenset(
    {
        "current_date", "current_time", "current_timestamp", "current_user", "localtimestamp",
        "session_user", "user",
    }
)  # fmt: skip
# In a pattern: sqlglot writes `z` as `%Z`, and the offset `Z` as `%z`.
_NAMES_ZONE = re.compile(r"%Z|(?<!%)[zvO]")
_QUOTED = re.compile(r"'[^']*'")
# Spark's own column of each table: of files, and of none that a subquery gives.
FILE_COLUMN = "_metadata"
# Spark reads these words in a DATE or TIMESTAMP literal as a time of today.
SPECIAL_TIMES = frozenset({"now", "today", "tomorrow", "yesterday"})
TIMESTAMP_TYPES = (
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ,
    exp.DataType.Type.TIMESTAMPNTZ,
)
_TIME_TYPES = (exp.DataType.Type.DATE, *TIMESTAMP_TYPES)
APPROXIMATE_AGGREGATES = frozenset(
    {
        "hll_sketch_agg", "hll_union_agg", "theta_sketch_agg", "theta_union_agg",
        "percentile_approx", "approx_percentile", "approxquantile", "approx_quantile",
    }
)  # fmt: skip


def may_name_zone(expr: exp.Expr) -> bool:
    """Return True if an expression may hold the name of a time zone, by a pattern of `date_format`.

    Java names a zone otherwise from process to process, `CET` or `GMT+01:00`: such a text is not
    the key of a stored row.
    """
    return any(
        isinstance(node, exp.TimeToStr | exp.UnixToStr) if pattern is None else _is_of_zone(pattern)
        for node, pattern in _patterns(expr)
    )


def names_zone(expr: exp.Expr) -> bool:
    """Return True if an expression holds the name of a time zone, and not in a FILTER alone.

    A pattern in a column may have one, but few do: rows with such texts are taken away as others.
    """
    return any(
        pattern is not None and _is_of_zone(pattern) and node.find_ancestor(exp.Where) is None
        for node, pattern in _patterns(expr)
    )


def _is_of_zone(pattern: str) -> bool:
    return _NAMES_ZONE.search(_QUOTED.sub("", pattern)) is not None


def _patterns(expr: exp.Expr) -> Iterator[tuple[exp.Expr, str | None]]:
    """Yield each call that writes a time by a pattern, which is None if it is no constant."""
    for node in expr.find_all(exp.TimeToStr, exp.UnixToStr, exp.ToChar, exp.Anonymous):
        if not isinstance(node, exp.Anonymous) or function_name(node) == "to_varchar":
            yield node, _text(node.args.get("format") or next(iter(node.expressions[1:]), None))


def _text(expr: exp.Expr | None) -> str | None:
    """Return the text of literals, one or several that are put together."""
    if isinstance(expr, exp.Literal):
        return expr.name
    if not isinstance(expr, exp.DPipe | exp.Concat | exp.Paren):
        return None
    texts = [text for part in expr.iter_expressions() if (text := _text(part)) is not None]
    return "".join(texts) if len(texts) == len([*expr.iter_expressions()]) else None


def function_name(node: exp.Expr) -> str | None:
    """Return the lower-case SQL name of a function call, None for anything else."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Func):
        return node.sql_name().lower()
    return None


def is_aggregate(node: exp.Expr) -> bool:
    """Return True for a call of an aggregate function, known to the parser or not."""
    if isinstance(node, exp.Any):
        # any(flag): the parser takes it for the quantifier of a comparison.
        return not isinstance(node.parent, exp.Binary)
    return isinstance(node, exp.AggFunc) or function_name(node) in AGGREGATE_FUNCTIONS


def is_volatile(node: exp.Expr) -> bool:
    """Return True if this very call may differ between two runs over the same rows."""
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        literal = node.this
        words = literal.name.lower().split() if isinstance(literal, exp.Literal) else []
        return bool(words) and words[0] in SPECIAL_TIMES and node.is_type(*_TIME_TYPES)
    name = _called(node)
    if name == "unix_timestamp":
        return not list(node.iter_expressions())
    return name in VOLATILE_FUNCTIONS


def _called(node: exp.Expr) -> str | None:
    return "unix_timestamp" if isinstance(node, exp.TimeToUnix) else function_name(node)


def steady_way(name: str | None) -> str:
    """Return the next step for a volatile function, or for a literal such as timestamp 'now'."""
    if name in _RANDOM:
        return "compute the value from columns of the row, such as xxhash64 of its key"
    if name is None or name in _CLOCKS:
        return 'write {{ as_of() }}: the one "now" of the snapshot'
    return "leave it out: it depends on the run, and not on the rows"


def is_unsteady(statement: str) -> bool:
    """Return True unless a function that a statement makes depends on its arguments alone.

    >>> is_unsteady("create function net(x int) returns int return x + 1")
    False
    >>> is_unsteady("create function year_of(d date) returns int return extract(year from d)")
    False
    >>> is_unsteady("create function net(x int) returns int return x + (from t |> select max(y))")
    True
    """
    return _UNSTEADY.search(_FROM_A_VALUE.sub(r"\1", without_texts(statement))) is not None


def is_bare_function(column: exp.Column) -> bool:
    """Return True if a column that no table has is a function called without brackets."""
    return not column.table and column.name.lower() in BARE_FUNCTIONS


def line_of(node: exp.Expr) -> int | None:
    """Return the line of the first token below a node that carries a position."""
    return next((int(part.meta["line"]) for part in node.walk() if "line" in part.meta), None)


def require_deterministic(tree: exp.Expr) -> None:
    """Raise Inapplicable if anything in the query is volatile or sampled."""
    for node in tree.walk():
        if isinstance(node, exp.QueryTransform):
            raise refusal(
                "UDF_NOT_DETERMINISTIC", "TRANSFORM ... USING runs a program", line_of(node)
            )
        if is_volatile(node):
            raise refusal(
                "EXPRESSION_NOT_DETERMINISTIC",
                f"{sql_of(node)} differs between two runs over the same rows",
                line_of(node),
                steady_way(None if isinstance(node, exp.Cast) else _called(node)),
            )
        if isinstance(node, exp.Column) and FILE_COLUMN in {it.name.lower() for it in node.parts}:
            message = f"{sql_of(node)} tells which file holds a row, and rows move"
            raise refusal("EXPRESSION_NOT_DETERMINISTIC", message, line_of(node))
        if isinstance(node, exp.TableSample):
            raise refusal("EXPRESSION_NOT_DETERMINISTIC", "TABLESAMPLE is random", line_of(node))
