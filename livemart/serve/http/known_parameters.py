"""Refuses parameters of a query that nothing reads, and those that come twice; reads times.

Used by every path of the API. A misspelled `limits=5` that is passed over looks like an answer to
the question that was meant. The pages take any: links of others add what they like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, get_args, get_origin

from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from starlette.requests import Request

from livemart.epoch import parse_moment
from livemart.errors import nearest
from livemart.serve.http.problems import ProblemError

# pydantic's own takes a number for seconds since 1970, and cuts digits beyond microseconds.
Moment = Annotated[datetime, BeforeValidator(parse_moment)]


async def refuse_unread(request: Request) -> None:
    """Refuse a request whose query has an unknown parameter, or one twice that is no list.

    On the event loop: a thread would be for nothing, and requests would wait for it.

    Raises:
        ProblemError: PARAMETER_UNKNOWN, PARAMETER_REPEATED.
    """
    route = request.scope.get("route")
    if request.url.query and isinstance(route, APIRoute):
        refuse_others(request, parameters_of(route))


def parameters_of(route: APIRoute) -> dict[str, bool]:
    """Return the parameters that a path reads, and whether each may come several times."""
    return {
        field.alias: any(get_origin(kind) is list for kind in (hint, *get_args(hint)))
        for field in route.dependant.query_params
        for hint in (field.field_info.annotation,)
    }


def refuse_others(request: Request, parameters: Mapping[str, bool]) -> None:
    """Refuse a request whose query has a parameter besides these.

    Args:
        request: what was asked.
        parameters: those that are read, and whether each may come several times.

    Raises:
        ProblemError: PARAMETER_UNKNOWN, PARAMETER_REPEATED.
    """
    names = Counter(name for name, _ in request.query_params.multi_items())
    for name, times in names.items():
        if name not in parameters:
            offered = ", ".join(parameters) or "none"
            raise ProblemError(
                "PARAMETER_UNKNOWN",
                f"{name[:80]}: no such parameter{nearest(name[:80], parameters)}; known: {offered}",
            )
        if times > 1 and not parameters[name]:
            raise ProblemError("PARAMETER_REPEATED", f"{name}: found {times} times; send it once")
