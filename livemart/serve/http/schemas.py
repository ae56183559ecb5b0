"""The shapes of the bodies, for the OpenAPI document; tests hold the bodies to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Problem(_Shape):
    """An answer that is not a success (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str = Field(description="Stable; docs/errors.md has a section on each.")
    detail: str
    instance: str


class Snapshot(_Shape):
    """What every body says of the snapshot it was read from."""

    as_of: datetime | None = Field(description="The one now of the snapshot, UTC.")
    snapshot_id: int
    epoch: str = Field(description="Of the pipeline; ids of snapshots begin anew with another.")
    published_at: datetime


class Restaurant(_Shape):
    """Whose figures these are."""

    id: str
    name: str | None
    time_zone: str | None = Field(description="IANA name; all times here are UTC.")
    currency_code: str | None


class Window(_Shape):
    """A half-open interval that ends at `as_of`."""

    hours: Literal[1, 24, 168]
    start: datetime
    end: datetime
    state: Literal["provisional", "final"]
    since: datetime | None = Field(description="First order, if the data is younger than start.")


class _OfWindow(Snapshot):
    restaurant: Restaurant
    window: Window


class Count(_Shape):
    """A number now, and in the window before; null is unknown."""

    value: int | None
    previous: int | None


class Amount(_Shape):
    """Money as a decimal string now, and in the window before; null is unknown."""

    value: str | None
    previous: str | None


class MetricsOfWindow(_Shape):
    """The tiles."""

    order_count: Count
    sales_amount: Amount
    average_order_value: Amount
    unique_customers: Count


class Dish(_Shape):
    """A dish of the three sold most; `share` is its part of the sales of the window."""

    rank: int
    dish_id: str
    name: str
    quantity_sold: int
    sales_amount: str
    share: str | None


class Point(_Shape):
    """Orders and sales from `start` until the next point; null before the first order."""

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


class LateCorrections(_Shape):
    """What arrivals of the last hour changed in finished panes of the window."""

    order_count: int = Field(description="Different orders; the same version twice is no change.")
    start: datetime | None
    end: datetime | None
    panes: list[datetime]


class State(_OfWindow):
    """The data of an event `snapshot`."""

    server_time: datetime
    checked_at: datetime | None = Field(
        description="When this snapshot was last known to be the newest."
    )
    metrics: MetricsOfWindow
    top_dishes: list[Dish]
    trend_point: Point
    late_corrections: LateCorrections | None


class NamedRestaurant(_Shape):
    """A restaurant in a list."""

    id: str
    name: str | None


class Restaurants(Snapshot):
    """The restaurants that a caller may see."""

    restaurants: list[NamedRestaurant]


class Column(_Shape):
    """A column of a served model."""

    name: str
    type: str = Field(
        description="string, int, bigint, double, boolean, date, timestamp, decimal(p,s), json "
        "or binary"
    )


class Model(_Shape):
    """A served model."""

    name: str
    columns: list[Column]
    key: list[str] = Field(description="Columns that tell rows apart; empty if there are none.")
    tenant_column: str | None


class Models(Snapshot):
    """The served models that a caller may read."""

    models: list[Model]


class Rows(Snapshot):
    """Rows of a served model."""

    model: str
    window: None = Field(default=None, description="A model has rows, not a window.")
    rows: list[dict[str, Any]]
    is_truncated: bool = Field(description="True if `limit` left rows out.")


class Ready(_Shape):
    """The newest snapshot is fresh."""

    status: Literal["ready"]
    snapshot_id: int
    staleness_s: float


_PROBLEMS = {
    400: "The request cannot be read.",
    401: "No token, or one that is not valid.",
    403: "Without tokens only this machine may ask.",
    404: "Unknown, or not yours to see.",
    406: "No form that was asked for is offered.",
    413: "The request is too large.",
    422: "A parameter is wrong.",
    429: "Too many wrong tokens.",
    503: "Nothing is published yet, the store does not answer, or the newest snapshot is old.",
}


def answers(
    shape: type[BaseModel] | None, content: dict[str, Any] | None = None, *, has_304: bool = True
) -> dict[int | str, dict[str, Any]]:
    """Return the answers of an operation, as FastAPI takes them.

    Args:
        shape: of the body of 200 in JSON; None if it has no JSON.
        content: other forms of 200, by media type.
        has_304: the caller may have it already.
    """
    found: dict[int | str, dict[str, Any]] = {200: {"description": "The answer."}}
    if shape is not None:
        found[200]["model"] = shape
    if content:
        found[200]["content"] = content
    if has_304:
        found[304] = {"description": "You have it already."}
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for status, text in _PROBLEMS.items():
        found[status] = {"description": text, "content": {"application/problem+json": schema}}
    return found
