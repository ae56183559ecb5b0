"""Measurements are of one server and of now: what is no more is not shown any longer."""

from __future__ import annotations

from livemart.serve.http.measurements import Measurements


def lines(measurements: Measurements) -> set[str]:
    text = measurements.render().decode()
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


def test_a_source_that_waits_no_more_is_gone_and_what_is_not_known_is_no_zero() -> None:
    known = {
        "waiting_records": 5.0,
        "waiting_files": None,
        "waiting_bytes": None,
        "waiting_seconds": 2.5,
        "up": 1.0,
        "look_age_seconds": 0.0,
    }
    measurements = Measurements()

    measurements.show_waiting({"orders": known}, {("orders", "0"): 5})
    shown = lines(measurements)
    measurements.show_waiting({}, {})

    assert 'livemart_source_waiting_records{source="orders"} 5.0' in shown
    assert 'livemart_source_partition_waiting_records{partition="0",source="orders"} 5.0' in shown
    assert not any(line.startswith("livemart_source_waiting_files") for line in shown)
    assert not any("orders" in line for line in lines(measurements))


def test_a_model_that_never_had_rows_has_no_age() -> None:
    measurements = Measurements()

    measurements.show_models({"totals": 60.0, "new": None}, {"totals": 2})
    shown = lines(measurements)
    measurements.show_models({}, {})

    assert 'livemart_model_age_seconds{model="totals"} 60.0' in shown
    assert 'livemart_model_age_seconds{model="new"} NaN' in shown
    assert 'livemart_strategy_failures{model="totals"} 2.0' in shown
    assert not any("model=" in line for line in lines(measurements))
