"""Finds which stored rows a window against the clock holds, as the clock moves.

Used by signed change and by the region.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from livemart.plan.reading.scopes import Query
from livemart.plan.relations.clock import ClockBound
from livemart.plan.relations.gate import Gate
from livemart.plan.relations.generate import Generate
from livemart.plan.relations.join import Join
from livemart.plan.relations.monotone import base_time
from livemart.plan.relations.project import Compared, Filter
from livemart.plan.relations.relation import Expr, Relation, Renaming, RowByRow, Scan
from livemart.plan.relations.spelled_rows import InlineRows
from livemart.plan.sql.written import sql_of


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of one occurrence that a comparison with the clock may pass when the clock moves.

    `column` is a stored time. A row may matter if it is within `margin` microseconds of the
    interval between the old and the new value of `threshold` (SQL over the column `__clock__`).
    The lower end belongs to the interval (`has_lower_end`), or the higher one. The window is above
    the threshold (`is_lower`), or below it.
    """

    occurrence: int
    column: str
    margin: int
    clock_occurrence: int
    clock_column: str
    threshold: str
    has_lower_end: bool
    is_lower: bool


# Any of these, each of which asks for all of its bounds.
Windows = tuple[tuple[Slice, ...], ...]


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The facts outside the query that decide whether a strategy holds.

    `is_append_only`: nothing that it reads ever goes, and no clock moves; `reads_values`: see
    `Plan.parameters`; `names_zones`: see `names_zone`.
    """

    is_append_only: bool = False
    reads_values: bool = False
    names_zones: bool = False


def slices_of(query: Query) -> tuple[tuple[Slice, ...], set[int]]:
    """Return the slices of all clock bounds, and the clocks with a bound that has none.

    When the clock moves by five minutes, it passes the orders of two slices of five minutes. One
    slice enters at the window's end, the other leaves it a day later.

    >>> show(
    ...     "select shop_id, count(*) as orders from raw.orders"
    ...     " where ordered_at < (select as_of from livemart.clock)"
    ...     " and ordered_at >= (select as_of from livemart.clock) - interval 24 hours group by 1",
    ...     change="clock",
    ... )
    signed: shop_id key, orders count_rows
    passed: orders with ordered_at between the old and the new __clock__
    passed: orders with ordered_at between the old and the new __clock__ - interval 24 hours
    """
    slices: dict[Slice, None] = {}
    unsliced: set[int] = set()
    for relation in query.top.walk():
        if not isinstance(relation, Compared):
            continue
        for bound in relation.bounds:
            sites = relation.source.trace(bound.time)
            located = [_slice(bound, scan, expr) for scan, expr in sites or ()]
            if sites is None or None in located or _may_be_spelled(relation.source, bound.time):
                unsliced.add(bound.occurrence)
                continue
            slices |= dict.fromkeys(filter(None, located))
    return tuple(slices), unsliced


def _may_be_spelled(relation: Relation, time: Expr) -> bool:
    """Return True if a value may be one that the query spells out: no stored row says when."""
    if isinstance(relation, InlineRows):
        return True
    if isinstance(relation, Gate | Generate):
        return _may_be_spelled(relation.source, time)
    if isinstance(relation, Join):
        side = relation.side(time)
        sides = {"left": [relation.left], "right": [relation.right]}.get(side, relation.inputs)
        return any(_may_be_spelled(source, time) for source in sides)
    if isinstance(relation, RowByRow):
        return any(_may_be_spelled(source, over) for source, (over,) in relation.below(time))
    return False


def windows_of(top: Relation) -> Mapping[int, Windows]:
    """Return, by occurrence, the windows that hold all rows that a result can depend on.

    Only filters that a stored row meets before any other row are asked: a row that is outside,
    before the change and after it, changes nothing. An occurrence that is also read without such a
    filter is left out.

    An order that came in for last week affects no shop:

    >>> show(
    ...     "select shop_id, max(amount) as most from raw.orders"
    ...     " where date_trunc('hour', ordered_at) >="
    ...     " (select as_of from livemart.clock) - interval 24 hours group by 1",
    ...     change="orders",
    ... )
    region: shop_id
    within: ordered_at, 1:00:00 off at most, from __clock__ - interval 24 hours
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    """
    windows_by_scan: dict[int, dict[tuple[Slice, ...], None]] = {}
    seen: set[tuple[int, tuple[tuple[int, str], ...]]] = set()

    def descend(relation: Relation, bounds: tuple[tuple[ClockBound, Expr], ...]) -> None:
        place = (id(relation), tuple((id(bound), sql_of(time)) for bound, time in bounds))
        if place in seen:
            return
        seen.add(place)
        if isinstance(relation, Scan):
            located = [_slice(bound, relation, time) for bound, time in bounds]
            window = tuple(end for end in located if end is not None)
            windows_by_scan.setdefault(relation.occurrence, {})[window] = None
        elif isinstance(relation, Filter):
            bounds_here = tuple((bound, bound.time) for bound in relation.bounds)
            descend(relation.source, bounds + bounds_here)
        elif isinstance(relation, Renaming):
            over = tuple((bound, relation.over_source(time)) for bound, time in bounds)
            descend(relation.source, over)
        else:
            for source in relation.inputs:
                descend(source, ())

    descend(top, ())
    return {
        occurrence: tuple(windows)
        for occurrence, windows in windows_by_scan.items()
        if () not in windows
    }


def _slice(bound: ClockBound, scan: Scan, time: Expr) -> Slice | None:
    base = base_time(time)
    if base is None:
        return None
    name, margin = base
    return Slice(
        scan.occurrence,
        name,
        margin,
        bound.occurrence,
        bound.clock_column,
        sql_of(bound.threshold),
        bound.has_lower_end,
        bound.is_lower,
    )
