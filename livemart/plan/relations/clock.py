"""Finds comparisons of a time with the clock: which slices of time they pass when `as_of` moves.

Used for each SELECT. A condition of WHERE is a window as well, outside which no row matters. A
clause that uses the clock in another way is none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp, parse_one

from livemart.plan.relations.frames import UNIT_MICROS, interval_micros
from livemart.plan.relations.relation import Expr, column
from livemart.plan.sql.determinism import is_aggregate

CLOCK_COLUMN = "__clock__"
# A note on the marker of a value that may be no time.
OF_ANY_TYPE = "of_any_type"


@dataclass(frozen=True, slots=True)
class ClockBound:
    """A comparison of `time` (over the input of the step that makes it) with `threshold`.

    `threshold` is deterministic over the one column `__clock__`, the value of the clock at
    `occurrence`. When the clock moves, the comparison has another result only for rows whose time
    is between the lower and the higher threshold. Only the lower one counts as between
    (`has_lower_end`, for `>=` and `<`) or only the higher one (for `>` and `<=`). `is_lower`: the
    time is at or after the threshold, not before it.

    No order changed here, but the clock moved on: those that leave the last day are passed.

    >>> show(
    ...     "select shop_id, count(*) as orders from raw.orders where ordered_at >="
    ...     " (select as_of from livemart.clock) - interval 24 hours group by shop_id",
    ...     change="clock",
    ... )
    signed: shop_id key, orders count_rows
    passed: orders with ordered_at between the old and the new __clock__ - interval 24 hours
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
        return _together(map(bounds_of, (condition.left, condition.right)))
    if isinstance(condition, exp.Between):
        low = _bound(condition.this, exp.GTE, condition.args["low"])
        high = _bound(condition.this, exp.LTE, condition.args["high"])
        return _together((low, high))
    if isinstance(condition, _COMPARISONS):
        return _bound(condition.left, type(condition), condition.right)
    return None if clock_values(condition) else []


def comparisons_in(expr: Expr) -> list[ClockBound] | None:
    """Return all comparisons of a time with the clock in `expr`, None if it uses it otherwise.

    With all of them known, a row's value moves with the clock only where one of them does.
    """
    if not clock_values(expr):
        return []
    if is_clock_value(expr):
        return None
    if isinstance(expr, (exp.Between, *_COMPARISONS)) and (bounds := bounds_of(expr)) is not None:
        return bounds
    return _together(map(comparisons_in, expr.iter_expressions()))


def _together(parts: Iterable[list[ClockBound] | None]) -> list[ClockBound] | None:
    """Return the bounds of several parts, None if one of them uses the clock in another way."""
    bounds: list[ClockBound] = []
    for part in parts:
        if part is None:
            return None
        bounds += part
    return bounds


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
    if any(not is_clock_value(node) for node in right.find_all(exp.Column)):
        # time + interval >= clock is the same as time >= clock - interval, but the time's own side
        # may hold any expression already; a column beside the clock is what cannot be bounded.
        return None
    marker = on_right[0]
    if any(value.meta.get(OF_ANY_TYPE) for value in on_right):
        return None
    if len({(value.meta["occurrence"], value.meta["name"]) for value in on_right}) > 1:
        return None
    occurrence, name = int(marker.meta["occurrence"]), str(marker.meta["name"])
    # time >= threshold or time < threshold; turned, threshold > time or threshold <= time.
    has_lower_end = (comparison in (exp.GTE, exp.LT)) != is_turned
    is_lower = (comparison in (exp.GT, exp.GTE)) != is_turned
    time = _of_one_row(left)
    return [ClockBound(occurrence, name, time, right, has_lower_end, is_lower)]


def _of_one_row(time: Expr) -> Expr:
    """Return the time of a row that decides, where a time is the least or the most of several.

    It is that of one of the rows; where the comparison passes none of them, it turns out as before.
    """
    calls = [node for node in time.walk() if is_aggregate(node)]
    if len(calls) != 1 or not isinstance(calls[0], exp.Min | exp.Max):
        return time

    def argument(node: Expr) -> Expr:
        call = node.this if isinstance(node, exp.Window) else node
        return call.this if isinstance(call, exp.Min | exp.Max) else node

    return time.transform(argument)


def evaluate(threshold: str, value: int) -> int | None:
    """Return the value of a threshold for one value of the clock, None if it is not a simple one.

    Both in microseconds since 1970, UTC. Simple: additions and subtractions of day-time intervals,
    and date_trunc to the day or below.

    >>> evaluate("__clock__ - INTERVAL '24' HOURS", 86_400_000_001)
    1
    """
    return _evaluate(parse_one(threshold, dialect="spark"), value)


_TRUNCATED = frozenset({"second", "minute", "hour", "day"})


def _evaluate(expr: Expr, value: int) -> int | None:
    if isinstance(expr, exp.Paren):
        return _evaluate(expr.this, value)
    if is_clock_value(expr):
        return value
    if isinstance(expr, exp.Add | exp.Sub):
        left, micros = _evaluate(expr.left, value), interval_micros(expr.right)
        if left is None or micros is None:
            return None
        return left + micros if isinstance(expr, exp.Add) else left - micros
    if isinstance(expr, exp.TimestampTrunc | exp.DateTrunc):
        left = _evaluate(expr.this, value)
        unit = expr.text("unit").lower()
        if left is None or unit not in _TRUNCATED:
            return None
        width = UNIT_MICROS[unit]
        return left // width * width
    return None
