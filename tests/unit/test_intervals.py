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
        ("5min", timedelta(minutes=5)),
        ("5 MINS", timedelta(minutes=5)),
        ("30sec", timedelta(seconds=30)),
        ("1 hr 30 min", timedelta(minutes=90)),
        ("1 week", timedelta(days=7)),
        ("PT5M", timedelta(minutes=5)),
        ("pt1h30m", timedelta(minutes=90)),
        ("P1DT12H", timedelta(hours=36)),
        ("P1W", timedelta(days=7)),
    ],
)
def test_an_interval_is_a_number_with_a_unit(text: str, expected: timedelta) -> None:
    assert parse_interval(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "5", "300", "m", "five minutes", "5x", "-5m", "0s", "5m!", "P", "PT", "P5H", f"{9**20}d"],
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|is longer"):
        parse_interval(text)


def test_a_mistake_says_what_is_accepted() -> None:
    with pytest.raises(ValueError, match="such as 5m, 5 min, 90 seconds, 1h 30m, 2 days or PT5M"):
        parse_interval("5 parsecs")
    with pytest.raises(ValueError, match="it has no unit, write 300s or 5m"):
        parse_interval("300")


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
