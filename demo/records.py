"""Writes the records that restaurants and phones send: orders, restaurants and dishes.

Used by the market. A correction is a new version of the same order, never a change of a record.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from demo.catalogue import Restaurant


@dataclass(frozen=True, slots=True)
class Order:
    """One version of an order; `items` are (dish_id, quantity, unit price)."""

    order_id: str
    restaurant: Restaurant
    customer_id: str
    ordered_at: datetime
    status: str
    currency: str
    items: tuple[tuple[str, int, Decimal], ...]
    updated_at: datetime
    op: str = "c"

    def line(self) -> str:
        """Return the record as a phone sends it: local times with their offset."""
        zone = self.restaurant.time_zone
        return json.dumps(
            {
                "order_id": self.order_id,
                "restaurant_id": self.restaurant.restaurant_id,
                "customer_id": self.customer_id,
                "ordered_at": self.ordered_at.astimezone(zone).isoformat(),
                "status": self.status,
                "currency_code": self.currency,
                "items": [
                    {"dish_id": dish_id, "quantity": quantity, "unit_price": float(price)}
                    for dish_id, quantity, price in self.items
                ],
                "updated_at": self.updated_at.astimezone(UTC).isoformat(),
                "op": self.op,
            },
            ensure_ascii=False,
        )


def next_version(
    order: Order,
    rng: random.Random,
    least: int,
    most: int,
    *,
    status: str | None = None,
    op: str = "u",
    at: datetime | None = None,
) -> Order:
    """Return the next version of an order, written some minutes later or at a given time."""
    after = timedelta(minutes=rng.randint(least, most), microseconds=rng.randrange(1_000_000))
    return Order(
        order.order_id,
        order.restaurant,
        order.customer_id,
        order.ordered_at,
        status or order.status,
        order.currency,
        order.items,
        at or order.updated_at + after,
        op,
    )


def broken_line(order: Order, number: int, now: datetime, rng: random.Random) -> str:
    """Return a record that must become a dead letter: of each sort in turn."""
    record = json.loads(order.line())
    record["order_id"] = f"broken-{number}"
    sort = rng.randrange(5)
    if sort == 0:
        return json.dumps(record)[:-20]
    if sort == 1:
        record["items"][0]["quantity"] = "two"
    elif sort == 2:
        record["order_id"] = None
    elif sort == 3:
        # Beyond any bound on the future, whenever it is read.
        record["ordered_at"] = (now + timedelta(days=400)).isoformat()
    else:
        record["updated_at"] = "yesterday"
    return json.dumps(record)


def restaurant_line(restaurant: Restaurant, at: datetime, op: str) -> str:
    """Return the record of a restaurant as it is at a time."""
    return json.dumps(
        {
            "restaurant_id": restaurant.restaurant_id,
            "restaurant_name": restaurant.name,
            "time_zone": restaurant.time_zone.key,
            "currency_code": restaurant.currency,
            "updated_at": at.isoformat(),
            "op": op,
        },
        ensure_ascii=False,
    )


def dish_line(dish_id: str, restaurant_id: str, name: str, at: datetime, op: str) -> str:
    """Return the record of a dish as it is at a time."""
    return json.dumps(
        {
            "dish_id": dish_id,
            "restaurant_id": restaurant_id,
            "dish_name": name,
            "updated_at": at.isoformat(),
            "op": op,
        },
        ensure_ascii=False,
    )
