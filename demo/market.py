"""A market with habits: its orders come late, twice, corrected, cancelled and broken, as in life.

Everything follows from the seed and from the calls made, so that a run can be repeated exactly.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import random
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal

from demo.catalogue import Restaurant, open_restaurants

Kind = Literal[
    "placed", "delivered", "cancelled", "corrected", "deleted", "late", "redelivered", "broken",
    "restaurant", "dish",
]  # fmt: skip

# Share of a day's orders in each hour of the local day: a lunch, a dinner, few at night.
_HOURS = (
    0.6, 0.3, 0.2, 0.1, 0.1, 0.2, 0.5, 1.2, 2.0, 2.2, 3.0, 7.0,
    11.0, 9.0, 4.5, 3.0, 3.5, 6.0, 11.5, 13.0, 10.0, 6.0, 3.5, 1.6,
)  # fmt: skip
# Monday to Sunday.
_WEEKDAYS = (0.8, 0.85, 0.9, 1.0, 1.25, 1.35, 1.1)

_LATE_SHARE = 0.02
_LONGEST_DELAY = timedelta(hours=6)
_CANCELLED_SHARE = 0.04
_CORRECTED_SHARE = 0.01
_DELETED_SHARE = 0.002
_FOREIGN_SHARE = 0.001
_REDELIVERED_SHARE = 0.005
_BROKEN_SHARE = 0.001
_REMEMBERED = 2_000


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


@dataclass(frozen=True, slots=True)
class Delivery:
    """Files that were handed over, and how many records of each kind they hold."""

    files: tuple[Path, ...]
    counts: Mapping[str, int]

    @property
    def records(self) -> int:
        """All lines, broken ones included."""
        return sum(self.counts.values())


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
    ) -> None:
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

    def history(self, landing: Path, end: datetime, *, days: int = 15) -> Delivery:
        """Hand over menus and the orders of the days before `end`, one file a day of arrival.

        Args:
            landing: the landing folder; made if missing.
            end: first instant that is not history, UTC.
            days: length of the history.
        """
        start = end - timedelta(days=days)
        counts: Counter[str] = Counter()
        files = [self._write_menus(landing, start, counts)]
        files.append(self._write_restaurants(landing, start, counts))
        for order in self._orders(start, end):
            self._place(order)
        day = start
        while day < end:
            following = min(day + timedelta(days=1), end)
            lines = self._arrived(following, counts)
            files.append(_hand_over(landing / "orders", f"history-{day:%Y%m%dT%H%M}.jsonl", lines))
            day = following
        return Delivery(tuple(files), counts)

    def live_step(
        self, landing: Path, start: datetime, end: datetime, *, orders: int | None = None
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
        files = []
        for order in self._orders(start, end, exactly=orders):
            self._place(order)
        self._surprise(start, end)
        lines = list(self._arrived(end, counts))
        name = f"live-{self._steps:06d}-{end:%Y%m%dT%H%M%S}"
        files.append(_hand_over(landing / "orders", f"{name}.jsonl", lines))
        if self._steps % 3 == 0:
            # A gateway that heard no answer sends the same file again, under a new name.
            counts["redelivered"] += len(lines)
            files.append(_hand_over(landing / "orders", f"{name}-again.jsonl", lines))
        if self._steps % 2 == 0:
            files.extend(self._change_menus(landing, name, end, counts))
        return Delivery(tuple(files), counts)

    def _orders(
        self, start: datetime, end: datetime, *, exactly: int | None = None
    ) -> Iterator[Order]:
        """Return new orders of [start, end), in the order of their time."""
        rng = self._rng
        hour = start
        while hour < end:
            following = min(
                hour.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1), end
            )
            pulls = list(itertools.accumulate(_pull(each, hour) for each in self._restaurants))
            share = (following - hour) / timedelta(days=1)
            if exactly is None:
                expected = self._orders_per_day * share * pulls[-1]
                count = int(expected) + (rng.random() < expected % 1)
            else:
                count = round(exactly * ((following - start) / (end - start))) - round(
                    exactly * ((hour - start) / (end - start))
                )
            width = (following - hour) // timedelta(microseconds=1)
            for offset in sorted(rng.randrange(width) for _ in range(count)):
                chosen = bisect_right(pulls, rng.random() * pulls[-1])
                restaurant = self._restaurants[min(chosen, len(pulls) - 1)]
                yield self._order(restaurant, hour + timedelta(microseconds=offset))
            hour = following

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
            self._send(_next(order, rng, 2, 20, status="cancelled"), "cancelled", delay)
            return
        done = _next(order, rng, 15, 50, status="delivered")
        self._send(done, "delivered", delay)
        if rng.random() < _CORRECTED_SHARE:
            self._send(self._corrected(done, done.updated_at), "corrected")
        if rng.random() < _DELETED_SHARE:
            self._send(_next(done, rng, 60, 180, op="d"), "deleted")
        if rng.random() < _REDELIVERED_SHARE:
            self._send(done, "redelivered", timedelta(minutes=rng.randrange(1, 120)))
        if rng.random() < _BROKEN_SHARE:
            self._queue(done.updated_at, self._broken(order, order.ordered_at), "broken")

    def _corrected(self, order: Order, after: datetime) -> Order:
        """Return a version that lies in another pane, and often in another restaurant."""
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
            gone = _next(old, rng, 0, 0, status="cancelled", at=inside)
            self._queue(inside, gone.line(), "cancelled")
            again = known[-rng.randrange(1, min(len(known), 200) + 1)]
            self._queue(inside, again.line(), "redelivered")
        self._queue(inside, self._broken(late, end), "broken")

    def _broken(self, order: Order, now: datetime) -> str:
        """Return a record that must become a dead letter: of each sort in turn."""
        record = json.loads(order.line())
        record["order_id"] = f"broken-{next(self._numbers)}"
        sort = self._rng.randrange(5)
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
        self, landing: Path, name: str, at: datetime, counts: Counter[str]
    ) -> Iterator[Path]:
        """Rename a dish, and rename a restaurant or move it to another time zone."""
        rng = self._rng
        chosen = rng.randrange(len(self._restaurants))
        restaurant = self._restaurants[chosen]
        restaurant = restaurant.moved() if self._steps % 4 else restaurant.renamed()
        self._restaurants[chosen] = restaurant
        dish = rng.choice(restaurant.dishes)
        counts["restaurant"] += 1
        counts["dish"] += 1
        yield _hand_over(
            landing / "restaurants", f"{name}.jsonl", [_restaurant_line(restaurant, at, "u")]
        )
        yield _hand_over(
            landing / "dishes",
            f"{name}.jsonl",
            [_dish_line(dish.dish_id, dish.restaurant_id, f"{dish.name} ({self._steps})", at, "u")],
        )

    def _write_restaurants(self, landing: Path, at: datetime, counts: Counter[str]) -> Path:
        lines = [_restaurant_line(restaurant, at, "c") for restaurant in self._restaurants]
        counts["restaurant"] += len(lines)
        return _hand_over(landing / "restaurants", "history.jsonl", lines)

    def _write_menus(self, landing: Path, at: datetime, counts: Counter[str]) -> Path:
        lines = [
            _dish_line(dish.dish_id, dish.restaurant_id, dish.name, at, "c")
            for restaurant in self._restaurants
            for dish in restaurant.dishes
        ]
        counts["dish"] += len(lines)
        return _hand_over(landing / "dishes", "history.jsonl", lines)


def _pull(restaurant: Restaurant, at: datetime) -> float:
    """Return how much a restaurant is ordered from at an hour; 1 / restaurants on average."""
    local = at.astimezone(restaurant.time_zone)
    return restaurant.weight * _HOURS[local.hour] * 24 / sum(_HOURS) * _WEEKDAYS[local.weekday()]


def _next(
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


def _restaurant_line(restaurant: Restaurant, at: datetime, op: str) -> str:
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


def _dish_line(dish_id: str, restaurant_id: str, name: str, at: datetime, op: str) -> str:
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


def _hand_over(folder: Path, name: str, lines: Iterable[str]) -> Path:
    """Write a file under a name that is not read, then rename it: the landing contract."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    hidden = folder / f".{name}.part"
    with hidden.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    os.replace(hidden, target)
    return target
