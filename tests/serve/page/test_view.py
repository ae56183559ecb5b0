"""Where a form may lead to, and what the page says of a body."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from livemart.serve.page.page import _own_path
from livemart.serve.page.view import build_view
from tests.serve.page.template_names import by_name

_POINT = {"order_count": 2, "sales_amount": "10.00"}
_NOTHING = {"order_count": 0, "sales_amount": "0.00"}
_MUCH = {"order_count": 9, "sales_amount": "99.00"}
_STARTS = ("12:35", "13:00", "14:00")
_NO_BASE = {"previous": None, "compared": None, "last_week": None}


@pytest.mark.parametrize("path", ["/", "/r/r17?window=24h", "/r/S%C3%A3o", "/models"])
def test_a_form_leads_to_a_path_of_this_site(path: str) -> None:
    assert _own_path(path) == path


@pytest.mark.parametrize(
    "path",
    ["", "r/r17", "//evil.example", "/\\evil.example", "/\t/evil.example", "https://evil.example",
     "/\n/evil.example", "javascript:alert(1)", "/r/x\r\nSet-Cookie: a=b"],
)  # fmt: skip
def test_a_form_never_leads_elsewhere(path: str) -> None:
    assert _own_path(path) == "/"


def test_data_are_never_newer_than_their_publication() -> None:
    view = _view()

    assert (view.data_clock, view.age, view.is_stale) == ("14:31", "12 s ago", False)


def test_data_of_a_replay_are_as_old_as_its_as_of() -> None:
    view = _view(as_of="2013-01-01T00:00:00Z")

    assert view.data_at == "2013-01-01T00:00:00Z"


@pytest.mark.parametrize(("server_time", "expected"), [("46:06", False), ("46:07", True)])
def test_data_as_old_as_three_intervals_are_stale(server_time: str, expected: bool) -> None:
    view = _view(server_time=f"2026-03-02T14:{server_time}Z")

    assert view.is_stale is expected


def test_data_that_are_known_to_be_the_newest_are_not_stale() -> None:
    view = _view(server_time="2026-03-02T15:10:00Z", checked_at="2026-03-02T15:09:30Z")

    assert (view.age, view.is_stale) == ("30 s ago", False)


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        (None, None),
        ({"order_count": 0, "panes": []}, None),
        (
            {"order_count": 1, "panes": ["2026-03-02T11:00:00Z"]},
            "1 late order changed 11:00 to 11:05.",
        ),
        (
            {"order_count": 3, "panes": ["2026-03-02T11:30:00Z", "2026-03-02T11:00:00Z"]},
            "3 late orders changed 11:00 to 11:35.",
        ),
        (
            {"order_count": 1, "panes": ["2026-03-01T20:00:00Z"]},
            "1 late order changed Sun 20:00 to 20:05.",
        ),
        (
            {"order_count": 2, "panes": ["2026-03-02T11:00:00Z", "2026-03-01T20:00:00Z"]},
            "2 late orders changed Sun 20:00 to Mon 11:05.",
        ),
        (
            {"order_count": 1, "panes": ["2026-02-23T20:00:00Z"]},
            "1 late order changed Mon 23 Feb 20:00 to 20:05.",
        ),
    ],
)
def test_late_orders_are_told_with_what_they_changed(
    late: dict[str, Any] | None, expected: str | None
) -> None:
    view = _view(late_corrections=late)

    assert view.late == expected


def test_the_point_that_holds_a_late_pane_is_marked() -> None:
    late = {"order_count": 1, "panes": ["2026-03-02T14:25:00Z"]}

    view = _view(late_corrections=late)

    assert [row.is_late for row in view.points] == [False, False, True]


@pytest.mark.parametrize(
    ("currency", "sales", "average", "expected"),
    [
        # 47.4954...: by way of 47.50 it would be 48.
        ("JPY", "2089.80", "47.50", "JP¥47"),
        ("EUR", "2089.80", "47.50", "€47.50"),
        ("JPY", "2090.00", "47.50", "JP¥48"),
        # Not known from sales and orders: what the model says.
        ("EUR", None, "47.50", "€47.50"),
        ("EUR", None, None, "\u2013"),
    ],
)
def test_an_average_is_rounded_once(
    currency: str, sales: str | None, average: str | None, expected: str
) -> None:
    values = {"order_count": 44, "sales_amount": sales, "average_order_value": average}
    metrics = {name: {"value": value, **_NO_BASE} for name, value in values.items()}
    metrics["unique_customers"] = {"value": 40, **_NO_BASE}
    place = {"id": "r18", "name": "Sakura", "time_zone": "Asia/Tokyo", "currency_code": currency}

    view = _view(metrics=metrics, restaurant=place)

    assert [tile.value for tile in view.tiles if tile.key == "average_order_value"] == [expected]


def test_an_unknown_point_is_a_dash() -> None:
    view = _view(points=[{"order_count": None, "sales_amount": None}, _POINT, _POINT])

    row = view.points[0]
    assert (row.orders, row.sales, row.sales_amount) == ("\u2013", "\u2013", None)


@pytest.mark.parametrize(
    ("points", "last_week", "expected"),
    [
        (
            [_POINT, {"order_count": 1, "sales_amount": "12.50"}, _POINT],
            [_POINT, {"order_count": 1, "sales_amount": "11.00"}, _POINT],
            "Sales per hour, the most at Mon 13:00 with €12.50; €11.00 in the same hour last week.",
        ),
        # More was sold in parts of hours, which are compared with nothing.
        (
            [_MUCH, _POINT, _MUCH],
            [{"order_count": None, "sales_amount": None}] * 3,
            "Sales per hour, the most at Mon 13:00 with €10.00; last week is not known yet.",
        ),
        (
            [_POINT, _NOTHING, _POINT],
            [_POINT] * 3,
            "Sales per hour; nothing was sold in a whole one yet.",
        ),
        ([_NOTHING] * 3, [_POINT] * 3, "Nothing was sold in this window."),
    ],
)
def test_the_caption_compares_an_hour_with_the_same_hour(
    points: list[dict[str, Any]], last_week: list[dict[str, Any]], expected: str
) -> None:
    view = _view(points=points, last_week=last_week)

    assert view.caption == expected


def test_the_span_ends_with_the_data_and_what_is_compared_with_the_last_whole_pane() -> None:
    view = _view()

    assert view.span == "Mon 12:35 to 14:31"
    assert view.base == "Changes: Mon 12:35 to 14:30 beside the same time one week before."


@pytest.mark.parametrize(
    ("published_at", "expected"),
    [
        ("2026-03-02T14:31:07Z", ["part", None, "so far"]),
        # A replay: the hour was over when it was published, but the window ends within it.
        ("2026-03-02T15:10:00Z", ["part", None, "so far"]),
    ],
)
def test_hours_that_are_not_whole_say_why(published_at: str, expected: list[str | None]) -> None:
    view = _view(published_at=published_at)

    assert [row.part for row in view.points] == expected


@pytest.mark.parametrize(
    ("published_at", "expected"),
    [("2026-03-02T14:58:07Z", [None, "so far"]), ("2026-03-02T15:00:00Z", [None, None])],
)
def test_an_hour_is_whole_once_it_is_over(published_at: str, expected: list[str | None]) -> None:
    window = {
        "hours": 2,
        "start": "2026-03-02T13:00:00Z",
        "end": "2026-03-02T15:00:00Z",
        "compared_until": "2026-03-02T14:55:00Z",
        "state": "provisional",
        "since": None,
    }
    starts = ["13:00", "14:00"]

    view = _view(
        starts=starts, window=window, as_of="2026-03-02T15:00:00Z", published_at=published_at
    )

    assert [row.part for row in view.points] == expected


@pytest.mark.parametrize(
    ("compared", "last_week", "expected"),
    [
        ("9", "10", "down 10.0\u00a0% on last week"),
        ("10", "10", "unchanged from last week"),
        ("10", None, "no comparison"),
    ],
)
def test_a_change_is_that_of_what_is_compared_customers_included(
    compared: str, last_week: str | None, expected: str
) -> None:
    names = ("order_count", "sales_amount", "average_order_value", "unique_customers")
    # With the pane that goes on there are more by now, and in the window before there were fewer.
    figure = {"value": "11", "previous": "1", "compared": compared, "last_week": last_week}

    view = _view(metrics=dict.fromkeys(names, figure))

    assert [tile.change.text for tile in view.tiles] == [expected] * 4


def _view(
    *,
    points: list[dict[str, Any]] | None = None,
    last_week: list[dict[str, Any]] | None = None,
    starts: Sequence[str] = _STARTS,
    **changed: Any,
) -> Any:
    """Return the page of a window of two hours that ends at 14:35 in Lisbon."""
    state: dict[str, Any] = {
        "restaurant": {
            "id": "r17",
            "name": "Taverna Azul",
            "time_zone": "Europe/Lisbon",
            "currency_code": "EUR",
        },
        "window": {
            "hours": 2,
            "start": "2026-03-02T12:35:00Z",
            "end": "2026-03-02T14:35:00Z",
            "compared_until": "2026-03-02T14:30:00Z",
            "state": "provisional",
            "since": None,
        },
        "as_of": "2026-03-02T14:35:00Z",
        "snapshot_id": 4211,
        "published_at": "2026-03-02T14:31:07Z",
        "checked_at": "2026-03-02T14:31:07Z",
        "server_time": "2026-03-02T14:31:19Z",
        "metrics": {
            name: {"value": 1, **_NO_BASE}
            for name in ("order_count", "sales_amount", "average_order_value", "unique_customers")
        },
        "top_dishes": [],
        "late_corrections": None,
    } | changed
    trend = {
        "step_minutes": 60,
        "points": _placed(points or [_POINT] * len(starts), "2026-03-02", starts),
        "last_week": _placed(last_week or [_POINT] * len(starts), "2026-02-23", starts),
    }
    return by_name(build_view(state, trend, interval=timedelta(minutes=5)))


def _placed(points: list[dict[str, Any]], day: str, starts: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"start": f"{day}T{start}:00Z", **point}
        for start, point in zip(starts, points, strict=True)
    ]
