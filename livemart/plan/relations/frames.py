"""Reads the frames of window functions: exact, closed intervals of microseconds around a row.

Used where OVER becomes a gate. A frame of rows, or one without a bound, is none here.
"""

from __future__ import annotations

from sqlglot import exp

from livemart.plan.relations.gate import Frame
from livemart.plan.relations.relation import Expr, bare
from livemart.plan.sql.determinism import function_name

UNIT_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_ORDERED_FUNCTIONS = frozenset(
    {
        "row_number", "lag", "lead", "first_value", "last_value", "nth_value", "ntile", "first",
        "last", "cume_dist_rows",
    }
)  # fmt: skip


def interval_micros(interval: Expr | None) -> int | None:
    """Return the length of a day-time interval literal, None if it is anything else.

    >>> from sqlglot import parse_one
    >>> interval_micros(parse_one("interval 24 hours", dialect="spark"))
    86400000000
    """
    if not isinstance(interval, exp.Interval) or interval.this is None:
        return None
    value, unit = interval.this, interval.args.get("unit")
    text = value.this if isinstance(value, exp.Literal) else None
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        text = "-" + str(value.this.this)
    if text is None or unit is None:
        return None
    name = unit.name.lower().removesuffix("s") if not isinstance(unit, exp.IntervalSpan) else ""
    if name not in UNIT_MICROS:
        return None
    try:
        return round(float(text) * UNIT_MICROS[name])
    except ValueError:
        return None


def frame_of(spec: Expr, call: Expr) -> Frame | None:
    """Return the bounded RANGE frame of a window specification, None if there is none.

    Frames that do not hold the row itself are widened to it: a change at t touches the row at t.

    >>> from sqlglot import parse_one
    >>> window = parse_one(
    ...     "sum(x) over (order by at range between interval 1 hour preceding and current row)",
    ...     dialect="spark",
    ... )
    >>> frame = frame_of(window, window.this)
    >>> frame.before, frame.after
    (3600000000, 0)
    """
    order = spec.args.get("order")
    bounds = spec.args.get("spec")
    if order is None or bounds is None or len(order.expressions) != 1:
        return None
    if bounds.text("kind").upper() != "RANGE" or function_name(call) in _ORDERED_FUNCTIONS:
        return None
    item = order.expressions[0]
    start = _offset(bounds.args.get("start"), bounds.args.get("start_side"), is_start=True)
    end = _offset(bounds.args.get("end"), bounds.args.get("end_side"), is_start=False)
    if start is None or end is None:
        return None
    # Positive: preceding. The affected interval also holds the changed point itself.
    before, after = max(start, 0, end), max(-end, 0, -start)
    if item.args.get("desc"):
        before, after = after, before
    return Frame(bare(item.this), before, after)


def _offset(bound: Expr | str | None, side: str | None, *, is_start: bool) -> int | None:
    """Return how far a bound is before the row, in microseconds; negative: after it."""
    if bound is None:
        return 0 if not is_start else None
    if isinstance(bound, str):
        return 0 if bound.upper() == "CURRENT ROW" else None
    micros = interval_micros(bound)
    if micros is None:
        return None
    return micros if (side or "").upper() == "PRECEDING" else -micros


def needs_total_order(call: Expr, spec: Expr) -> bool:
    """Return True if ties in the order would make the function's answer a coin toss."""
    if function_name(call) in _ORDERED_FUNCTIONS:
        return True
    if not is_by_rows(spec):
        return False
    return any(spec.args["spec"].text(side).upper() != "UNBOUNDED" for side in ("start", "end"))


def is_by_rows(spec: Expr) -> bool:
    """Return True for a frame of so many rows, which may end among rows that tie."""
    bounds = spec.args.get("spec")
    return bounds is not None and bounds.text("kind").upper() == "ROWS"
