"""Measurements are of one server and of now: what is no more is not shown any longer."""

from __future__ import annotations

import math

from prometheus_client.core import CounterMetricFamily, Metric

from livemart.serve.http.measurements import Measurements, measurement


def lines(measurements: Measurements, *of_now: Metric) -> set[str]:
    text = measurements.render(of_now).decode()
    return {line for line in text.splitlines() if not line.startswith("#")}


def test_answers_are_counted_by_route_and_streams_are_not_timed() -> None:
    here, other = Measurements(), Measurements()

    here.answered("/v1/models/{name}", 200, 0.02)
    here.answered("/v1/models/{name}", 304, 0.001)
    here.answered("/v1/models/{name}/stream", 200, 3_600.0)
    here.sent("/v1/models/{name}/stream", 3)

    shown = lines(here)
    assert 'livemart_requests_total{route="/v1/models/{name}",status="200"} 1.0' in shown
    assert 'livemart_requests_total{route="/v1/models/{name}/stream",status="200"} 1.0' in shown
    assert 'livemart_request_duration_seconds_count{route="/v1/models/{name}"} 2.0' in shown
    assert not any("duration" in line and "/stream" in line for line in shown)
    assert 'livemart_events_total{route="/v1/models/{name}/stream"} 3.0' in shown
    assert not any("route=" in line for line in lines(other))


def test_values_have_labels_and_what_is_not_known_is_no_zero() -> None:
    known = {("orders", "0"): 5, ("orders", "1"): None, ("new", "0"): math.nan}
    measurements = Measurements()

    shown = lines(measurements, measurement("waiting", "W.", known, "source", "partition"))
    whole = lines(measurements, measurement("batches", "B.", 2, kind=CounterMetricFamily))

    assert {line for line in shown if "waiting{" in line} == {
        'livemart_waiting{partition="0",source="orders"} 5.0',
        'livemart_waiting{partition="0",source="new"} NaN',
    }
    assert "livemart_batches_total 2.0" in whole
    # They are of one text.
    assert not any("waiting{" in line for line in whole)
