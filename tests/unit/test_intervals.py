"""Intervals as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from livemart.intervals import format_interval, parse_interval


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5m", timedelta(minutes=5)),
        ("90 seconds", timedelta(seconds=90)),
        ("1h 30m", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("2 Days", timedelta(days=2)),
    ],
)
def test_an_interval_is_a_number_with_a_unit(text: str, expected: timedelta) -> None:
    assert parse_interval(text) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "m", "five minutes", "5x", "-5m", "0s", "5m!", f"{9**20}d"]
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|is longer"):
        parse_interval(text)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=61), "1m 1s"),
        (timedelta(hours=-1), "-1h"),
        (timedelta(days=2, milliseconds=4), "2d"),
    ],
)
def test_an_interval_is_written_in_its_largest_units(interval: timedelta, expected: str) -> None:
    assert format_interval(interval) == expected
