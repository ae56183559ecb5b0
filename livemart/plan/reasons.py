"""Lists the reason codes: why a model, or one refresh of it, is recomputed in full or costs much.

Used by every rule of the planner and by each refresh that falls back.
"""

from __future__ import annotations

from dataclasses import dataclass

# A refresh takes these tables over: dbt alone writes them.
WRITTEN_BY_DBT = ("FILLED_BY_HOOKS", "OWN_MATERIALIZATION")
# The end of the message on SQL that asks for more than the rows of a table.
READS_A_NOTE = "reads a note that Spark keeps beside a column of windows"
# Complete: a code that is added here is added to docs/refresh.md.
REASON_CODES = frozenset(
    {
        "EXPRESSION_NOT_DETERMINISTIC",
        "NONDETERMINISTIC_ORDER",
        "NEW_MODEL",
        "NONDETERMINISTIC_AGG",
        "NOT_ADDITIVE",
        "NOT_CARRIED_ON",
        "UDF_NOT_DETERMINISTIC",
        "WINDOW_WITHOUT_PARTITION_BY",
        "WINDOW_UNBOUNDED",
        "WINDOW_REFUSED",
        "SUBQUERY_NOT_INCREMENTALIZABLE",
        "NULL_AWARE_ANTI",
        "GLOBAL_AGG",
        "GLOBAL_LIMIT",
        "INPUT_NOT_IN_DELTA",
        "CDF_UNAVAILABLE",
        "KEY_NOT_IN_OUTPUT",
        *WRITTEN_BY_DBT,
        "FINGERPRINT_CHANGED",
        "COST_GATE",
        "PARSE_UNSUPPORTED",
        "SCALAR_SUBQUERY_CHANGED",
        "CHANGED_OUTSIDE",
        "LIMIT_WITHOUT_ORDER",
        "CLOCK_NOT_ONE_ROW",
        "JOIN_UNBOUNDED_TIME",
        "JOIN_WITHOUT_EQUALITY",
        "GROWTH_UNBOUNDED",
        "POLICY_FULL",
        "ASKS_THE_WAREHOUSE",
        "SESSION_CHANGED",
        "SESSION_SETTING",
        "SET_ASIDE",
        "STRATEGY_FAILED",
        "VARIES_WITH_RUN",
    }
)


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason code with the finding, its place (`line` of the compiled SQL) and a suggestion."""

    code: str
    message: str
    line: int | None
    suggestion: str | None = None

    def __post_init__(self) -> None:
        if self.code not in REASON_CODES:
            raise ValueError(self.code)


class Inapplicable(Exception):
    """A rule or a strategy does not hold, for SQL or in one batch: the next one is tried.

    `reasons`: those that were noted before the one that ended the analysis, and that one.
    """

    def __init__(self, reason: Reason, *, before: tuple[Reason, ...] = ()) -> None:
        super().__init__(f"{reason.code}: {reason.message}")
        self.reason = reason
        self.reasons = (*before, reason)


def refusal(
    code: str, message: str, line: int | None = None, suggestion: str | None = None
) -> Inapplicable:
    """Return an error that carries a reason; see `Reason`."""
    return Inapplicable(Reason(code, message, line, suggestion))
