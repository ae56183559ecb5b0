"""Counts moments in microseconds since 1970, UTC, as Spark does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def epoch_micros(moment: datetime) -> int:
    """Return a moment in microseconds since 1970, UTC.

    >>> epoch_micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (moment - EPOCH) // MICROSECOND


def epoch_moment(micros: int) -> datetime:
    """Return the moment that lies so many microseconds after 1970, UTC.

    Raises:
        OverflowError: it lies outside of the years 1 to 9999.

    >>> epoch_moment(1_000_000).isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    return EPOCH + micros * MICROSECOND
