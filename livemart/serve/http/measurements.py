"""Measures the work of the server, for Prometheus.

Used by the envelope and by streams; `/metrics` shows it. The keys are those of the log events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


def measurement(
    name: str,
    text: str,
    values: float | Mapping[Any, float | None],
    *labels: str,
    kind: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily,
) -> Metric:
    """Return a measurement of this moment.

    Args:
        name: without that of the program.
        text: of its help.
        values: one value, or some by the tuple of their labels' values; what is None is left out.
        labels: their names.
        kind: a counter is a sum that some process keeps.
    """
    family = kind(f"livemart_{name}", text, labels=labels)
    for key, value in values.items() if isinstance(values, Mapping) else [((), values)]:
        if value is not None:
            family.add_metric(key, float(value))
    return family


@dataclass(frozen=True, slots=True)
class _Collected(Collector):
    metrics: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        return self.metrics


class Measurements:
    """The measurements that one server adds up, in a separate registry."""

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
        gauge = partial(Gauge, registry=self._registry)
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

    def render(self, of_now: Iterable[Metric] = ()) -> bytes:
        """Return the text that Prometheus reads; `of_now`: what is measured for it alone."""
        return generate_latest(_Collected([*self._registry.collect(), *of_now]))
