"""Raw orders of four restaurants, some of them canceled, foreign or late, and the models of them.

They are those of an evening long ago, whatever day and hour it is: every window holds the same
orders, and hours and days have the same names.

`oracle.py` answers the same questions of the same orders in SQL and shares no code with the models.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa

from tests.store.stores import DISHES, PANE, Order, pane_of, reference_tables

AZUL, SAKURA, QUIET, NEW = "r17", "r18", "r19", "r20"
# Name, time zone, currency.
RESTAURANTS: dict[str, tuple[str, str, str]] = {
    AZUL: ("Taverna Azul", "Europe/Lisbon", "EUR"),
    SAKURA: ("麺処 さくら", "Asia/Tokyo", "JPY"),
    # No order within a week.
    QUIET: ("Quiet Diner", "America/New_York", "USD"),
    # Its first order came five hours ago.
    NEW: ("New Bistro", "Europe/Berlin", "EUR"),
}
# Not every machine has a font for the Japanese one, and the pictures are to be looked at.
DISH_NAMES = {dish_id: name for dish_id, (name, _) in DISHES.items()} | {"d3": "Ramen"}
# Share of a day's orders by local hour, and how popular each dish is.
_HOURS = (1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 11, 16, 14, 8, 6, 7, 10, 15, 19, 17, 11, 6, 3)
_POPULAR = {"d1": 6, "d2": 3, "d3": 4, "d4": 2, "d5": 5}
# So long ago the late orders were placed that landed just now.
_LATE_MINUTES = (32, 41, 44)
# A Sunday at nine in the evening in Lisbon: far from midnight, and weeks after clocks were changed.
_EVENING = datetime(2026, 3, 1, 21, tzinfo=UTC)
_SEED = 4


@dataclass(frozen=True, slots=True)
class RawOrder:
    """An order as it was delivered; only those not canceled and in the own currency count."""

    order: Order
    currency: str
    status: str = "delivered"


@dataclass(slots=True)
class RawOrders:
    """All orders there are, and the served models of them as of an instant."""

    as_of: datetime
    rows: list[RawOrder] = field(default_factory=list)
    dish_names: Mapping[str, str] = field(default_factory=lambda: DISH_NAMES)
    restaurants: Mapping[str, tuple[str, str, str]] = field(default_factory=lambda: RESTAURANTS)

    @classmethod
    def of_two_weeks(cls) -> RawOrders:
        """Return 15 days of orders, always the same ones."""
        return cls.drawn(_EVENING, _SEED)

    @classmethod
    def drawn(cls, now: datetime, seed: int) -> RawOrders:
        """Return 15 days of orders up to `now`, by the hours of each restaurant's own days.

        `as_of` is the end of the pane that holds `now`.
        """
        raw = cls(pane_of(now) + PANE)
        chance = random.Random(seed)
        for restaurant, a_day in ((AZUL, 190), (SAKURA, 40)):
            raw.rows += _days(chance, restaurant, now, a_day)
        raw.rows += [make_order(chance, NEW, now - timedelta(minutes=17 * n)) for n in range(1, 18)]
        raw.rows += [make_order(chance, QUIET, now - timedelta(days=9, hours=n)) for n in range(5)]
        # Enough in the last hour that every button shows something, whatever the time of day.
        for restaurant, minutes in ((AZUL, 3), (SAKURA, 11)):
            raw.rows += [
                make_order(chance, restaurant, now - timedelta(minutes=minutes * n + 1))
                for n in range(55 // minutes)
            ]
        for minutes in _LATE_MINUTES:
            late = make_order(chance, AZUL, now - timedelta(minutes=minutes)).order
            # Each of them counts: what the page says of late orders is known.
            raw.rows.append(RawOrder(replace(late, landed_at=now), RESTAURANTS[AZUL][2]))
        return raw

    def models(self) -> dict[str, pa.Table]:
        """Return the rows of the served models, by name."""
        counted = [
            row.order
            for row in self.rows
            if row.status != "cancelled"
            and row.currency == self.restaurants[row.order.restaurant_id][2]
        ]
        return reference_tables(
            counted, self.as_of, restaurants=self.restaurants, dish_names=self.dish_names
        )


def make_order(chance: random.Random, restaurant_id: str, at: datetime) -> RawOrder:
    """Return an order that landed at once; a few are canceled or in a foreign currency."""
    dishes = {chance.choices(list(_POPULAR), list(_POPULAR.values()))[0] for _ in range(3)}
    fate = chance.random()
    return RawOrder(
        Order(
            f"o{chance.getrandbits(48):012x}",
            restaurant_id,
            f"c{chance.randrange(900)}",
            at,
            tuple((dish_id, chance.randint(1, 3)) for dish_id in sorted(dishes)),
            landed_at=at,
        ),
        "CHF" if fate > 0.99 else RESTAURANTS[restaurant_id][2],
        "cancelled" if fate < 0.04 else "delivered",
    )


def _days(
    chance: random.Random, restaurant_id: str, now: datetime, a_day: int
) -> Iterator[RawOrder]:
    zone = ZoneInfo(RESTAURANTS[restaurant_id][1])
    midnight = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    for days in range(15, -1, -1):
        for _ in range(int(a_day * chance.uniform(0.8, 1.2))):
            hour = chance.choices(range(24), _HOURS)[0]
            local = midnight - timedelta(days=days)
            at = (local + timedelta(hours=hour, seconds=chance.randrange(3600))).astimezone(UTC)
            if at < now:
                yield make_order(chance, restaurant_id, at)
