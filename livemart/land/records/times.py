"""Reads dates and times that are written in ISO 8601.

Used by `converter` for each type of time. A timestamp without a zone is UTC; digits beyond
microseconds are cut, as Spark cuts them.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

from livemart.land.records.untyped_values import Rescued, misfit

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"\s?(Z|z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?\Z"
)

_DAYS_BEFORE_1970 = date(1970, 1, 1).toordinal() - 1
_DAYS_OF_400_YEARS = 146_097
_NANOSECONDS_OF_A_DAY = 86_400_000_000_000
_LAST_YEAR = 9999


def parse_timestamp(text: str) -> datetime:
    """Return an ISO 8601 timestamp in UTC; one without a zone is UTC. Raises ValueError.

    >>> parse_timestamp("2026-03-01T12:00:00.5+02:00").isoformat()
    '2026-03-01T10:00:00.500000+00:00'
    """
    moment, offset = _timestamp_parts(text)
    return (moment - offset if offset else moment).replace(tzinfo=UTC)


def _timestamp_parts(text: str) -> tuple[datetime, timedelta | None]:
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    # Spark keeps microseconds; finer digits are cut, as Spark cuts them.
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    moment = datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros
    )
    if zone is None:
        return moment, None
    if zone in "Zz":
        return moment, timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 18 or minutes > 59 or (hours == 18 and minutes):
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes)
    return moment, -offset if zone[0] == "-" else offset


def day_text(days: int) -> str:
    """Return the day so many days after 1970 in ISO 8601; a year of five digits has a sign.

    >>> day_text(2_932_896), day_text(2_932_897), day_text(-719_529)
    ('9999-12-31', '+10000-01-01', '-0001-12-31')
    """
    # A calendar of 400 years repeats itself.
    cycles, rest = divmod(days + _DAYS_BEFORE_1970, _DAYS_OF_400_YEARS)
    of_cycle = date.fromordinal(rest + 1)
    year = of_cycle.year + 400 * cycles
    written = f"{year:04}" if 0 <= year <= _LAST_YEAR else f"{year:+05}"
    return f"{written}{of_cycle.isoformat()[4:]}"


def timestamp_text(nanoseconds: int) -> str:
    """Return the moment so many nanoseconds after 1970 in ISO 8601, without a zone.

    >>> timestamp_text(-1), timestamp_text(1_500_000_000)
    ('1969-12-31T23:59:59.999999999', '1970-01-01T00:00:01.500000')
    """
    days, rest = divmod(nanoseconds, _NANOSECONDS_OF_A_DAY)
    return f"{day_text(days)}T{time_text(rest)}"


def time_text(nanoseconds: int) -> str:
    """Return the time of a day in ISO 8601; one that no day has is written all the same.

    >>> time_text(1_500_000_000), time_text(86_400_000_000_000)
    ('00:00:01.500000', '24:00:00')
    """
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    fraction = f".{rest:09}" if rest % 1_000 else f".{rest // 1_000:06}" if rest else ""
    return f"{'-' if nanoseconds < 0 else ''}{text}{fraction}"


def day(value: Any, path: str, rescued: Rescued) -> date:
    """Convert to a date."""
    if type(value) is str and (match := _DATE.match(value)):
        try:
            return date(*(int(part) for part in match.groups()))
        except ValueError:
            pass
    raise misfit(path, value, "date")


def timestamp(value: Any, path: str, rescued: Rescued) -> datetime:
    """Convert to an instant."""
    if type(value) is str:
        try:
            return parse_timestamp(value)
        except (ValueError, OverflowError):
            pass
    raise misfit(path, value, "timestamp")


def local_timestamp(value: Any, path: str, rescued: Rescued) -> datetime:
    """Convert to a time that names no zone."""
    if type(value) is str:
        try:
            moment, offset = _timestamp_parts(value)
            if offset is None:
                return moment
        except ValueError:
            pass
    raise misfit(path, value, "timestamp_ntz")
