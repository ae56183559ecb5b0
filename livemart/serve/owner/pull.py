"""Answers pull queries about one restaurant, from the newest snapshot.

Used by the owner's page and by integrators. A foreign restaurant is refused before anything is
read, with the same words as an unknown one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from starlette.requests import Request
from starlette.responses import Response

from livemart.serve.auth.callers import Caller, CallerOf
from livemart.serve.http.encoded_slashes import read_id
from livemart.serve.http.forms import JSON, answer, choose_form, etag_of, is_known
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.schemas import Shape, answer_shapes
from livemart.serve.live.readings import Readings
from livemart.serve.live.snapshot_json import snapshot_head, to_json
from livemart.serve.owner import schemas
from livemart.serve.owner.answers import Answers, BodyKind, RestaurantBodies
from livemart.serve.owner.bodies import restaurants_of
from livemart.serve.owner.facts import WINDOWS
from livemart.store.snapshot_view import SnapshotView


def known_window(window: str) -> str:
    """Return the name of a window if there is one of it.

    Raises:
        ProblemError: WINDOW_UNKNOWN.
    """
    if window not in WINDOWS:
        offered = ", ".join(WINDOWS)
        detail = f"window must be one of {offered}; found {window[:80]}"
        raise ProblemError("WINDOW_UNKNOWN", detail)
    return window


class WindowLength(StrEnum):
    """The window that figures are of; all of `WINDOWS`."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "168h"

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # Generators of clients name the members so; "1h" is no name.
        return {**handler(schema), "x-enum-varnames": [member.name for member in cls]}


WindowName = Annotated[
    WindowLength,
    BeforeValidator(known_window),
    Query(description="Length of the window that ends at `as_of`."),
]
RestaurantId = Annotated[
    str,
    BeforeValidator(read_id),
    Path(min_length=1, max_length=200, description="As in the data."),
]

restaurants_router = APIRouter(prefix="/v1/restaurants", tags=["restaurants"])


@restaurants_router.get(
    "", operation_id="list_restaurants", responses=answer_shapes(schemas.Restaurants)
)
async def restaurants(request: Request, caller: CallerOf) -> Response:
    """List the restaurants that you may see."""
    choose_form(request, [JSON])

    def read(view: SnapshotView) -> bytes:
        listed = {"restaurants": restaurants_of(view, caller.tenants)}
        return to_json({**snapshot_head(view.published), **listed})

    body = await part_of(request, Readings).read(("restaurants", caller.tenants), read)
    scope = "all" if caller.tenants is None else sorted(caller.tenants)
    return answer(request, body.value, etag_of(body.published, "restaurants", scope))


def _add_pull(kind: BodyKind, shape: type[Shape], about: str) -> None:
    """Add the route that answers with one kind of body of a restaurant and a window."""
    name = kind.replace("-", "_")

    async def pull(
        request: Request,
        caller: CallerOf,
        restaurant_id: RestaurantId,
        window: WindowName = WindowLength.DAY,
    ) -> Response:
        choose_form(request, [JSON])
        bodies, hours = await find_restaurant(request, caller, restaurant_id, kind), WINDOWS[window]
        etag = etag_of(bodies.facts.published, kind, restaurant_id, hours)
        body = b"" if is_known(request, etag) else bodies.get(kind, hours)
        return answer(request, body, etag)

    restaurants_router.add_api_route(
        f"/{{restaurant_id}}/{kind}",
        pull,
        name=name,
        operation_id=f"pull_{name}",
        description=about,
        responses=answer_shapes(shape),
    )


_add_pull(
    "metrics",
    schemas.Metrics,
    "Orders, sales, average order and customers of a window, beside the window before.",
)
_add_pull(
    "top-dishes",
    schemas.TopDishes,
    "The three dishes sold most in a window, and their share of its sales.",
)
_add_pull(
    "trend",
    schemas.Trend,
    "The course of a window in points of 5 minutes or an hour, and of the same a week before.",
)


async def find_restaurant(
    request: Request, caller: Caller, restaurant_id: str, kind: BodyKind
) -> RestaurantBodies:
    """Return the bodies of a restaurant that the caller may see.

    A foreign one is refused before anything is read: exactly as an unknown one.

    Raises:
        ProblemError: RESTAURANT_UNKNOWN, NOTHING_PUBLISHED.
    """
    bodies = None
    if caller.may_see(restaurant_id):
        bodies = await part_of(request, Answers).restaurant(restaurant_id, kind)
    if bodies is None:
        raise unknown_restaurant()
    return bodies


def unknown_restaurant() -> ProblemError:
    """Return the one answer for a restaurant that is unknown, and for one that is not theirs."""
    return ProblemError("RESTAURANT_UNKNOWN", "no restaurant of this id exists that you may see")
