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
