"""Writes figures and times as text for the owner's page.

Used by the page's view; `static/page/words.js` writes the same text in the browser. Both sides take
CLDR's `en-GB`: Babel here, `Intl` there. Nothing passes through a float.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Literal
from unicodedata import category

from babel.dates import format_datetime
from babel.numbers import format_decimal, get_currency_precision, get_currency_symbol

from livemart.serve.owner.clock_hours import read_zone

LOCALE = "en_GB"
DASH = "\u2013"
_SPACE = "\u00a0"
_ARROWS = {"up": "\u25b2", "down": "\u25bc", "same": "=", "none": DASH}
# More digits than any decimal has: Python's own context refuses to round one of more than 28.
_ROUNDED = Context(prec=80, rounding=ROUND_HALF_UP)
_CURRENCY = re.compile(r"[A-Z]{3}")

Direction = Literal["up", "down", "same", "none"]


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure beside the one a week before; `direction` none: there is no base."""

    direction: Direction
    text: str

    @property
    def arrow(self) -> str:
        """The sign for the eye; the text says the same in words."""
        return _ARROWS[self.direction]


@dataclass(frozen=True, slots=True)
class LocalFormat:
    """How amounts and times are written where a restaurant is.

    `sign`: the currency as the locale writes it, as part of a pattern; `digits`: after the point.
    """

    zone: tzinfo
    zone_name: str
    currency: str
    digits: int
    sign: str

    @classmethod
    def of(cls, time_zone: str | None, currency: str | None) -> LocalFormat:
        """Return the format; an unknown zone is UTC, an unknown currency has 2 digits."""
        zone, zone_name = read_zone(time_zone)
        code = currency if currency and _CURRENCY.fullmatch(currency) else ""
        if not code:
            return cls(zone, zone_name, code, 2, "")
        symbol = get_currency_symbol(code, locale=LOCALE)
        # CLDR's rule, which `format_currency` does not know: letters stay apart from digits.
        space = "" if category(symbol[-1])[0] in "SZ" else _SPACE
        return cls(zone, zone_name, code, get_currency_precision(code), f"'{symbol}'{space}")

    def money(self, amount: Decimal | None) -> str:
        """Return `€8,243.50`, or a dash for an unknown amount."""
        if amount is None:
            return DASH
        exact = amount.quantize(Decimal(1).scaleb(-self.digits), context=_ROUNDED)
        decimals = f".{'0' * self.digits}" if self.digits else ""
        return _written(exact, f"{self.sign}#,##0{decimals}")

    def clock(self, instant: datetime) -> str:
        """Return the time of day, `14:35`."""
        return self._format(instant, "HH:mm")

    def minutes(self, instant: datetime) -> timedelta:
        """Return how much of its hour has passed, in whole minutes of the restaurant's clock."""
        return timedelta(minutes=instant.astimezone(self.zone).minute)

    def moment(self, instant: datetime, *, has_date: bool = False) -> str:
        """Return `Sun 14:35`, or `Sun 1 Mar 14:35` where the day of the week is not enough."""
        return self._format(instant, "EEE d MMM HH:mm" if has_date else "EEE HH:mm")

    def span(self, start: datetime, end: datetime, *, has_date: bool = False) -> str:
        """Return `Sun 14:35 to Mon 14:35`; a span of a day or less on one day names it once."""
        has_date = has_date or end - start > timedelta(days=6)
        first = self.moment(start, has_date=has_date)
        is_short = self.is_same_day(start, end)
        last = self.clock(end) if is_short else self.moment(end, has_date=has_date)
        return f"{first} to {last}"

    def is_same_day(self, one: datetime, other: datetime) -> bool:
        """Return True if both are of one day of the restaurant's calendar."""
        return one.astimezone(self.zone).date() == other.astimezone(self.zone).date()

    def _format(self, instant: datetime, pattern: str) -> str:
        return format_datetime(instant.astimezone(self.zone), pattern, locale=LOCALE)


def count(value: int | None) -> str:
    """Return `1,234`, or a dash for an unknown number."""
    return DASH if value is None else format_decimal(value, locale=LOCALE)


def window_words(hours: int) -> str:
    """Return the name of a window in a sentence: `hour`, `24 hours`, `7 days`.

    >>> [window_words(hours) for hours in (1, 24, 168)]
    ['hour', '24 hours', '7 days']
    """
    if hours == 1:
        return "hour"
    return f"{hours} hours" if hours <= 48 or hours % 24 else f"{hours // 24} days"


def change(value: Decimal | None, last_week: Decimal | None) -> FigureChange:
    """Return the change on last week, to a tenth of a percent, half away from zero."""
    if value is None or not last_week:
        return FigureChange("none", "no comparison")
    with localcontext(_ROUNDED):
        tenths = (abs(value - last_week) * 1000 / abs(last_week)).quantize(Decimal(1))
    if not tenths:
        return FigureChange("same", "unchanged from last week")
    direction: Direction = "up" if value > last_week else "down"
    amount = _written(tenths.scaleb(-1, _ROUNDED), "#,##0.0")
    return FigureChange(direction, f"{direction} {amount}{_SPACE}% on last week")


def percent(part: Decimal | None, whole: Decimal | None) -> int | None:
    """Return a part as a whole percent of all, 0 to 100, half up; None if it is unknown.

    From the amounts themselves: of a share that is rounded already 38.496 % would be 39 %.

    >>> percent(Decimal("13.83"), Decimal(100))
    14
    """
    if part is None or not whole:
        return None
    with localcontext(_ROUNDED):
        exact = (part * 100 / whole).quantize(Decimal(1))
    return min(max(int(exact), 0), 100)


def age(passed: timedelta) -> str:
    """Return how long ago, in the largest units that matter.

    >>> [age(timedelta(seconds=seconds)) for seconds in (12, 240, 7_500, 200_000)]
    ['12 s ago', '4 min ago', '2 h 5 min ago', '2 d 7 h ago']
    """
    seconds = max(int(passed.total_seconds()), 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if seconds < 60:
        return f"{seconds} s ago"
    if minutes < 60:
        return f"{minutes} min ago"
    if hours < 24:
        return f"{hours} h {minutes % 60} min ago" if minutes % 60 else f"{hours} h ago"
    return f"{days} d {hours % 24} h ago" if hours % 24 else f"{days} d ago"


def _written(number: Decimal, pattern: str) -> str:
    with localcontext(_ROUNDED):
        return format_decimal(number, format=pattern, locale=LOCALE)
