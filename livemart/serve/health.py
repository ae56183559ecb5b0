"""Tells those who watch the server how it is: alive, fresh, measured.

Measurements are for admins alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter
from prometheus_client.core import Metric
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from livemart.intervals import format_interval, is_late
from livemart.land.lag import SourceLag, WatchedLags
from livemart.serve.auth.callers import AdminOf, Guard
from livemart.serve.http.measurements import Measurements, measurement
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.run_measurements import run_measurements
from livemart.serve.http.schemas import Alive, Ready, answer_shapes
from livemart.serve.live.hub import Hub
from livemart.serve.live.run_watch import RunWatch
from livemart.settings import Settings

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_OF_SOURCES: Mapping[str, tuple[str, Callable[[SourceLag, datetime], float | None]]] = {
    "waiting_records": (
        "Records that were delivered and are in no micro-batch yet, where known.",
        lambda lag, _: lag.records,
    ),
    "waiting_files": (
        "Files that were delivered and are in no micro-batch yet.",
        lambda lag, _: lag.files,
    ),
    "waiting_bytes": ("Bytes of these files.", lambda lag, _: lag.size),
    "waiting_seconds": ("How long the oldest of what waits has waited.", SourceLag.waits_s),
    "up": ("1 if the source could be looked at, else 0.", lambda lag, _: not lag.away),
    "look_age_seconds": ("How long ago a record log last answered.", SourceLag.look_age_s),
}

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
    hub, now = part_of(request, Hub), part_of(request, Guard).now()
    run = await run_in_threadpool(part_of(request, RunWatch).newest)
    lags = await run_in_threadpool(part_of(request, WatchedLags).lags)
    of_now = [*hub_measurements(hub, now), *run_measurements(run), *lag_measurements(lags, now)]
    text = part_of(request, Measurements).render(of_now)
    return Response(text, headers={"Cache-Control": "no-store"}, media_type=_TEXT)


def hub_measurements(hub: Hub, now: datetime) -> Iterator[Metric]:
    """Yield the measurements of the streams, the store and its newest snapshot."""
    yield measurement("streams", "Open streams.", hub.clients)
    yield measurement("store_up", "1 if the store answers, else 0.", hub.failure is None)
    published = hub.published
    number = 0 if published is None else published.snapshot_id
    yield measurement("snapshot_id", "Newest published snapshot.", number)
    text = "Time since a pass said which snapshot is the newest."
    staleness_s = 0 if published is None else hub.staleness_s(published, now)
    yield measurement("staleness_seconds", text, staleness_s)
    failures = published.strategy_failures if published else None
    yield measurement(
        "strategy_failures",
        "Snapshots in which an error of livemart made a model full.",
        {(model,): count for model, count in (failures or {}).items()},
        "model",
    )
    ages = {}
    if published is not None:
        for model in published.set_aside or ():
            _, refreshed_at = published.refreshed_at(model) or (0, None)
            age = None if refreshed_at is None else now - refreshed_at
            ages[(model,)] = math.nan if age is None else age.total_seconds()
    text = "Age of the rows of a model that is set aside; NaN if it never had any."
    yield measurement("model_age_seconds", text, ages, "model")


def lag_measurements(lags: Mapping[str, SourceLag], now: datetime) -> Iterator[Metric]:
    """Yield the measurements of what waits for each source; what is not known is left out."""
    for name, (text, value_of) in _OF_SOURCES.items():
        values = {(source,): value_of(lag, now) for source, lag in lags.items()}
        yield measurement(f"source_{name}", text, values, "source")
    yield measurement(
        "source_partition_waiting_records",
        "Records that wait in each partition of a record log.",
        {
            (source, partition): count
            for source, lag in lags.items()
            for partition, count in lag.partitions.items()
        },
        "source",
        "partition",
    )
