"""Counts and times what the server does, for Prometheus.

Used by the envelope and by streams; `/metrics` shows it. The keys are those of the log events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

_WAITING = {
    "livemart_source_waiting_files": "Files that were delivered and are in no micro-batch yet.",
    "livemart_source_waiting_bytes": "Bytes of these files.",
    "livemart_source_waiting_seconds": "How long the oldest of these files has waited.",
}


class Measurements:
    """The measurements of one server, in a registry of their own."""

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
        self.streams = Gauge("livemart_streams", "Open streams.", registry=self._registry)
        self.snapshot_id = Gauge(
            "livemart_snapshot_id", "Newest published snapshot.", registry=self._registry
        )
        self.staleness = Gauge(
            "livemart_staleness_seconds",
            "Time since a pass said which snapshot is the newest.",
            registry=self._registry,
        )
        self.store_up = Gauge(
            "livemart_store_up", "1 if the store answers, else 0.", registry=self._registry
        )

        self._strategy_failures = Gauge(
            "livemart_strategy_failures",
            "Snapshots in which an error of livemart made a model full.",
            ["model"],
            registry=self._registry,
        )
        self._model_ages = Gauge(
            "livemart_model_age_seconds",
            "Age of the rows of a model that is set aside; NaN if it never had any.",
            ["model"],
            registry=self._registry,
        )

        self._waiting = {
            name: Gauge(
                f"livemart_source_waiting_{name}", text, ["source"], registry=self._registry
            )
            for name, text in {
                "files": "Files that were delivered and are in no micro-batch yet.",
                "bytes": "Bytes of these files.",
                "seconds": "How long the oldest of these files has waited.",
            }.items()
        }

    def show_waiting(self, waiting: Mapping[str, Mapping[str, float]]) -> None:
        """Show what waits for each source: files, bytes, seconds."""
        for name, gauge in self._waiting.items():
            gauge.clear()
            for source, values in waiting.items():
                gauge.labels(source).set(values[name.rpartition("_")[2]])

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

    def render(self) -> bytes:
        """Return the text that Prometheus reads."""
        return generate_latest(self._registry)
