"""Measures how runs go: failures, landed records, how long micro-batches take.

Used by `Measurements`. The values are those of the runner's notes, so sums go on from run to run,
whichever process measures them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from livemart.state.last_run import LastRun, NewestBatch, RunTotals


class RunMeasurements(Collector):
    """The measurements of the newest run, and of all runs; unknown ones are left out."""

    def __init__(self) -> None:
        self.run: LastRun | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the measurements, for the registry."""
        if self.run is not None:
            yield from _of_run(self.run)
            yield from _of_totals(self.run.totals)
            if self.run.newest is not None:
                yield from _of_newest(self.run.newest)


def _of_run(run: LastRun) -> Iterator[Metric]:
    failure = run.failure
    yield _gauge("last_run_success", "0 after a failure, until a run succeeds.", failure is None)
    yield _time("last_run_begin_timestamp_seconds", "When the newest run began.", run.began_at)
    if run.ended_at is not None:
        text = "When the newest run ended; no sample while it goes on, or if it was killed."
        yield _time("last_run_end_timestamp_seconds", text, run.ended_at)
    memory = run.memory
    yield _labeled(
        "memory_bytes",
        "Memory that the newest run held after its newest micro-batch, by process.",
        "process",
        {"python": memory.python_bytes, "java": memory.jvm_bytes} if memory else {},
    )
    if failure is not None:
        family = GaugeMetricFamily(
            "livemart_last_failure_timestamp_seconds",
            "When the newest run failed, while nothing has succeeded since; by code and model.",
            labels=["code", "model"],
        )
        for model in failure.models or ("",):
            family.add_metric([failure.code, model], failure.at.timestamp())
        yield family


def _of_totals(totals: RunTotals) -> Iterator[Metric]:
    for name, text, value in (
        ("batches", "Micro-batches that ended with a snapshot.", totals.batches),
        ("batch_duration_seconds", "Seconds that these took, added up.", totals.batch_seconds),
        ("failed_batches", "Micro-batches that failed, each attempt.", totals.failed_batches),
    ):
        yield CounterMetricFamily(f"livemart_{name}", text, value=value)
    for name, text, values in (
        ("landed_rows", "Rows that landed, by source.", totals.landed),
        ("dead_letters", "Records that could not land, by source.", totals.dead_letters),
    ):
        counter = CounterMetricFamily(f"livemart_{name}", text, labels=["source"])
        for source, value in values.items():
            counter.add_metric([source], value)
        yield counter


def _of_newest(newest: NewestBatch) -> Iterator[Metric]:
    text = "Seconds of the newest micro-batch that ended with a snapshot."
    yield _gauge("last_batch_duration_seconds", text, newest.took_s)
    text = "1 if the newest snapshot is held back by a failing test, else 0."
    yield _gauge("snapshot_held", text, newest.is_held)
    standings = newest.tests.items()
    yield _labeled(
        "failed_tests",
        "Data tests of the newest snapshot that do not pass, by status: fail, error, warn.",
        "status",
        {
            status: sum(standing.status == status for _, standing in standings)
            for status in ("fail", "error", "warn")
        },
    )
    yield _labeled(
        "test_failed_rows",
        "Rows of the newest snapshot that fail a data test, by test.",
        "test",
        {test: standing.rows for test, standing in standings if standing.rows is not None},
    )
    yield _labeled(
        "drifted_fields",
        "Fields of the newest snapshot that differ from the declared columns, by source.",
        "source",
        newest.drift,
    )


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"livemart_{name}", text, value=float(value))


def _time(name: str, text: str, at: datetime) -> Metric:
    return _gauge(name, text, at.timestamp())


def _labeled(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"livemart_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
