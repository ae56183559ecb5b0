"""Counts moments in microseconds since 1970, UTC, as Spark does, and writes any of them as text.

Python's own have the years 1 to 9999, whole microseconds and no 24:00; Spark and files hold more.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_DAYS_BEFORE_1970 = date(1970, 1, 1).toordinal() - 1
_DAYS_OF_400_YEARS = 146_097
_NANOSECONDS_OF_A_DAY = 86_400_000_000_000
_LAST_YEAR = 9999
_FINER_THAN_MICROSECONDS = re.compile(r"[.,]\d{6}0*[1-9]")
_DAY = r"(\d{4}-?\d{2}-?\d{2}|\d{4}-?W\d{2}(-?\d)?)"
_DAY_OR_MOMENT = re.compile(rf"{_DAY}([Tt _].*)?", re.DOTALL)
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799


def epoch_micros(moment: datetime) -> int:
    """Return a moment in microseconds since 1970, UTC.

    >>> epoch_micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (moment - EPOCH) // MICROSECOND


def epoch_moment(micros: int) -> datetime:
    """Return the moment so many microseconds after 1970, UTC.

    Raises:
        OverflowError: it is outside of the years 1 to 9999.

    >>> epoch_moment(1_000_000).isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    return EPOCH + micros * MICROSECOND


def parse_moment(text: str) -> datetime:
    """Return the moment that a text writes in ISO 8601, in its zone; UTC if it names none.

    Raises:
        ValueError: it writes none, or one between two microseconds.

    >>> parse_moment("2026-03-01T12:00").isoformat()
    '2026-03-01T12:00:00+00:00'
    """
    # Python takes any character between day and time, so that digits behind a day, or its zone, are
    # read as a time. It cuts digits beyond the sixth.
    if not _DAY_OR_MOMENT.fullmatch(text) or _FINER_THAN_MICROSECONDS.search(text):
        raise ValueError("write it as ISO 8601, 2026-03-01T12:00:00.123456Z")
    moment = datetime.fromisoformat(f"{text[:-1]}Z" if text.endswith("z") else text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def clock_moment(seconds: float) -> datetime:
    """Return the moment of a clock in Unix seconds, as file systems and brokers hand it over.

    Theirs may be any number: outside of the years 1 to 9999 it is the first or the last moment.

    >>> clock_moment(1.5).isoformat(), clock_moment(1e12).year
    ('1970-01-01T00:00:01.500000+00:00', 9999)
    """
    return EPOCH + timedelta(seconds=min(max(seconds, _FIRST_S), _LAST_S))


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
