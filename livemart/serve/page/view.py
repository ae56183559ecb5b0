"""Builds the page of a restaurant and a window: every figure and time as text.

Used by the page's templates. The bodies are those of the API, so that page, pull and push say the
same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from livemart.intervals import is_late
from livemart.serve.live.snapshot_json import to_text
from livemart.serve.page import text as page_text
from livemart.serve.page.text import LocalFormat

_Body = Mapping[str, Any]
_Texts = dict[str, Any]

_TILES = (
    (
        "order_count",
        "Orders",
        "Orders placed in the window. Canceled orders and orders in another currency are left out.",
    ),
    (
        "sales_amount",
        "Sales",
        "The sum of all counted orders, as charged to the guests. Canceled orders are left out.",
    ),
    ("average_order_value", "Average order", "Sales divided by orders, rounded half up."),
    (
        "unique_customers",
        "Customers",
        "Different customers who ordered in the window; who orders twice counts once.",
    ),
)
_SALES, _AVERAGE = "sales_amount", "average_order_value"
_MONEY = frozenset({_SALES, _AVERAGE})


def build_view(state: _Body, trend: _Body, *, interval: timedelta) -> _Texts:
    """Return the texts of the page of a window, by the names of its template.

    `span`: up to the newest data; `base`: says what `tiles` are compared with; `checked_at`,
    `data_at`: ISO 8601, UTC; `caption`: says what the chart of `points` shows.

    Args:
        state: the body of the state stream for the window.
        trend: the body of `/trend` for the same window and snapshot.
        interval: time between two refreshes; data as old as three of them is stale.
    """
    restaurant, window, metrics = state["restaurant"], state["window"], state["metrics"]
    local = LocalFormat.of(restaurant["time_zone"], restaurant["currency_code"])
    hours = int(window["hours"])
    words = page_text.window_words(hours)
    published_at = datetime.fromisoformat(state["published_at"])
    # A snapshot is as old as the last time it was known to be the newest.
    checked_at = max(published_at, datetime.fromisoformat(state["checked_at"]))
    if state.get("refreshed_at"):
        # A model behind these figures is set aside: they are as old as its rows.
        checked_at = min(checked_at, datetime.fromisoformat(state["refreshed_at"]))
    server_time = datetime.fromisoformat(state["server_time"])
    as_of = datetime.fromisoformat(state["as_of"]) if state["as_of"] else published_at
    # The clock runs to the end of the pane: data cannot be newer than its publication.
    data_at = min(as_of, published_at)
    passed = server_time - checked_at
    start, end = datetime.fromisoformat(window["start"]), datetime.fromisoformat(window["end"])
    compared = local.span(start, datetime.fromisoformat(window["compared_until"]))
    has_day = end - start > timedelta(hours=1)
    points = _points(trend, local, late_pane_starts(state), data_at, has_day=has_day)
    return {
        "name": restaurant["name"] or restaurant["id"],
        "local": local,
        "words": words,
        "span": local.span(start, max(start, data_at)),
        "base": f"Changes: {compared} beside the same time one week before.",
        "since": local.moment(datetime.fromisoformat(window["since"])) if window["since"] else None,
        "note": f"No orders in the last {words}." if metrics["order_count"]["value"] == 0 else None,
        "checked_at": to_text(checked_at),
        "data_at": to_text(data_at),
        "data_clock": local.clock(data_at),
        "age": page_text.age(passed),
        "is_stale": is_late(passed, interval),
        "tiles": [_tile(*tile, metrics=metrics, local=local) for tile in _TILES],
        "dishes": _dishes(state["top_dishes"], metrics["sales_amount"]["value"], local),
        "caption": _caption(trend, points, local),
        "points": points,
        "late": late_sentence(state, local),
    }


def late_pane_starts(state: _Body) -> list[datetime]:
    """Return the starts of the panes that late orders changed, ascending."""
    late = state.get("late_corrections")
    return sorted(datetime.fromisoformat(pane) for pane in late["panes"]) if late else []


def late_sentence(state: _Body, local: LocalFormat) -> str | None:
    """Return `3 late orders changed 11:00 to 11:35`, or None.

    A day is named unless all of it is of the day in which the window ends.
    """
    panes = late_pane_starts(state)
    if not panes:
        return None
    orders = int(state["late_corrections"]["order_count"])
    noun = "order" if orders == 1 else "orders"
    first, end = panes[0], panes[-1] + timedelta(minutes=5)
    window_end = datetime.fromisoformat(state["window"]["end"])
    if local.is_same_day(first, window_end - timedelta(milliseconds=1)):
        span = f"{local.clock(first)} to {local.clock(end)}"
    else:
        span = local.span(first, end, has_date=window_end - first > timedelta(days=6))
    return f"{page_text.count(orders)} late {noun} changed {span}."


def _tile(key: str, title: str, definition: str, *, metrics: _Body, local: LocalFormat) -> _Texts:
    """Return a figure with its definition and its change on last week."""
    figure = metrics[key]
    change = page_text.change(_decimal(figure["compared"]), _decimal(figure["last_week"]))
    value = _average(metrics) if key == _AVERAGE else _decimal(figure["value"])
    text = (
        local.money(value)
        if key in _MONEY
        else page_text.count(None if value is None else int(value))
    )
    return {"key": key, "title": title, "definition": definition, "value": text, "change": change}


def _average(metrics: _Body) -> Decimal | None:
    """Return the average order before it is rounded, where it can be known.

    Yen lose their hundredths in rounding: 47.4954, which is 47.50 by then, would become 48.
    """
    orders, sales = _decimal(metrics["order_count"]["value"]), _decimal(metrics[_SALES]["value"])
    return sales / orders if sales is not None and orders else _decimal(metrics[_AVERAGE]["value"])


def _dishes(dishes: Sequence[_Body], all_sales: object, local: LocalFormat) -> list[_Texts]:
    """Return the top dishes; `share` is the whole percent of all sales, None if unknown."""
    return [
        {
            "rank": int(dish["rank"]),
            "name": dish["name"] or dish["dish_id"],
            "sold": page_text.count(int(dish["quantity_sold"])),
            "sales": local.money(_decimal(dish["sales_amount"])),
            "share": page_text.percent(_decimal(dish["sales_amount"]), _decimal(all_sales)),
        }
        for dish in dishes
    ]


def _points(
    trend: _Body,
    local: LocalFormat,
    late_panes: Sequence[datetime],
    data_at: datetime,
    *,
    has_day: bool,
) -> list[_Texts]:
    """Return the points of the trend: texts, and the raw amounts that the chart is drawn from.

    `part`: why it is less than its pane or hour of the clock, None if it is all of it.
    """
    step = timedelta(minutes=trend["step_minutes"])
    rows = []
    for point, before in zip(trend["points"], trend["last_week"], strict=True):
        started_at = datetime.fromisoformat(point["start"])
        rows.append(
            {
                "started_at": point["start"],
                "label": local.moment(started_at) if has_day else local.clock(started_at),
                "orders": page_text.count(point["order_count"]),
                "sales": local.money(_decimal(point["sales_amount"])),
                "last_week": local.money(_decimal(before["sales_amount"])),
                "sales_amount": point["sales_amount"],
                "last_week_amount": before["sales_amount"],
                "part": _part(started_at, step, data_at, local),
                "is_late": any(started_at <= pane < started_at + step for pane in late_panes),
            }
        )
    return rows


def _part(
    started_at: datetime, step: timedelta, data_at: datetime, local: LocalFormat
) -> str | None:
    """Return `so far` of a point that goes on at `data_at`, `part` of an hour that began before."""
    passed = local.minutes(started_at) if step == timedelta(hours=1) else timedelta(0)
    if started_at - passed + step > data_at:
        return "so far"
    return "part" if passed else None


def _caption(trend: _Body, points: Sequence[_Texts], local: LocalFormat) -> str:
    """Say which whole point is the highest, beside the same one a week before."""
    step = "5 minutes" if trend["step_minutes"] == 5 else "hour"
    amounts = [_decimal(point["sales_amount"]) or Decimal(0) for point in points]
    if not any(amount > 0 for amount in amounts):
        return "Nothing was sold in this window."
    whole = [
        (amount, point)
        for amount, point in zip(amounts, points, strict=True)
        if point["part"] is None and amount > 0
    ]
    if not whole:
        return f"Sales per {step}; nothing was sold in a whole one yet."
    # The first of equal ones.
    _, most = max(whole, key=lambda entry: entry[0])
    before = (
        f"{most['last_week']} in the same {step} last week"
        if most["last_week_amount"] is not None
        else "last week is not known yet"
    )
    return f"Sales per {step}, the most at {most['label']} with {most['sales']}; {before}."


def _decimal(value: object) -> Decimal | None:
    return None if value is None else Decimal(str(value))
