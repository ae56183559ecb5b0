"""Tells those who watch the server how it is: alive, fresh, measured.

Measurements are for admins alone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from livemart.intervals import format_interval, is_late
from livemart.land.lag import WatchedLags
from livemart.serve.auth.callers import AdminOf, Guard
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.schemas import Alive, Ready, answer_shapes
from livemart.serve.live.hub import Hub
from livemart.serve.live.run_watch import RunWatch
from livemart.settings import Settings

_TEXT = "text/plain; version=0.0.4; charset=utf-8"

health_router = APIRouter(tags=["health"])


@health_router.get(
    "/healthz", operation_id="check_alive", responses=answer_shapes(Alive, has_304=False)
)
async def healthz() -> JSONResponse:
    """Answer 200 as long as the server lives."""
    return JSONResponse({"status": "alive"}, headers={"Cache-Control": "no-store"})


@health_router.get(
    "/readyz", operation_id="check_ready", responses=answer_shapes(Ready, has_304=False)
)
async def readyz(request: Request) -> JSONResponse:
    """Answer 200 if the pipeline was heard of within three intervals, else 503 and why."""
    hub, guard = part_of(request, Hub), part_of(request, Guard)
    interval = part_of(request, Settings).every
    published = hub.published
    if hub.failure is not None:
        raise ProblemError("STORE_UNREACHABLE", "the serving store does not answer")
    if not guard.book.is_trusted:
        raise ProblemError("STORE_UNREACHABLE", "tokens cannot be read: no caller is admitted")
    if published is None:
        raise ProblemError("NOTHING_PUBLISHED", "the first snapshot is not published yet")
    staleness = hub.age(published, guard.now())
    if is_late(staleness, interval):
        age = format_interval(timedelta(seconds=round(staleness.total_seconds())))
        every = format_interval(interval)
        raise ProblemError(
            "STORE_STALE",
            f"the pipeline has been silent for {age}; it should report every {every}",
        )
    body: dict[str, Any] = {
        "status": "ready",
        "snapshot_id": published.snapshot_id,
        "staleness_s": hub.staleness_s(published, guard.now()),
    }
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


@health_router.get(
    "/metrics",
    name="metrics",
    operation_id="pull_measurements",
    responses=answer_shapes(None, {"text/plain": {"schema": {"type": "string"}}}, has_304=False),
)
async def measurements_text(request: Request, _: AdminOf) -> Response:
    """Measurements for Prometheus, to admins; as long as no token was made, to this machine."""
    measurements = part_of(request, Measurements)
    now = part_of(request, Guard).now()
    _measure(measurements, part_of(request, Hub), now)
    measurements.of_runs.run = await run_in_threadpool(part_of(request, RunWatch).newest)
    lags = await run_in_threadpool(part_of(request, WatchedLags).lags)
    measurements.show_waiting(
        {
            source: {
                "waiting_records": lag.records,
                "waiting_files": lag.files,
                "waiting_bytes": lag.size,
                "waiting_seconds": lag.waits_s(now),
                "up": 0 if lag.away else 1,
                "look_age_seconds": lag.look_age_s(now),
            }
            for source, lag in lags.items()
        },
        {
            (source, partition): count
            for source, lag in lags.items()
            for partition, count in lag.partitions.items()
        },
    )
    return Response(measurements.render(), headers={"Cache-Control": "no-store"}, media_type=_TEXT)


def _measure(measurements: Measurements, hub: Hub, now: datetime) -> None:
    measurements.streams.set(hub.clients)
    measurements.store_up.set(0 if hub.failure is not None else 1)
    if hub.published is not None:
        measurements.snapshot_id.set(hub.published.snapshot_id)
        measurements.staleness.set(hub.staleness_s(hub.published, now))
        ages: dict[str, float | None] = {}
        for model in hub.published.set_aside or ():
            _, refreshed_at = hub.published.refreshed_at(model) or (0, None)
            ages[model] = None if refreshed_at is None else (now - refreshed_at).total_seconds()
        measurements.show_models(ages, hub.published.strategy_failures or {})
