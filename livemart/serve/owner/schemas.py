"""Describes the bodies about restaurants, for the OpenAPI document.

Used by the routes of `owner`; tests hold the bodies to it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from livemart.serve.http.schemas import OfModel, Shape, SnapshotHead

_COMPARED = "The value of the window up to `compared_until`."
_LAST_WEEK = "The value of the same time as `compared`, 168 hours before."


class Restaurant(Shape):
    """Whose figures these are."""

    id: str
    name: str | None
    time_zone: str | None = Field(description="IANA name; all times here are UTC.")
    currency_code: str | None


WindowState = TypeAliasType("WindowState", Literal["provisional", "final"])


class WindowBody(Shape, title="Window"):
    """A half-open interval that ends at `as_of`."""

    hours: Literal[1, 24, 168]
    start: datetime
    end: datetime
    compared_until: datetime = Field(
        description="End of the last 5 minutes that are over: figures are compared up to it."
    )
    state: WindowState
    since: datetime | None = Field(description="First order, if the data is younger than start.")


class _OfWindow(SnapshotHead, OfModel):
    restaurant: Restaurant
    window: WindowBody


class Count(Shape):
    """A number now, and in the window before; null is unknown."""

    value: int | None
    previous: int | None
    compared: int | None = Field(description=_COMPARED)
    last_week: int | None = Field(description=_LAST_WEEK)


class Amount(Shape):
    """Money as a decimal string now, and in the window before; null is unknown."""

    value: str | None
    previous: str | None
    compared: str | None = Field(description=_COMPARED)
    last_week: str | None = Field(description=_LAST_WEEK)


class MetricsOfWindow(Shape):
    """The tiles."""

    order_count: Count
    sales_amount: Amount
    average_order_value: Amount
    unique_customers: Count


class Dish(Shape):
    """A dish of the three sold most; `share` is its part of the sales of the window."""

    rank: int
    dish_id: str
    name: str
    quantity_sold: int
    sales_amount: str
    share: str | None


class Point(Shape):
    """Orders and sales from `start` until the next point; null before the first order.

    An hour is one of the restaurant's clock; of the first and of the last one of a window it may
    hold a part.
    """

    start: datetime
    order_count: int | None
    sales_amount: str | None


class Metrics(_OfWindow):
    """The tiles of a window."""

    metrics: MetricsOfWindow


class TopDishes(_OfWindow):
    """The dishes sold most in a window."""

    top_dishes: list[Dish]


class Trend(_OfWindow):
    """The course of a window, and of the same span one week before."""

    step_minutes: Literal[5, 60]
    points: list[Point]
    last_week: list[Point]


class LateCorrections(Shape):
    """The changes by arrivals of the last hour in finished panes of the window."""

    order_count: int = Field(description="Different orders; the same version twice is no change.")
    start: datetime | None
    end: datetime | None
    panes: list[datetime]


class StateBody(_OfWindow, title="State"):
    """The data of an event `snapshot`."""

    server_time: datetime
    checked_at: datetime | None = Field(
        description="When this snapshot was last known to be the newest."
    )
    metrics: MetricsOfWindow
    top_dishes: list[Dish]
    trend_point: Point
    late_corrections: LateCorrections | None


class NamedRestaurant(Shape):
    """A restaurant in a list."""

    id: str
    name: str | None


class Restaurants(SnapshotHead):
    """The restaurants that a caller may see."""

    restaurants: list[NamedRestaurant]
