"""Pull queries about one restaurant: one answer from the newest snapshot."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from livemart.serve.auth.callers import Caller, current_caller, is_unknown_token
from livemart.serve.http import schemas
from livemart.serve.http.encoded_slashes import read_id
from livemart.serve.http.forms import JSON, answer, choose_form, etag_of, is_known
from livemart.serve.http.parts import serving_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.owner.bodies import restaurants_of, snapshot_head
from livemart.serve.owner.facts import WINDOWS
from livemart.serve.owner.restaurant import Kind, RestaurantBodies, to_json

Window = Annotated[
    Literal["1h", "24h", "168h"], Query(description="Length of the window that ends at `as_of`.")
]
_MOST_CHARACTERS = 200
RestaurantId = Annotated[
    str,
    BeforeValidator(read_id),
    Path(min_length=1, max_length=_MOST_CHARACTERS, description="As in the data."),
]
_QUERIES = {f"window={window}".encode(): window for window in WINDOWS}


async def require_caller(request: Request) -> Caller:
    """Return who asks; on the event loop, since it asks only memory.

    A token that nobody knows may be a moment old: it is looked for once more.
    """
    if is_unknown_token(request):
        await serving_of(request).hub.learn_tokens()
    return current_caller(request)


CallerOf = Annotated[Caller, Depends(require_caller)]


class _DashboardRoute(APIRoute):
    """Reads what a dashboard asks for by hand: half of such a request is FastAPI's reading of it.

    Whatever is not exactly a known window and nothing else goes the usual way, errors included.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        usual, endpoint = super().get_route_handler(), self.endpoint

        async def handle(request: Request) -> Response:
            window = _QUERIES.get(request.scope["query_string"])
            restaurant_id = read_id(request.path_params.get("restaurant_id", ""))
            if window is None or not 1 <= len(restaurant_id) <= _MOST_CHARACTERS:
                return await usual(request)
            caller = await require_caller(request)
            found: Response = await endpoint(request, caller, restaurant_id, window)
            return found

        return handle


router = APIRouter(prefix="/v1/restaurants", tags=["restaurants"], route_class=_DashboardRoute)


@router.get("", responses=schemas.answers(schemas.Restaurants))
async def restaurants(request: Request, caller: CallerOf) -> Response:
    """List the restaurants that you may see."""
    choose_form(request, [JSON])
    serving = serving_of(request)

    def read(view: Any) -> bytes:
        found = {"restaurants": restaurants_of(view, caller.tenants)}
        return to_json({**snapshot_head(view.published), **found})

    found = await serving.answers.read(("restaurants", caller.tenants), read)
    scope = "all" if caller.is_admin else sorted(caller.restaurants)
    return answer(request, found.value, etag_of(found.published, "restaurants", scope))


@router.get("/{restaurant_id}/metrics", responses=schemas.answers(schemas.Metrics))
async def metrics(
    request: Request, caller: CallerOf, restaurant_id: RestaurantId, window: Window = "24h"
) -> Response:
    """Orders, sales, average order and customers of a window, beside the window before."""
    return await _answer(request, caller, restaurant_id, "metrics", WINDOWS[window])


@router.get("/{restaurant_id}/top-dishes", responses=schemas.answers(schemas.TopDishes))
async def top_dishes(
    request: Request, caller: CallerOf, restaurant_id: RestaurantId, window: Window = "24h"
) -> Response:
    """The three dishes sold most in a window, and their share of its sales."""
    return await _answer(request, caller, restaurant_id, "top-dishes", WINDOWS[window])


@router.get("/{restaurant_id}/trend", responses=schemas.answers(schemas.Trend))
async def trend(
    request: Request, caller: CallerOf, restaurant_id: RestaurantId, window: Window = "24h"
) -> Response:
    """The course of a window in points of 5 minutes or an hour, and of the same a week before."""
    return await _answer(request, caller, restaurant_id, "trend", WINDOWS[window])


def require_own(caller: Caller, restaurant_id: str) -> None:
    """Refuse a foreign restaurant before anything is read: exactly as an unknown one.

    Raises:
        ProblemError: RESTAURANT_UNKNOWN.
    """
    if not caller.may_see(restaurant_id):
        raise unknown_restaurant()


def unknown_restaurant() -> ProblemError:
    """Return the one answer for a foreign and for an unknown id."""
    return ProblemError("RESTAURANT_UNKNOWN", "no restaurant of this id is yours to see")


async def find_restaurant(
    request: Request, caller: Caller, restaurant_id: str, kind: Kind
) -> RestaurantBodies:
    """Return what a body is made from, of a restaurant that the caller may see.

    Raises:
        ProblemError: RESTAURANT_UNKNOWN, NOTHING_PUBLISHED.
    """
    require_own(caller, restaurant_id)
    found = await serving_of(request).answers.restaurant(restaurant_id, kind)
    if found is None:
        raise unknown_restaurant()
    return found


async def _answer(
    request: Request, caller: Caller, restaurant_id: str, kind: Kind, hours: int
) -> Response:
    choose_form(request, [JSON])
    found = await find_restaurant(request, caller, restaurant_id, kind)
    etag = etag_of(found.facts.published, kind, restaurant_id, hours)
    body = b"" if is_known(request, etag) else found.get(kind, hours)
    return answer(request, body, etag)
