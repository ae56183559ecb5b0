"""Measures the work of the server, for Prometheus.

Used by the envelope and by streams; `/metrics` shows it. The keys are those of the log events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from livemart.serve.http.run_measurements import RunMeasurements

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

_OF_SOURCES = {
    "waiting_records": "Records that were delivered and are in no micro-batch yet, where known.",
    "waiting_files": "Files that were delivered and are in no micro-batch yet.",
    "waiting_bytes": "Bytes of these files.",
    "waiting_seconds": "How long the oldest of what waits has waited.",
    "up": "1 if the source could be looked at, else 0.",
    "look_age_seconds": "How long ago a record log last answered.",
}


class Measurements:
    """The measurements of one server, in a separate registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "livemart_requests", "Answers.", ["route", "status"], registry=self._registry
        )
        self._durations = Histogram(
            "livemart_request_duration_seconds",
            "Time to the end of an answer, streams left out.",
            ["route"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._events = Counter(
            "livemart_events", "Events sent to push clients.", ["route"], registry=self._registry
        )
        self.of_runs = RunMeasurements()
        self._registry.register(self.of_runs)
        gauge = partial(Gauge, registry=self._registry)
        self.streams = gauge("livemart_streams", "Open streams.")
        self.waiting_pulls = gauge("livemart_waiting_pulls", "Pulls that wait for their turn.")
        self.waiting_requests = gauge(
            "livemart_waiting_requests", "Requests that wait for their caller's turn to begin."
        )
        self._refused = Counter(
            "livemart_refused_pulls",
            "Pulls that were refused since their caller has taken its share.",
            ["reason"],
            registry=self._registry,
        )
        self.connections = gauge("livemart_connections", "Open connections.")
        self._ended = Counter(
            "livemart_connections_ended",
            "Connections that the server ended or refused, for being slow or too many.",
            ["reason"],
            registry=self._registry,
        )
        self.snapshot_id = gauge("livemart_snapshot_id", "Newest published snapshot.")
        self.staleness = gauge(
            "livemart_staleness_seconds", "Time since a pass said which snapshot is the newest."
        )
        self.store_up = gauge("livemart_store_up", "1 if the store answers, else 0.")
        self._strategy_failures = gauge(
            "livemart_strategy_failures",
            "Snapshots in which an error of livemart made a model full.",
            ["model"],
        )
        self._model_ages = gauge(
            "livemart_model_age_seconds",
            "Age of the rows of a model that is set aside; NaN if it never had any.",
            ["model"],
        )
        self._of_sources = {
            name: gauge(f"livemart_source_{name}", text, ["source"])
            for name, text in _OF_SOURCES.items()
        }
        self._of_partitions = gauge(
            "livemart_source_partition_waiting_records",
            "Records that wait in each partition of a record log.",
            ["source", "partition"],
        )

    def show_waiting(
        self,
        waiting: Mapping[str, Mapping[str, float | None]],
        partitions: Mapping[tuple[str, str], int],
    ) -> None:
        """Show how much waits for each source.

        Args:
            waiting: values by source and measurement; what is None is left out.
            partitions: records by source and partition.
        """
        for name, gauge in self._of_sources.items():
            gauge.clear()
            for source, values in waiting.items():
                if (value := values[name]) is not None:
                    gauge.labels(source).set(value)
        self._of_partitions.clear()
        for labels, count in partitions.items():
            self._of_partitions.labels(*labels).set(count)

    def show_models(
        self, ages: Mapping[str, float | None], strategy_failures: Mapping[str, int]
    ) -> None:
        """Show the models that are set aside, and those whose strategy failed."""
        self._model_ages.clear()
        for model, age in ages.items():
            self._model_ages.labels(model).set(math.nan if age is None else age)
        self._strategy_failures.clear()
        for model, count in strategy_failures.items():
            self._strategy_failures.labels(model).set(count)

    def answered(self, route: str, status: int, took_s: float) -> None:
        """Count an answer."""
        self._requests.labels(route, str(status)).inc()
        if not route.endswith("/stream"):
            self._durations.labels(route).observe(took_s)

    def sent(self, route: str, events: int = 1) -> None:
        """Count events of a stream."""
        self._events.labels(route).inc(events)

    def refused(self, reason: str) -> None:
        """Count a pull beyond the share of its caller: for `at_once` or `rows`."""
        self._refused.labels(reason).inc()

    def ended(self, reason: str) -> None:
        """Count a connection that the server did not want any more."""
        self._ended.labels(reason).inc()

    def render(self) -> bytes:
        """Return the text that Prometheus reads."""
        return generate_latest(self._registry)
