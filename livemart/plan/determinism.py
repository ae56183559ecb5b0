"""Which functions may give another answer for the same rows.

Catalyst reports `deterministic=true` for several of them (current_timestamp, first, collect_list,
max_by, mode), so the list is our own.
"""

from __future__ import annotations

from sqlglot import exp

from livemart.plan.reasons import Reason, Unplannable

VOLATILE_FUNCTIONS = frozenset(
    {
        "rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "now", "curdate",
        "current_timestamp", "current_date", "current_time", "localtimestamp", "localtime",
        "current_user", "session_user", "user", "current_database", "current_schema",
        "current_catalog", "current_timezone", "monotonically_increasing_id", "spark_partition_id",
        "input_file_name", "input_file_block_start", "input_file_block_length", "version",
        "current_version", "utc_timestamp", "utc_date", "utc_time",
    }
)  # fmt: skip
ORDER_DEPENDENT_AGGREGATES = frozenset(
    {
        "first", "first_value", "last", "last_value", "any_value", "anyvalue", "collect_list",
        "array_agg", "listagg", "string_agg", "max_by", "min_by", "argmax", "argmin", "mode",
        "arrayagg", "approx_top_k", "kll_sketch_agg_bigint", "kll_sketch_agg_float",
        "kll_sketch_agg_double", "count_min_sketch",
    }
)  # fmt: skip
APPROXIMATE_AGGREGATES = frozenset(
    {
        "hll_sketch_agg", "hll_union_agg", "theta_sketch_agg", "theta_union_agg",
        "percentile_approx", "approx_percentile", "approxquantile", "approx_quantile",
    }
)  # fmt: skip


def function_name(node: exp.Expr) -> str | None:
    """Return the lower-case SQL name of a function call, None for anything else."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Func):
        return node.sql_name().lower()
    return None


def is_volatile(node: exp.Expr) -> bool:
    """Return True if this very call may differ between two runs over the same rows."""
    name = function_name(node)
    if name is None:
        return False
    if name == "unix_timestamp" or isinstance(node, exp.TimeToUnix):
        return not list(node.iter_expressions())
    return name in VOLATILE_FUNCTIONS


def line_of(node: exp.Expr) -> int | None:
    """Return the line of the first token below a node that carries a position."""
    for part in node.walk():
        line = part.meta.get("line")
        if line is not None:
            return int(line)
    return None


def require_deterministic(tree: exp.Expr) -> None:
    """Raise Unplannable if anything in the query is volatile or sampled."""
    for node in tree.walk():
        if is_volatile(node):
            raise Unplannable(
                Reason(
                    "EXPRESSION_NOT_DETERMINISTIC",
                    f"{node.sql('spark')} differs between two runs over the same rows",
                    line_of(node),
                    "read the one \"now\" of the snapshot from source('livemart', 'clock')",
                )
            )
        if isinstance(node, exp.TableSample):
            raise Unplannable(
                Reason("EXPRESSION_NOT_DETERMINISTIC", "TABLESAMPLE is random", line_of(node))
            )


def is_order_dependent(call: exp.Expr) -> bool:
    """Return True for an aggregate whose answer depends on the order of its rows."""
    if isinstance(call, exp.WithinGroup):
        return False
    return function_name(call) in ORDER_DEPENDENT_AGGREGATES
