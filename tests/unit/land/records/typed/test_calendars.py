"""A file says by what its writer noted whether its old days are those of ISO 8601."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from livemart.land.records.typed.calendars import ISO, SPARK_2, Calendar, calendar_of
from livemart.land.records.untyped_values import Unreadable

_SPARK = "org.apache.spark."


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ({}, ISO),
        ({f"{_SPARK}version": "3.1.0"}, ISO),
        ({f"{_SPARK}version": "3.0.3"}, SPARK_2),
        ({f"{_SPARK}version": "2.4.8"}, SPARK_2),
        ({f"{_SPARK}version": "4.2.0", f"{_SPARK}legacyDateTime": ""}, SPARK_2),
        ({f"{_SPARK}version": "4.2.0", f"{_SPARK}legacyINT96": ""}, SPARK_2),
        # Spark before 2.4.6 noted the columns of its rows, and no version.
        ({f"{_SPARK}sql.parquet.row.metadata": "{}"}, SPARK_2),
        ({"writer": "another"}, ISO),
    ],
)
def test_the_notes_of_a_file_say_its_calendar(notes: Mapping[str, str], expected: Calendar) -> None:
    assert calendar_of(notes) is expected


def test_only_days_before_both_calendars_meet_are_unreadable() -> None:
    assert SPARK_2.day(-141_427) == "1582-10-15"
    assert isinstance(SPARK_2.day(-141_428), Unreadable)
    assert ISO.day(-141_428) == "1582-10-14"


def test_only_moments_before_zones_had_their_offsets_of_today_are_unreadable() -> None:
    first = -2_208_988_800 * 10**9

    assert SPARK_2.moment(first, "Z") == "1900-01-01T00:00:00Z"
    assert isinstance(SPARK_2.moment(first - 1, "Z"), Unreadable)
    assert ISO.moment(first - 1_000, "") == "1899-12-31T23:59:59.999999"
