"""Simulates a market: its orders come late, twice, corrected, cancelled and broken, as in life.

Used by the demo and the benches. Everything follows from the seed and from the calls made, so that
a run can be repeated exactly.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from demo.catalogue import Restaurant, open_restaurants, renamed_dish
from demo.delivery import Deliver, Delivery, hand_over_lines
from demo.demand import demand
from demo.records import Order, broken_line, dish_line, next_version, restaurant_line
from livemart.storage.location import StoragePlace

Kind = Literal[
    "placed", "delivered", "cancelled", "corrected", "deleted", "late", "redelivered", "broken",
    "restaurant", "dish",
]  # fmt: skip

_LATE_SHARE = 0.02
_LONGEST_DELAY = timedelta(hours=6)
_CANCELLED_SHARE = 0.04
_CORRECTED_SHARE = 0.01
_DELETED_SHARE = 0.002
_FOREIGN_SHARE = 0.001
_REDELIVERED_SHARE = 0.005
_BROKEN_SHARE = 0.001
_REMEMBERED = 2_000


@dataclass(order=True, slots=True)
class _Arrival:
    at: datetime
    number: int
    line: str = field(compare=False)
    kind: Kind = field(compare=False)


class Market:
    """Customers and restaurants, from `history` on, one `live_step` after the other.

    Args:
        seed: decides everything.
        restaurants: how many restaurants; popularity follows a Zipf law.
        dishes: dishes on each menu.
        orders_per_day: orders of an average day, all restaurants together.
        customers: how many different people order.
    """

    def __init__(
        self,
        seed: int,
        *,
        restaurants: int = 40,
        dishes: int = 12,
        orders_per_day: int = 2_000,
        customers: int = 4_000,
        deliver: Deliver = hand_over_lines,
    ) -> None:
        self._deliver = deliver
        self._rng = random.Random(seed)
        self._restaurants = list(
            open_restaurants(self._rng, restaurants=restaurants, dishes=dishes)
        )
        self._orders_per_day = orders_per_day
        self._customers = customers
        self._waiting: list[_Arrival] = []
        self._numbers = itertools.count()
        self._recent: deque[Order] = deque(maxlen=_REMEMBERED)
        self._steps = 0

    @property
    def restaurants(self) -> Sequence[Restaurant]:
        """Restaurants as they are now, most popular first."""
        return tuple(self._restaurants)

    def history(self, landing: StoragePlace, end: datetime, *, days: int = 15) -> Delivery:
        """Hand over menus and the orders of the days before `end`, one file a day of arrival.

        Args:
            landing: the landing folder; made if missing.
            end: first instant that is not history, UTC.
            days: length of the history.
        """
        start = end - timedelta(days=days)
        counts: Counter[str] = Counter()
        files = [*self._write_menus(landing, start, counts)]
        files += self._write_restaurants(landing, start, counts)
        for order in self._orders(start, end):
            self._place(order)
        day = start
        while day < end:
            following = min(day + timedelta(days=1), end)
            lines = self._arrived(following, counts)
            files += self._deliver(landing / "orders", f"history-{day:%Y%m%dT%H%M}.jsonl", lines)
            day = following
        return Delivery(tuple(files), counts)

    def live_step(
        self, landing: StoragePlace, start: datetime, end: datetime, *, orders: int | None = None
    ) -> Delivery:
        """Hand over what arrives in [start, end): at least one order of every unpleasant kind.

        Args:
            landing: the landing folder.
            start: where the last step, or history, ended; UTC.
            end: after start.
            orders: exactly so many new orders instead of what the hour suggests.
        """
        self._steps += 1
        counts: Counter[str] = Counter()
        files: list[StoragePlace] = []
        for order in self._orders(start, end, exactly=orders):
            self._place(order)
        self._surprise(start, end)
        lines = list(self._arrived(end, counts))
        name = f"live-{self._steps:06d}-{end:%Y%m%dT%H%M%S}"
        files += self._deliver(landing / "orders", f"{name}.jsonl", lines)
        if self._steps % 3 == 0:
            # A gateway that heard no answer sends the same file again, under a new name.
            counts["redelivered"] += len(lines)
            files += self._deliver(landing / "orders", f"{name}-again.jsonl", lines)
        if self._steps % 2 == 0:
            files.extend(self._change_menus(landing, name, end, counts))
        return Delivery(tuple(files), counts)

    def _orders(
        self, start: datetime, end: datetime, *, exactly: int | None = None
    ) -> Iterator[Order]:
        """Return new orders of [start, end), in the order of their time."""
        places = demand(
            self._rng, self._restaurants, self._orders_per_day, start, end, exactly=exactly
        )
        return (self._order(restaurant, at) for restaurant, at in places)

    def _order(self, restaurant: Restaurant, at: datetime) -> Order:
        rng = self._rng
        # Regulars order more often than others: the square pulls towards low numbers.
        customer = int(rng.random() ** 2 * self._customers)
        currency = restaurant.currency
        if rng.random() < _FOREIGN_SHARE:
            currency = "CHF"
        millis = int(at.timestamp() * 1_000)
        return Order(
            # Ids that grow with time keep the look-up of stored orders cheap.
            f"{millis:011x}-{next(self._numbers) % 0x100000:05x}",
            restaurant,
            f"c{customer:06d}",
            at,
            "placed",
            currency,
            self._items(restaurant),
            at,
        )

    def _items(self, restaurant: Restaurant) -> tuple[tuple[str, int, Decimal], ...]:
        size = 1 + min(int(self._rng.expovariate(0.8)), 5)
        chosen = self._rng.choices(restaurant.dishes, restaurant.dish_weights, k=size)
        return tuple(
            (dish.dish_id, 1 + (self._rng.random() < 0.2), dish.price)
            for dish in dict.fromkeys(chosen)
        )

    def _place(self, order: Order) -> None:
        """Queue an order with all that will happen to it."""
        rng = self._rng
        is_late = rng.random() < _LATE_SHARE
        delay = rng.random() ** 3 * _LONGEST_DELAY if is_late else timedelta(0)
        self._send(order, "late" if is_late else "placed", delay)
        self._recent.append(order)
        fate = rng.random()
        if fate < _CANCELLED_SHARE:
            self._send(next_version(order, rng, 2, 20, status="cancelled"), "cancelled", delay)
            return
        done = next_version(order, rng, 15, 50, status="delivered")
        self._send(done, "delivered", delay)
        if rng.random() < _CORRECTED_SHARE:
            self._send(self._corrected(done, done.updated_at), "corrected")
        if rng.random() < _DELETED_SHARE:
            self._send(next_version(done, rng, 60, 180, op="d"), "deleted")
        if rng.random() < _REDELIVERED_SHARE:
            self._send(done, "redelivered", timedelta(minutes=rng.randrange(1, 120)))
        if rng.random() < _BROKEN_SHARE:
            self._queue(done.updated_at, self._broken(order, order.ordered_at), "broken")

    def _corrected(self, order: Order, after: datetime) -> Order:
        """Return a version in another pane, and often in another restaurant."""
        rng = self._rng
        shift = timedelta(minutes=rng.choice((-90, -35, -10, -5)), seconds=rng.randrange(60))
        restaurant = order.restaurant
        items = order.items
        currency = order.currency
        if rng.random() < 0.5:
            restaurant = rng.choice(self._restaurants)
            currency = restaurant.currency
            items = self._items(restaurant)
        return Order(
            order.order_id,
            restaurant,
            order.customer_id,
            order.ordered_at + shift,
            order.status,
            currency,
            items,
            after + timedelta(seconds=rng.randrange(1, 240), microseconds=rng.randrange(1_000_000)),
            "u",
        )

    def _surprise(self, start: datetime, end: datetime) -> None:
        """Queue one of each unpleasant kind, so that no step goes without."""
        rng = self._rng
        inside = start + (end - start) * 0.9
        hours = timedelta(hours=rng.choice((1, 2, 3, 5)), minutes=rng.randrange(60))
        restaurant = self._restaurants[rng.randrange(min(3, len(self._restaurants)))]
        late = self._order(restaurant, start - hours)
        self._queue(inside, late.line(), "late")
        self._recent.append(late)
        known = [order for order in self._recent if order.ordered_at < start]
        if known:
            old = known[-rng.randrange(1, min(len(known), 200) + 1)]
            self._queue(inside, self._corrected(old, start).line(), "corrected")
            old = known[-rng.randrange(1, min(len(known), 200) + 1)]
            gone = next_version(old, rng, 0, 0, status="cancelled", at=inside)
            self._queue(inside, gone.line(), "cancelled")
            again = known[-rng.randrange(1, min(len(known), 200) + 1)]
            self._queue(inside, again.line(), "redelivered")
        self._queue(inside, self._broken(late, end), "broken")

    def _broken(self, order: Order, now: datetime) -> str:
        return broken_line(order, next(self._numbers), now, self._rng)

    def _send(self, order: Order, kind: Kind, delay: timedelta = timedelta(0)) -> None:
        transit = timedelta(seconds=1 + self._rng.expovariate(0.5))
        self._queue(order.updated_at + transit + delay, order.line(), kind)

    def _queue(self, at: datetime, line: str, kind: Kind) -> None:
        heapq.heappush(self._waiting, _Arrival(at, next(self._numbers), line, kind))

    def _arrived(self, end: datetime, counts: Counter[str]) -> Iterator[str]:
        while self._waiting and self._waiting[0].at < end:
            arrival = heapq.heappop(self._waiting)
            counts[arrival.kind] += 1
            yield arrival.line

    def _change_menus(
        self, landing: StoragePlace, name: str, at: datetime, counts: Counter[str]
    ) -> Iterator[StoragePlace]:
        """Rename a dish, and rename a restaurant or move it to another city."""
        rng = self._rng
        chosen = rng.randrange(len(self._restaurants))
        restaurant = self._restaurants[chosen]
        restaurant = restaurant.moved() if self._steps % 4 else restaurant.renamed()
        self._restaurants[chosen] = restaurant
        dish = rng.choice(restaurant.dishes)
        new_name = renamed_dish(dish.name, self._steps)
        counts["restaurant"] += 1
        counts["dish"] += 1
        yield from self._deliver(
            landing / "restaurants", f"{name}.jsonl", [restaurant_line(restaurant, at, "u")]
        )
        yield from self._deliver(
            landing / "dishes",
            f"{name}.jsonl",
            [dish_line(dish.dish_id, dish.restaurant_id, new_name, at, "u")],
        )

    def _write_restaurants(
        self, landing: StoragePlace, at: datetime, counts: Counter[str]
    ) -> Sequence[StoragePlace]:
        lines = [restaurant_line(restaurant, at, "c") for restaurant in self._restaurants]
        counts["restaurant"] += len(lines)
        return self._deliver(landing / "restaurants", "history.jsonl", lines)

    def _write_menus(
        self, landing: StoragePlace, at: datetime, counts: Counter[str]
    ) -> Sequence[StoragePlace]:
        lines = [
            dish_line(dish.dish_id, dish.restaurant_id, dish.name, at, "c")
            for restaurant in self._restaurants
            for dish in restaurant.dishes
        ]
        counts["dish"] += len(lines)
        return self._deliver(landing / "dishes", "history.jsonl", lines)
