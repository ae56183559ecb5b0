"""Moments are counted exactly, over all years that a timestamp may have."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from livemart.epoch import EPOCH, clock_moment, epoch_micros, epoch_moment, parse_moment


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=UTC),
        EPOCH,
        datetime(2026, 3, 1, 12, 5, 0, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ],
)
def test_a_moment_is_counted_to_the_microsecond(moment: datetime) -> None:
    assert epoch_moment(epoch_micros(moment)) == moment


def test_a_moment_before_1970_is_negative() -> None:
    assert epoch_micros(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


def test_there_is_no_moment_beyond_the_calendar() -> None:
    with pytest.raises(OverflowError):
        epoch_moment(epoch_micros(datetime.max.replace(tzinfo=UTC)) + 1)


@pytest.mark.parametrize(
    ("seconds", "year"),
    [(-1e18, 1), (-62_135_596_801.0, 1), (-0.5, 1969), (253_402_300_800.0, 9999), (2.0**63, 9999)],
)
def test_a_clock_beyond_the_calendar_shows_its_end(seconds: float, year: int) -> None:
    assert clock_moment(seconds).year == year


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T12:00:00.1234560000Z", "2026-03-01T12:00:00.123456+00:00"),
        ("2026-03-01T12:00:00,5+02:00", "2026-03-01T12:00:00.500000+02:00"),
        ("2026-03-01t12:00z", "2026-03-01T12:00:00+00:00"),
        ("20260301", "2026-03-01T00:00:00+00:00"),
        ("2026-03-01", "2026-03-01T00:00:00+00:00"),
    ],
)
def test_a_text_of_iso_8601_is_a_moment(text: str, moment: str) -> None:
    assert parse_moment(text).isoformat() == moment


@pytest.mark.parametrize(
    "text",
    [
        # Python cuts it to the microsecond before.
        "2026-03-01T12:00:00.1234561Z",
        "2026-03-01T12:00:00.00000000001",
        # Milliseconds since 1970, to Python 23:45 of a day in 1712.
        "1712010312345",
        # To Python 20:00 of this day.
        "20260301120000Z",
        # A day and its zone, to Python 05:00.
        "2026-03-01-05:00",
        "20260301-0500",
        "2026-03-01x12:00",
        "0",
        "soon",
        "",
    ],
)
def test_a_text_between_two_microseconds_or_without_a_day_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_moment(text)
