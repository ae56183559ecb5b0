"""Offsets, fractions and the ends of the calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from livemart.land.records.times import day, local_timestamp, parse_timestamp, timestamp
from livemart.land.records.untyped_values import MisfitError


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-03-01T12:00z", "2026-03-01T12:00:00+00:00"),
        ("2026-03-01T12:00:00 +05", "2026-03-01T07:00:00+00:00"),
        ("2026-03-01T12:00:00+0530", "2026-03-01T06:30:00+00:00"),
        ("2026-03-01T12:00:00-18:00", "2026-03-02T06:00:00+00:00"),
        ("2026-03-01T12:00:00,25", "2026-03-01T12:00:00.250000+00:00"),
        ("2026-03-01T12:00:00.123456999", "2026-03-01T12:00:00.123456+00:00"),
    ],
)
def test_an_instant_is_read_with_its_offset(written: str, expected: str) -> None:
    assert parse_timestamp(written).isoformat() == expected


@pytest.mark.parametrize(
    "written",
    [
        "2026-03-01T12:00:00-18:01",
        "2026-03-01T12:00:00+05:60",
        "2026-03-01T12:00:60Z",
        "2026-03-01T12:00:00.1234567890Z",
        "2026-03-01T12",
        "0000-01-01",
        "0001-01-01T00:00:00+18:00",
        "9999-12-31T23:59:59-00:01",
        "2026-03-01\n",
        "٢026-03-01",
    ],
)
def test_a_time_that_no_clock_shows_is_a_misfit(written: str) -> None:
    with pytest.raises(MisfitError, match="at: "):
        timestamp(written, "at", {})


def test_a_date_has_no_time_of_day() -> None:
    assert day("2028-02-29", "on", {}) == date(2028, 2, 29)
    for written in ("2026-02-29", "2026-03-01T00:00", 20260301):
        with pytest.raises(MisfitError, match="date"):
            day(written, "on", {})


def test_a_local_time_names_no_zone() -> None:
    assert local_timestamp("2026-03-01 12:00", "at", {}) == datetime(2026, 3, 1, 12)
    assert timestamp("2026-03-01 12:00", "at", {}) == datetime(2026, 3, 1, 12, tzinfo=UTC)
    with pytest.raises(MisfitError, match="timestamp_ntz"):
        local_timestamp("2026-03-01T12:00:00+00:00", "at", {})
