"""Measures how runs go: failures, landed records, how long micro-batches take.

Used by `/metrics`. The values are those of the runner's notes, so sums go on from run to run,
whichever process measures them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from prometheus_client.core import CounterMetricFamily, Metric

from livemart.serve.http.measurements import measurement
from livemart.state.last_run import LastRun, NewestBatch, RunTotals

_total = partial(measurement, kind=CounterMetricFamily)


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
