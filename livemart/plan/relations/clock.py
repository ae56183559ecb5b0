"""Finds windows against the clock: which slices of time enter or leave when `as_of` moves.

Used for each WHERE. A condition that uses the clock in another way is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlglot import exp, parse_one

from livemart.plan.relations.frames import interval_micros
from livemart.plan.relations.relation import Expr, column

CLOCK_COLUMN = "__clock__"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClockBound:
    """A condition that compares `time` (over the filter's input) with `threshold`.

    `threshold` is deterministic over the one column `__clock__`, the value of the clock at
    `occurrence`. When the clock moves, only rows whose time lies between the lower and the higher
    threshold may enter or leave; of the two ends only the lower one counts (`has_lower_end`, for
    `>=` and `<`) or only the higher one (for `>` and `<=`). `is_lower`: the time lies at or after
    the threshold, not before it.
    """

    occurrence: int
    clock_column: str
    time: Expr
    threshold: Expr
    has_lower_end: bool
    is_lower: bool


def clock_value(occurrence: int, name: str) -> exp.Column:
    """Return the marker that stands for a clock's value inside an expression."""
    marker = column(CLOCK_COLUMN)
    marker.meta["occurrence"] = occurrence
    marker.meta["name"] = name
    return marker


def is_clock_value(expr: Expr) -> bool:
    return isinstance(expr, exp.Column) and expr.name == CLOCK_COLUMN


def clock_values(expr: Expr) -> list[Expr]:
    """Return all markers of clock values in `expr`."""
    return [node for node in expr.walk() if is_clock_value(node)]


_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE)


def bounds_of(condition: Expr) -> list[ClockBound] | None:
    """Return the clock bounds of one conjunct, None if it uses the clock in another way."""
    if isinstance(condition, exp.Paren):
        return bounds_of(condition.this)
    if isinstance(condition, exp.And):
        left, right = bounds_of(condition.left), bounds_of(condition.right)
        return None if left is None or right is None else left + right
    if isinstance(condition, exp.Between):
        low = _bound(condition.this, exp.GTE, condition.args["low"])
        high = _bound(condition.this, exp.LTE, condition.args["high"])
        return None if low is None or high is None else low + high
    if isinstance(condition, _COMPARISONS):
        return _bound(condition.left, type(condition), condition.right)
    return None if clock_values(condition) else []


def _bound(left: Expr, comparison: type[Expr], right: Expr) -> list[ClockBound] | None:
    """Return the bound of `left <comparison> right`; [] if neither side reads the clock."""
    on_left, on_right = clock_values(left), clock_values(right)
    if not on_left and not on_right:
        return []
    if on_left and on_right:
        return None
    is_turned = bool(on_left)
    if is_turned:
        left, right, on_right = right, left, on_left
    others = [node for node in right.find_all(exp.Column) if not is_clock_value(node)]
    if others:
        # time + interval >= clock is the same as time >= clock - interval, but the time's own side
        # may hold any expression already; a column beside the clock is what cannot be bounded.
        return None
    marker = on_right[0]
    if len({(value.meta["occurrence"], value.meta["name"]) for value in on_right}) > 1:
        return None
    occurrence, name = int(marker.meta["occurrence"]), str(marker.meta["name"])
    # time >= threshold or time < threshold; turned, threshold > time or threshold <= time.
    has_lower_end = (comparison in (exp.GTE, exp.LT)) != is_turned
    is_lower = (comparison in (exp.GT, exp.GTE)) != is_turned
    return [ClockBound(occurrence, name, left, right, has_lower_end, is_lower)]


def evaluate(threshold: str, value: datetime) -> datetime | None:
    """Return the value of a threshold for one value of the clock, None if it is not a simple one.

    Simple: additions and subtractions of day-time intervals, and date_trunc to the hour or below.

    >>> evaluate("__clock__ - INTERVAL '24' HOURS", datetime(2026, 1, 2, tzinfo=UTC))
    datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    return _evaluate(parse_one(threshold, dialect="spark"), value)


_TRUNCATED = {
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}


def _evaluate(expr: Expr, value: datetime) -> datetime | None:
    if isinstance(expr, exp.Paren):
        return _evaluate(expr.this, value)
    if is_clock_value(expr):
        return value
    if isinstance(expr, exp.Add | exp.Sub):
        left, micros = _evaluate(expr.left, value), interval_micros(expr.right)
        if left is None or micros is None:
            return None
        shift = timedelta(microseconds=micros)
        return left + shift if isinstance(expr, exp.Add) else left - shift
    if isinstance(expr, exp.TimestampTrunc | exp.DateTrunc):
        left = _evaluate(expr.this, value)
        unit = expr.args.get("unit")
        width = _TRUNCATED.get((unit.name if unit is not None else "").upper())
        if left is None or width is None:
            return None
        micros = (left - _EPOCH) // timedelta(microseconds=1)
        return _EPOCH + timedelta(microseconds=micros // width * width)
    return None
