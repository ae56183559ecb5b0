"""Makes the answers to the owner's questions, as JSON values: one shape for pull, push and page.

Used by `RestaurantBodies` and the page. Counts are numbers, money is a decimal string, times are
UTC; null is "unknown", never zero.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal

from livemart.serve.live.snapshot_json import Body, age_of, json_text, snapshot_head, to_text
from livemart.serve.owner.clock_hours import PANE_STEP, TrendGrid, step_of, trend_grid
from livemart.serve.owner.facts import METRICS, OWNER_MODELS, WINDOWS, Facts, first_window
from livemart.serve.owner.late_orders import LateOrders
from livemart.serve.owner.panes import Panes
from livemart.store.snapshot_view import SnapshotView

_WEEK = timedelta(hours=168)
_SHARE = Decimal("0.0001")
# More digits than any sum of decimals has.
_EXACT = Context(prec=80, rounding=ROUND_HALF_UP)
# name: whether the model has it for the window before, too.
_METRICS = {
    "order_count": True,
    "sales_amount": True,
    "average_order_value": True,
    "unique_customers": False,
}


def trend_json(facts: Facts, panes: Panes, hours: int) -> str:
    """Return the trend of a window as JSON; `panes` are two weeks of the snapshot of `facts`.

    These are hundreds of points, which take a quarter of the time as text.

    A point is 5 minutes of a window of 1 hour, else an hour of the restaurant's clock. The first
    and the last hour may be in the window in part: the points of a window add up to its metrics.
    Without orders a point is zero; before the restaurant's first order, null.
    """

    def points(back: timedelta) -> str:
        return ",".join(_points(panes, _grid(facts, hours, back), facts))

    step = step_of(hours) // timedelta(minutes=1)
    head = json_text({**head_of(facts, hours), "step_minutes": step})
    return f'{head[:-1]},"points":[{points(timedelta())}],"last_week":[{points(_WEEK)}]}}'


def metrics_of(facts: Facts, hours: int) -> Body:
    """Return the tiles of a window from facts that were read."""
    return {**head_of(facts, hours), "metrics": _metrics(facts, hours)}


def top_dishes_of(facts: Facts, hours: int) -> Body:
    """Return the dishes sold most in a window from facts that were read."""
    return {**head_of(facts, hours), "top_dishes": _dishes(facts, hours)}


def state_of(facts: Facts, late: LateOrders, hours: int) -> Body:
    """Return the whole state of a window, but for the server's time, from facts that were read."""
    grid = _grid(facts, hours)
    (point,) = _points(facts.panes, TrendGrid(grid.edges[-2:], grid.texts[-1:]), facts)
    return {
        **head_of(facts, hours),
        "metrics": _metrics(facts, hours),
        "top_dishes": _dishes(facts, hours),
        "trend_point": json.loads(point),
        "late_corrections": _late_corrections(facts, late, hours),
    }


def head_of(facts: Facts, hours: int) -> Body:
    """Return the first members of every body of a restaurant."""
    row = facts.of_window(hours)
    start = facts.as_of - timedelta(hours=hours)
    is_partial = facts.first_pane is not None and facts.first_pane > start
    return {
        "restaurant": {
            "id": facts.restaurant_id,
            "name": row["restaurant_name"],
            "time_zone": row["time_zone"],
            "currency_code": row["currency_code"],
        },
        "window": {
            "hours": hours,
            "start": to_text(start),
            "end": to_text(facts.as_of),
            # The pane that goes on is set beside no finished one.
            "compared_until": to_text(facts.as_of - PANE_STEP),
            # It ends at as_of, and late orders are counted whenever they come.
            "state": "provisional",
            "since": to_text(facts.first_pane) if is_partial else None,
        },
        **snapshot_head(facts.published),
        **age_of(facts.published, *OWNER_MODELS),
    }


def restaurants_of(view: SnapshotView, tenants: frozenset[str] | None) -> list[Body]:
    """Return id and name of each restaurant that a caller may see, in order of name."""
    window = first_window(view, tenants)
    if window is None:
        return []
    rows = view.rows(METRICS, tenants=tenants, equals={"window_hours": WINDOWS[window]})
    restaurants = [
        {"id": _id(row["restaurant_id"]), "name": row["restaurant_name"]}
        for row in rows
        if row["restaurant_id"] is not None
    ]
    return sorted(restaurants, key=lambda one: (str(one["name"]).casefold(), str(one["id"])))


