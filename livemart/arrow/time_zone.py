"""Computes how far apart times may be in a session whose days differ from those of UTC.

Used wherever a refresh turns a distance that the planner found into a condition on stored rows. The
planner counts days of 24 hours from midnight UTC; Spark counts those of the session's zone, and
reads a time without a zone there.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from livemart.arrow.times import DAY

_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class TimeZone:
    """The zone of a session. `is_utc`: its days and clocks are those of UTC."""

    is_utc: bool = True

    def reach(self, distance: int, *kinds: pa.DataType) -> int:
        """Return a bound of the distance in this zone, in microseconds.

        Times without a zone, and dates, are up to a day from the instant that they stand for. A day
        of the zone, or several, may differ by up to a day from those of 24 hours, where a country
        has changed sides of the date line. An hour may differ by an hour.

        Args:
            distance: the same in UTC.
            kinds: the types of the times that are so far apart.

        >>> TimeZone(is_utc=False).reach(0, pa.date32(), pa.date32())
        0
        >>> TimeZone(is_utc=False).reach(0, pa.date32(), pa.timestamp("us", tz="UTC")) // DAY
        2
        """
        if self.is_utc or (distance == 0 and len(set(map(_has_zone, kinds))) < 2):
            return distance
        if distance < DAY and all(map(_has_zone, kinds)):
            return distance + 2 * _HOUR
        return distance + 2 * DAY

    def counts_exactly(self, distance: int) -> bool:
        """Return True if the distance of two times is exactly the duration, in microseconds."""
        return self.is_utc or distance < DAY


UTC_ZONE = TimeZone()


def _has_zone(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)
