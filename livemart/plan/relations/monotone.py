"""Finds the stored column that a computed time moves with, at most so far off.

Used wherever a time becomes a condition on stored rows, once, when the query is planned.
"""

from __future__ import annotations

from sqlglot import exp

from livemart.plan.relations.frames import UNIT_MICROS, interval_micros
from livemart.plan.relations.relation import Expr, Restriction, Want, bare, columns_of, is_constant
from livemart.plan.sql.determinism import TIMESTAMP_TYPES, function_name

_DAY = UNIT_MICROS["day"]
_UNITS = {
    **UNIT_MICROS,
    "dd": _DAY,
    "month": 31 * _DAY,
    "mon": 31 * _DAY,
    "mm": 31 * _DAY,
    "quarter": 92 * _DAY,
    "year": 366 * _DAY,
    "yyyy": 366 * _DAY,
    "yy": 366 * _DAY,
}


def base_time(expr: Expr) -> tuple[str, int] | None:
    """Return the one column that a time is computed from, and a bound of their distance.

    The result of the expression differs from the column by at most the bound, in microseconds, in
    either direction.

    >>> from sqlglot import parse_one
    >>> base_time(parse_one("date_trunc('hour', ordered_at)", dialect="spark"))
    ('ordered_at', 3600000000)
    """
    expr = bare(expr)
    if isinstance(expr, exp.Column):
        return expr.name, 0
    if isinstance(expr, exp.Add | exp.Sub):
        shift = interval_micros(bare(expr.right))
        return _farther(base_time(expr.left), abs(shift)) if shift is not None else None
    if isinstance(expr, exp.Cast):
        kind = expr.to.this
        if kind in (exp.DataType.Type.DATE, exp.DataType.Type.DATE32):
            return _farther(base_time(expr.this), _DAY)
        if kind in TIMESTAMP_TYPES:
            # Between times with and without a zone it is another instant where clocks change.
            return _farther(base_time(expr.this), 1)
        return None
    if isinstance(expr, exp.Date | exp.TsOrDsToDate) and expr.this is not None:
        return _farther(base_time(expr.this), _DAY)
    if isinstance(expr, exp.TimestampTrunc | exp.DateTrunc):
        unit = expr.args.get("unit")
        name = (unit.name if unit is not None else "").lower()
        return _farther(base_time(expr.this), _UNITS[name]) if name in _UNITS else None
    if isinstance(expr, exp.Dot):
        call = bare(expr.this)
        if function_name(call) == "window" and expr.expression.name.lower() in ("start", "end"):
            arguments = list(call.iter_expressions())
            size = _duration(arguments[1]) if len(arguments) > 1 else None
            return _farther(base_time(arguments[0]), size) if size is not None else None
    references = list(columns_of(expr))
    if len(references) == 1 and function_name(expr) in ("to_timestamp", "timestamp", "to_date"):
        return _farther(base_time(references[0]), _DAY)
    return None


def restriction_of(want: Want) -> Restriction:
    """Return the rows of a stored relation that are enough for a restriction of it.

    >>> show(
    ...     "select date_trunc('hour', ordered_at) as hour, max(amount) as most"
    ...     " from raw.orders group by 1",
    ...     change="orders",
    ... )
    region: hour
    affected: select distinct date_trunc('hour', ordered_at) as w0 from touched_orders
    read: orders, where ordered_at within 1:00:00 of w0
    """
    keys = []
    for index, key in enumerate(want.keys):
        if key is not None and (base := base_time(key)) is not None:
            keys.append((index, *base))
    if want.time is None or (base := base_time(want.time)) is None:
        return Restriction(tuple(keys))
    column, margin = base
    return Restriction(tuple(keys), column, want.before + margin, want.after + margin)


def _farther(base: tuple[str, int] | None, distance: int) -> tuple[str, int] | None:
    return None if base is None else (base[0], base[1] + distance)


def _duration(literal: Expr) -> int | None:
    """Return the microseconds of a duration such as '5 minutes'."""
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return interval_micros(literal) if is_constant(literal) else None
    words = str(literal.this).lower().removeprefix("interval ").split()
    if len(words) % 2:
        return None
    total = 0
    for number, unit in zip(words[::2], words[1::2], strict=True):
        micros = _UNITS.get(unit.removesuffix("s"))
        if micros is None or not number.isdigit():
            return None
        total += int(number) * micros
    return total
