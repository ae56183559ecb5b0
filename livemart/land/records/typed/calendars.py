"""Finds the day from which the dates and times of a file follow today's calendar.

Used by the readers of Parquet and Avro. Files of the calendar of Spark 2 hold other days than those
of ISO 8601.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from livemart.arrow.calendars import FIRST_DAY, FIRST_SECOND, is_of_spark_2
from livemart.epoch import day_text, timestamp_text
from livemart.land.records.untyped_values import Unreadable


@dataclass(frozen=True, slots=True)
class Calendar:
    """From which day, and microsecond, since 1970 on values are exact; None: all are.

    `name`: the calendar of those before.
    """

    first_day: int | None = None
    first_micros: int | None = None
    name: str = ""

    def day(self, days: int) -> str | Unreadable:
        """Return the day so many days after 1970 in ISO 8601."""
        return self._known(day_text(days), days, self.first_day)

    def moment(self, nanoseconds: int, zone: str) -> str | Unreadable:
        """Return the moment so many nanoseconds after 1970 in ISO 8601, with `zone` behind it."""
        text = f"{timestamp_text(nanoseconds)}{zone}"
        return self._known(text, nanoseconds // 1_000, self.first_micros)

    def _known(self, text: str, count: int, first: int | None) -> str | Unreadable:
        if first is None or count >= first:
            return text
        return Unreadable(f"{text} is of {self.name}: other days than those of ISO 8601")


ISO = Calendar()
SPARK_2 = Calendar(FIRST_DAY, FIRST_SECOND * 1_000_000, "the calendar of Spark 2")


def calendar_of(notes: Mapping[str, str]) -> Calendar:
    """Return the calendar of a file by the notes of its writer.

    >>> calendar_of({"org.apache.spark.version": "4.2.0"}) is ISO
    True
    """
    return SPARK_2 if is_of_spark_2(notes) else ISO