def money(amount: Decimal | None) -> str | None:
    """Return an amount as a plain decimal, never with an exponent."""
    return None if amount is None else format(amount, "f")


def _metrics(facts: Facts, hours: int) -> Body:
    row = facts.of_window(hours)
    # Half a window of orders is no base: a change against it would be a made-up one.
    start = facts.as_of - timedelta(hours=hours)

    def has_base(begin: datetime) -> bool:
        return facts.first_pane is not None and facts.first_pane <= begin

    has_window_before, has_week = has_base(start - timedelta(hours=hours)), has_base(start - _WEEK)
    return {
        name: {
            "value": _value(row[name]),
            "previous": (
                _value(row[f"previous_{name}"]) if has_previous and has_window_before else None
            ),
            # A project may have its own models that compare nothing.
            "compared": _value(row.get(f"compared_{name}")),
            "last_week": _value(row.get(f"last_week_{name}")) if has_week else None,
        }
        for name, has_previous in _METRICS.items()
    }


def _dishes(facts: Facts, hours: int) -> list[Body]:
    sales = facts.of_window(hours)["sales_amount"]

    def share(part: Decimal) -> str | None:
        if not sales:
            return None
        return money(_EXACT.divide(part, sales).quantize(_SHARE, context=_EXACT))

    return [
        {
            "rank": row["dish_rank"],
            "dish_id": _id(row["dish_id"]),
            "name": row["dish_name"],
            "quantity_sold": row["quantity_sold"],
            "sales_amount": money(row["sales_amount"]),
            "share": share(row["sales_amount"]),
        }
        for row in facts.dishes.get(hours, ())
    ]


def _grid(facts: Facts, hours: int, back: timedelta = timedelta(0)) -> TrendGrid:
    start = facts.as_of - timedelta(hours=hours)
    return trend_grid(start, hours, facts.of_window(hours)["time_zone"], back)


def _points(panes: Panes, grid: TrendGrid, facts: Facts) -> list[str]:
    """Return the points as JSON."""
    sums, scale = panes.sums(grid.edges), panes.scale
    # Before the pane of the first order nothing is known.
    first = facts.first_pane
    known_from = len(sums) if first is None else bisect_right(grid.edges, first) - 1
    return [
        f'{{"start":"{text}","order_count":null,"sales_amount":null}}'
        if index < known_from or sums_of_point is None
        else f'{{"start":"{text}","order_count":{sums_of_point[0]},'
        f'"sales_amount":"{_amount(sums_of_point[1], scale)}"}}'
        for index, (text, sums_of_point) in enumerate(zip(grid.texts, sums, strict=True))
    ]


def _amount(units: int, scale: int) -> str:
    """Return an amount in units of `10 ** -scale`, with two digits after the point or more.

    >>> _amount(-1075, 3)
    '-1.075'
    >>> _amount(125, 1)
    '12.50'
    """
    if scale > 2 or units < 0:
        return format(Decimal(units).scaleb(-scale, _EXACT), f".{max(scale, 2)}f")
    # Hundreds of points: whole numbers take a fifth of the time.
    whole, cents = divmod(units * 10 ** (2 - scale), 100)
    return f"{whole}.{cents:02d}"


def _late_corrections(facts: Facts, late: LateOrders, hours: int) -> Body | None:
    """Return how many orders of the last hour changed a finished pane of this window, and which."""
    if late.changes is None:
        return None
    start = facts.as_of - timedelta(hours=hours)
    changes = [change for change in late.changes if start <= change.pane < facts.as_of]
    panes = sorted({change.pane for change in changes})
    return {
        "order_count": len({change.order_id for change in changes}),
        "start": to_text(panes[0]) if panes else None,
        "end": to_text(panes[-1] + PANE_STEP) if panes else None,
        "panes": [to_text(pane) for pane in panes],
    }


def _id(value: object) -> str | None:
    """Return an id as text, also of a project that holds it as a number: a path is text."""
    return None if value is None else str(value)


def _value(value: object) -> object:
    return money(value) if isinstance(value, Decimal) else value
