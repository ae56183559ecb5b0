"""Decides when and where customers order.

Used by the market. The hour of the local day, the weekday and the popularity of the restaurant
decide.
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from demo.catalogue import Restaurant

# Share of a day's orders in each hour of the local day: a lunch, a dinner, few at night.
_HOURS = (
    0.6, 0.3, 0.2, 0.1, 0.1, 0.2, 0.5, 1.2, 2.0, 2.2, 3.0, 7.0,
    11.0, 9.0, 4.5, 3.0, 3.5, 6.0, 11.5, 13.0, 10.0, 6.0, 3.5, 1.6,
)  # fmt: skip
# Monday to Sunday.
_WEEKDAYS = (0.8, 0.85, 0.9, 1.0, 1.25, 1.35, 1.1)


def demand(
    rng: random.Random,
    restaurants: Sequence[Restaurant],
    orders_per_day: int,
    start: datetime,
    end: datetime,
    *,
    exactly: int | None = None,
) -> Iterator[tuple[Restaurant, datetime]]:
    """Return where and when is ordered in [start, end), in the order of time.

    Args:
        rng: decides.
        restaurants: as they are now.
        orders_per_day: of an average day, all restaurants together.
        start: first instant.
        end: after the last.
        exactly: so many orders instead of what the hours suggest.
    """
    hour = start
    while hour < end:
        following = min(hour.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1), end)
        pulls = list(itertools.accumulate(_pull(place, hour) for place in restaurants))
        share = (following - hour) / timedelta(days=1)
        if exactly is None:
            expected = orders_per_day * share * pulls[-1]
            count = int(expected) + (rng.random() < expected % 1)
        else:
            count = round(exactly * ((following - start) / (end - start))) - round(
                exactly * ((hour - start) / (end - start))
            )
        width = (following - hour) // timedelta(microseconds=1)
        for offset in sorted(rng.randrange(width) for _ in range(count)):
            chosen = bisect_right(pulls, rng.random() * pulls[-1])
            restaurant = restaurants[min(chosen, len(pulls) - 1)]
            yield restaurant, hour + timedelta(microseconds=offset)
        hour = following


def _pull(restaurant: Restaurant, at: datetime) -> float:
    """Return how much a restaurant is ordered from at an hour; 1 / restaurants on average."""
    local = at.astimezone(restaurant.time_zone)
    return restaurant.weight * _HOURS[local.hour] * 24 / sum(_HOURS) * _WEEKDAYS[local.weekday()]
