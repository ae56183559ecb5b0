"""Reads, writes and measures intervals: `5m`, `5 min`, `90 seconds`, `1h 30m`, `2 days`, `PT5M`.

Used by settings, sources and reports. The largest unit is the day, because months differ in length.
"""

from __future__ import annotations

import re
import time
from datetime import timedelta

_SPELLINGS = {
    "seconds": ("s", "sec", "secs", "second", "seconds"),
    "minutes": ("m", "min", "mins", "minute", "minutes"),
    "hours": ("h", "hr", "hrs", "hour", "hours"),
    "days": ("d", "day", "days"),
    "weeks": ("w", "week", "weeks"),
}
_UNITS = {word: unit for unit, words in _SPELLINGS.items() for word in words}
_PART = re.compile(r"(\d+)\s*([a-z]+)")
# ISO 8601: a T is written before the hours, minutes and seconds.
_ISO = re.compile(r"p(?=.)(?:\d+w)?(?:\d+d)?(?:t(?=.)(?:\d+h)?(?:\d+m)?(?:\d+s)?)?")
# A pass may be slow, and one may be missed.
_LATE_AFTER = 3
_ACCEPTED = "such as 5m, 5 min, 90 seconds, 1h 30m, 2 days or PT5M"


def parse_interval(text: str) -> timedelta:
    """Return the positive interval that `text` writes, as whole numbers with units.

    Raises:
        ValueError: the text is no such interval; the message says what is accepted.

    >>> parse_interval("1h 30m")
    datetime.timedelta(seconds=5400)
    """
    cleaned = text.strip().lower()
    if _ISO.fullmatch(cleaned):
        cleaned = cleaned.replace("p", "").replace("t", "")
    if cleaned.isdecimal():
        raise ValueError(f"{text!r} is not an interval: it has no unit, write {cleaned}s or 5m")
    parts = _PART.findall(cleaned)
    is_whole = bool(parts) and not _PART.sub("", cleaned).strip()
    if not is_whole or any(unit not in _UNITS for _, unit in parts):
        raise ValueError(f"{text!r} is not an interval {_ACCEPTED}")
    try:
        total = sum((timedelta(**{_UNITS[unit]: int(n)}) for n, unit in parts), timedelta())
    except OverflowError:
        raise ValueError(f"{text!r} is longer than the calendar") from None
    if total <= timedelta():
        raise ValueError(f"{text!r} is not above zero")
    return total


def format_interval(interval: timedelta) -> str:
    """Return `interval` as `parse_interval` reads it, in the largest units; below a second `0s`.

    >>> format_interval(timedelta(hours=25, seconds=3))
    '1d 1h 3s'
    """
    seconds = int(interval.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + (" ".join(parts) or "0s")


def is_late(age: timedelta, every: timedelta) -> bool:
    """Return True if the last word of a pipeline is three of its intervals old.

    >>> is_late(timedelta(minutes=14), timedelta(minutes=5))
    False
    """
    return age >= late_after(every)


def late_after(every: timedelta) -> timedelta:
    """Return the age from which on the last word of a pipeline is late."""
    return _LATE_AFTER * every


def ms_since(started: float) -> int:
    """Return the whole milliseconds since `started`, a reading of `time.perf_counter()`."""
    return round((time.perf_counter() - started) * 1000)
