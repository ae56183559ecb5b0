"""Knows from which day on the dates and times of a file mean what they say.

Used by the readers of Parquet and Avro. Spark up to 2.4 counted days before 1582 by the Julian
calendar, and later versions do so on demand; the files that say it hold other days than ISO 8601.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from livemart.epoch import EPOCH, day_text, epoch_micros, timestamp_text
from livemart.land.records.untyped_values import Unreadable

_VERSION = "org.apache.spark.version"
_OLD_MARKS = frozenset({"org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"})
# The key under which Spark noted itself in a Parquet file before it wrote its version there.
_ROWS_OF_SPARK = "org.apache.spark.sql.parquet.row.metadata"
_FIRST_OWN_CALENDAR = "3.1"


@dataclass(frozen=True, slots=True)
class Calendar:
    """From which day, and microsecond, since 1970 on values mean what they say; None: all do.

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
# Since then both calendars have the same days, and zones of time the offsets that they have today.
SPARK_2 = Calendar(
    (date(1582, 10, 15) - EPOCH.date()).days,
    epoch_micros(datetime(1900, 1, 1, tzinfo=UTC)),
    "the calendar of Spark 2",
)


def calendar_of(notes: Mapping[str, str]) -> Calendar:
    """Return the calendar of a file by what its writer noted in it.

    Spark 3.0 still wrote INT96 in the old one.

    >>> calendar_of({"org.apache.spark.version": "4.2.0"}) is ISO
    True
    """
    version = notes.get(_VERSION)
    is_old = _ROWS_OF_SPARK in notes if version is None else version < _FIRST_OWN_CALENDAR
    return SPARK_2 if is_old or _OLD_MARKS & notes.keys() else ISO
