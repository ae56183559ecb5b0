"""The owner's three questions in plain SQL over the raw orders: what the page has to say."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from tests.e2e.raw_orders import RawOrders
from tests.store.stores import DISHES

_TABLES = """
create table orders (order_id text primary key, restaurant_id text, customer_id text,
    ordered_at integer, status text, currency text);
create table items (order_id text, dish_id text, quantity integer, price_cents integer);
create table restaurants (restaurant_id text primary key, currency text);
create table dishes (dish_id text primary key, dish_name text);
create index orders_by_time on orders (restaurant_id, ordered_at);
create index items_by_order on items (order_id);
"""
_COUNTED = """
    from orders o
    join restaurants r on r.restaurant_id = o.restaurant_id and r.currency = o.currency
    where o.restaurant_id = :restaurant and o.status <> 'cancelled'
        and o.ordered_at >= :start and o.ordered_at < :stop
"""
_TOTALS = f"""
select count(*), coalesce(sum(t.cents), 0), count(distinct t.customer_id)
from (
    select o.customer_id, (
        select sum(i.quantity * i.price_cents) from items i where i.order_id = o.order_id
    ) as cents
    {_COUNTED}
) t
"""
_TOP = f"""
select d.dish_name, sum(i.quantity) as sold, sum(i.quantity * i.price_cents) as cents
from items i join dishes d on d.dish_id = i.dish_id
where i.order_id in (select o.order_id {_COUNTED})
group by d.dish_id, d.dish_name order by sold desc, cents desc, d.dish_id limit 3
"""


@dataclass(frozen=True, slots=True)
class Totals:
    """The figures of a window."""

    order_count: int
    sales_amount: Decimal
    unique_customers: int


class Oracle:
    """Answers from the raw orders alone."""

    def __init__(self, raw: RawOrders) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.executescript(_TABLES)
        self._db.executemany(
            "insert into restaurants values (?, ?)",
            [(key, currency) for key, (_, _, currency) in raw.restaurants.items()],
        )
        self._db.executemany("insert into dishes values (?, ?)", raw.dish_names.items())
        for row in raw.rows:
            order = row.order
            values = (
                order.order_id,
                order.restaurant_id,
                order.customer_id,
                _microseconds(order.ordered_at),
                row.status,
                row.currency,
            )
            self._db.execute("insert into orders values (?, ?, ?, ?, ?, ?)", values)
            self._db.executemany(
                "insert into items values (?, ?, ?, ?)",
                [
                    (order.order_id, dish_id, quantity, int(DISHES[dish_id][1] * 100))
                    for dish_id, quantity in order.quantities
                ],
            )

    def close(self) -> None:
        """Forget everything."""
        self._db.close()

    def totals(
        self, restaurant_id: str, as_of: datetime, hours: int, *, back: timedelta = timedelta(0)
    ) -> Totals:
        """Return the totals of the window of so many hours that ends `back` before `as_of`."""
        return self.between(restaurant_id, as_of - back - timedelta(hours=hours), as_of - back)

    def between(self, restaurant_id: str, start: datetime, stop: datetime) -> Totals:
        """Return the totals of `[start, stop)`."""
        orders, cents, customers = self._db.execute(
            _TOTALS, _bounds(restaurant_id, start, stop)
        ).fetchone()
        return Totals(orders, Decimal(cents) / 100, customers)

    def top_dishes(
        self, restaurant_id: str, as_of: datetime, hours: int
    ) -> list[tuple[str, int, Decimal]]:
        """Return name, portions and sales of the three dishes sold most."""
        bounds = _bounds(restaurant_id, as_of - timedelta(hours=hours), as_of)
        return [
            (name, sold, Decimal(cents) / 100)
            for name, sold, cents in self._db.execute(_TOP, bounds)
        ]


def _bounds(restaurant_id: str, start: datetime, stop: datetime) -> dict[str, object]:
    return {
        "restaurant": restaurant_id,
        "start": _microseconds(start),
        "stop": _microseconds(stop),
    }


def _microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=moment.tzinfo)) // timedelta(microseconds=1)
