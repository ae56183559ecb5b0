"""examples/flights, a project on real data: delivered, built, refreshed week by week, verified."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from examples.flights import deliver
from examples.flights.run import run
from tests.integration.flights_oracle import Departures, FlightsOracle
from tests.project_run import ProjectRun, copy_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AIRPORTS = ("EWR", "JFK", "LGA")
HOURS = (1, 24, 168)


@pytest.fixture(scope="module")
def data() -> Path:
    return deliver.fetch()


@pytest.mark.extended
def test_every_flight_is_delivered_once_in_the_week_of_its_report(
    data: Path, tmp_path: Path
) -> None:
    everything = deliver.Delivery(tmp_path, data)
    delivered = [everything.deliver_week(week) for week in range(1, deliver.LAST_WEEK + 1)]

    keys: Counter[tuple[Any, ...]] = Counter()
    for week in range(1, deliver.LAST_WEEK + 1):
        path = tmp_path / "flights" / f"reported-week-{week:02d}.jsonl"
        records = [json.loads(line) for line in path.read_text().splitlines()]
        keys.update(tuple(record[name] for name in deliver.FLIGHT_KEY) for record in records)
        reported = [datetime.fromisoformat(record["reported_at"]) for record in records]
        assert reported == sorted(reported)
        assert deliver.week_ends_at(week - 1) <= reported[0]
        assert reported[-1] < deliver.week_ends_at(week)

    assert sum(delivered) == 336_776
    assert len(keys) == 336_776
    assert max(keys.values()) == 1


@pytest.mark.extended
def test_a_flight_in_summer_time_is_scheduled_in_utc(data: Path) -> None:
    # New York is four hours behind UTC in summer, five in winter.
    reports = deliver.read_reports(data)

    found = {
        report.scheduled_at
        for report in reports
        if (report.row["month"], report.row["day"], report.row["sched_dep_time"])
        == ("7", "1", "500")
    }

    assert found == {datetime(2013, 7, 1, 9, tzinfo=UTC)}


@pytest.mark.extended
def test_a_delivery_repeated_changes_nothing_and_another_under_its_name_is_refused(
    data: Path, tmp_path: Path
) -> None:
    delivery = deliver.Delivery(tmp_path, data)
    delivery.deliver_week(1)
    path = tmp_path / "flights" / "reported-week-01.jsonl"
    before = path.stat()

    delivery.deliver_week(1)

    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert sorted(path.parent.iterdir()) == [path]
    path.write_text("{}\n")
    with pytest.raises(deliver.DeliveryError, match="other content"):
        delivery.deliver_week(1)


def test_a_download_with_another_content_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / deliver.SDIST
    archive.write_bytes(b"not it")

    with pytest.raises(deliver.DeliveryError) as caught:
        deliver.fetch(tmp_path)

    assert hashlib.sha256(b"not it").hexdigest() in str(caught.value)


@pytest.mark.extended
def test_a_week_refreshed_equals_its_batch_and_plain_python(
    spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    flights = ProjectRun(spark, tmp_path / "run", deliver.PROJECT)
    delivery = deliver.Delivery(flights.landing, data)
    delivery.deliver_dimensions()
    for week, bring_up in ((1, flights.build), (2, flights.refresh)):
        delivery.deliver_week(week)
        # The week's last instant: `as_of` is the end of the pane that holds it.
        flights.now = deliver.week_ends_at(week) - timedelta(microseconds=1)
        bring_up()

    _assert_answers(data, flights.warehouse.root, weeks=2)


@pytest.mark.processes
@pytest.mark.extended
@pytest.mark.timeout(3600)
def test_ten_refreshes_week_by_week_equal_their_batch_and_plain_python(
    data: Path, tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    copy_project(deliver.PROJECT, tmp_path / "project")

    exit_code = run(
        tmp_path / "landing", warehouse, weeks=12, first=2, project=tmp_path / "project"
    )

    assert exit_code == 0
    _assert_answers(data, warehouse, weeks=12)


def _assert_answers(data: Path, warehouse: Path, *, weeks: int) -> None:
    as_of = _rows(warehouse / "livemart" / "clock")[0]["as_of"]
    assert as_of == deliver.week_ends_at(weeks)
    oracle = FlightsOracle(data, reported_before=deliver.week_ends_at(weeks))
    _assert_departures(warehouse, oracle, as_of)
    _assert_top_destinations(warehouse, oracle, as_of)
    _assert_trend(warehouse, oracle, as_of)


def _assert_departures(warehouse: Path, oracle: FlightsOracle, as_of: datetime) -> None:
    rows = _rows(warehouse / "flights_mart" / "airport_departures")
    actual = {(row["airport_id"], row["window_hours"]): _departures(row) for row in rows}

    expected = {
        (airport, hours): oracle.departures(airport, hours, as_of)
        for airport in AIRPORTS
        for hours in HOURS
    }

    assert all(departures.flight_count > 0 for departures in expected.values())
    assert actual == expected
    assert len(rows) == len(expected)


def _assert_top_destinations(warehouse: Path, oracle: FlightsOracle, as_of: datetime) -> None:
    rows = _rows(warehouse / "flights_mart" / "airport_top_destinations")
    rows.sort(key=lambda row: (row["airport_id"], row["window_hours"], row["destination_rank"]))

    expected = [
        (airport, hours, rank, *destination)
        for airport in AIRPORTS
        for hours in HOURS
        for rank, destination in enumerate(oracle.top_destinations(airport, hours, as_of), 1)
    ]

    keys = ("airport_id", "window_hours", "destination_rank")
    columns = (*keys, "destination_id", "destination_name", "flight_count")
    assert [tuple(row[name] for name in columns) for row in rows] == expected


def _assert_trend(warehouse: Path, oracle: FlightsOracle, as_of: datetime) -> None:
    """The last day, and the same day a week earlier, which late reports have changed since."""
    rows = _rows(warehouse / "flights_mart" / "airport_departure_trend")
    days = [as_of - timedelta(days=1), as_of - timedelta(days=8)]
    actual = {
        (row["airport_id"], row["hour_started_at"]): tuple(
            row[name]
            for name in ("flight_count", "seat_count", "flight_count_24h", "miles_flown_168h")
        )
        for row in rows
        if any(day <= row["hour_started_at"] < day + timedelta(days=1) for day in days)
    }

    expected = {}
    for airport, hour in actual:
        one, day, week = (oracle.hour(airport, hour, hours) for hours in HOURS)
        figures = (one.flight_count, one.seat_count, day.flight_count, week.miles_flown)
        expected[airport, hour] = figures

    assert len(actual) > 50
    assert actual == expected


def _departures(row: dict[str, Any]) -> Departures:
    return Departures(**{name: row[name] for name in Departures.__dataclass_fields__})


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_dataset().to_table().to_pylist()
    return rows
