"""Whether the server lives, whether its answers are fresh, and its measurements."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from livemart.intervals import format_interval
from livemart.serve.auth.callers import current_caller, is_from_this_machine
from livemart.serve.http import schemas
from livemart.serve.http.parts import Serving, serving_of
from livemart.serve.http.problems import ProblemError

_TEXT = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(tags=["health"])


@router.get("/healthz", responses={200: {"description": "The server lives."}})
async def healthz() -> JSONResponse:
    """Answer 200 as long as the server lives."""
    return JSONResponse({"status": "alive"}, headers={"Cache-Control": "no-store"})


@router.get("/readyz", responses=schemas.answers(schemas.Ready, has_304=False))
async def readyz(request: Request) -> JSONResponse:
    """Answer 200 if the pipeline was heard of within two intervals, else 503 and why."""
    serving = serving_of(request)
    published = serving.hub.published
    if serving.hub.failure is not None:
        raise ProblemError("STORE_UNREACHABLE", "the serving store does not answer")
    if not serving.book.is_trusted:
        raise ProblemError("STORE_UNREACHABLE", "tokens cannot be read: nobody is let in")
    if published is None:
        raise ProblemError("NOTHING_PUBLISHED", "the first snapshot is not published yet")
    staleness = serving.now() - serving.hub.checked(published)
    if staleness > 2 * serving.settings.every:
        age = format_interval(timedelta(seconds=round(staleness.total_seconds())))
        every = format_interval(serving.settings.every)
        raise ProblemError(
            "STORE_STALE",
            f"nothing was heard of the pipeline for {age}; it tells every {every} what is newest",
        )
    body: dict[str, Any] = {
        "status": "ready",
        "snapshot_id": published.snapshot_id,
        "staleness_s": round(staleness.total_seconds(), 3),
    }
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


@router.get(
    "/metrics",
    responses=schemas.answers(None, {"text/plain": {"schema": {"type": "string"}}}, has_304=False),
)
async def metrics(request: Request) -> Response:
    """Measurements for Prometheus, to this machine and to admins."""
    serving = serving_of(request)
    try:
        caller = current_caller(request)
    except ProblemError as problem:
        if problem.status != 401 or not is_from_this_machine(request):
            raise
    else:
        if not caller.is_admin:
            raise ProblemError("NOT_FOUND", "no such path; /openapi.json lists all")
    _look(serving)
    return Response(
        serving.measurements.render(), headers={"Cache-Control": "no-store"}, media_type=_TEXT
    )


def _look(serving: Serving) -> None:
    measurements, published = serving.measurements, serving.hub.published
    measurements.streams.set(serving.hub.clients)
    measurements.store_up.set(0 if serving.hub.failure is not None else 1)
    if published is not None:
        measurements.snapshot_id.set(published.snapshot_id)
        staleness = serving.now() - serving.hub.checked(published)
        measurements.staleness.set(staleness.total_seconds())
