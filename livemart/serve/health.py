"""Tells those who watch the server how it is: alive, fresh, measured.

Measurements are for admins alone. Those of runs are the runner's notes, so sums go on from run to
run, whichever process measures them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from fastapi import APIRouter
from prometheus_client.core import CounterMetricFamily, Metric
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from livemart.intervals import format_interval, is_late
from livemart.land.lag import SourceLag, WatchedLags
from livemart.serve.auth.callers import AdminOf, Guard
from livemart.serve.http.measurements import Measurements, measurement
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.schemas import Alive, Ready, answer_shapes
from livemart.serve.live.hub import Hub
from livemart.serve.live.run_watch import RunWatch
from livemart.settings import Settings
from livemart.state.last_run import LastRun, NewestBatch, RunTotals

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
_total = partial(measurement, kind=CounterMetricFamily)


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


def run_measurements(run: LastRun | None) -> Iterator[Metric]:
    """Yield the measurements of the newest run, and of all runs; unknown ones are left out."""
    if run is not None:
        yield from _of_run(run)
        yield from _of_totals(run.totals)
        if run.newest is not None:
            yield from _of_newest(run.newest)


def _of_run(run: LastRun) -> Iterator[Metric]:
    failure, memory = run.failure, run.memory
    text = "0 after a failure, until a run succeeds."
    yield measurement("last_run_success", text, failure is None)
    text = "When the newest run began."
    yield measurement("last_run_begin_timestamp_seconds", text, run.began_at.timestamp())
    if run.ended_at is not None:
        text = "When the newest run ended; no sample while it goes on, or if it was killed."
        yield measurement("last_run_end_timestamp_seconds", text, run.ended_at.timestamp())
    yield measurement(
        "memory_bytes",
        "Memory that the newest run held after its newest micro-batch, by process.",
        {("python",): memory.python_bytes, ("java",): memory.jvm_bytes} if memory else {},
        "process",
    )
    if failure is not None:
        yield measurement(
            "last_failure_timestamp_seconds",
            "When the newest run failed, while nothing has succeeded since; by code and model.",
            {(failure.code, model): failure.at.timestamp() for model in failure.models or ("",)},
            "code",
            "model",
        )


def _of_totals(totals: RunTotals) -> Iterator[Metric]:
    yield _total("batches", "Micro-batches that ended with a snapshot.", totals.batches)
    yield _total(
        "batch_duration_seconds", "Seconds that these took, added up.", totals.batch_seconds
    )
    yield _total(
        "failed_batches", "Micro-batches that failed, each attempt.", totals.failed_batches
    )
    for name, text, values in (
        ("landed_rows", "Rows that landed, by source.", totals.landed),
        ("dead_letters", "Records that could not land, by source.", totals.dead_letters),
    ):
        yield _total(name, text, {(source,): value for source, value in values.items()}, "source")


def _of_newest(newest: NewestBatch) -> Iterator[Metric]:
    text = "Seconds of the newest micro-batch that ended with a snapshot."
    yield measurement("last_batch_duration_seconds", text, newest.took_s)
    text = "1 if the newest snapshot is held back by a failing test, else 0."
    yield measurement("snapshot_held", text, newest.is_held)
    standings = newest.tests.items()
    yield measurement(
        "failed_tests",
        "Data tests of the newest snapshot that do not pass, by status: fail, error, warn.",
        {
            (status,): sum(standing.status == status for _, standing in standings)
            for status in ("fail", "error", "warn")
        },
        "status",
    )
    yield measurement(
        "test_failed_rows",
        "Rows of the newest snapshot that fail a data test, by test.",
        {(test,): standing.rows for test, standing in standings},
        "test",
    )
    yield measurement(
        "drifted_fields",
        "Fields of the newest snapshot that differ from the declared columns, by source.",
        {(source,): count for source, count in newest.drift.items()},
        "source",
    )
