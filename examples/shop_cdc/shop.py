"""A shop in a PostgreSQL: customers order, pay, cancel and move, prices change; all by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

# `marks` is changed to see how far the connector is.
_TABLES = """
create table customers (customer_id bigint primary key, name text, city text);
create table products (product_id bigint primary key, name text, price numeric(10,2));
create table orders (
    order_id bigint primary key, customer_id bigint, status text, placed_at timestamptz
);
create table order_lines (
    order_id bigint, line_number int, product_id bigint, quantity int, price numeric(10,2),
    primary key (order_id, line_number)
);
create table marks (id serial primary key);
create table signals (id text primary key, type text, data text);
"""
_CITIES = ("Aarhus", "Bergen", "Cádiz", "Delft")
_CUSTOMERS = 20
_PRODUCTS = 12

# What is compared: of each table and model the query that says in PostgreSQL what it must hold.
TABLES = {
    "customers": "select customer_id, name, city from customers",
    "products": "select product_id, name, price from products",
    "orders": "select order_id, customer_id, status, placed_at from orders",
    "order_lines": "select order_id, line_number, product_id, quantity, price from order_lines",
}
_ORDER_TOTALS = """
select
    o.order_id, o.customer_id, o.status, o.placed_at,
    count(l.order_id) as line_count, coalesce(sum(l.quantity * l.price), 0) as order_amount
from orders o left join order_lines l on l.order_id = o.order_id
group by o.order_id
"""
MODELS = {
    "order_totals": _ORDER_TOTALS,
    "city_totals": f"""
select c.city, count(*) as order_count, sum(t.order_amount) as order_amount
from ({_ORDER_TOTALS}) t join customers c on c.customer_id = t.customer_id
group by c.city
""",
    "product_totals": """
select
    p.product_id, p.name as product_name, sum(l.quantity) as quantity,
    sum(l.quantity * l.price) as product_amount
from products p join order_lines l on l.product_id = p.product_id
group by p.product_id
""",
}


class Shop:
    """What happens in the shop.

    Args:
        connect: opens a connection whose transactions are committed by the shop.
        seed: of all that happens.
    """

    def __init__(self, connect: Callable[[], Connection], seed: int) -> None:
        self._connect = connect
        self._random = random.Random(seed)
        self._next_order = 1
        self._placed_at = datetime(2026, 3, 1, 8, tzinfo=UTC)

    def open(self) -> None:
        """Make the tables, and fill in who buys and what is sold."""
        with self._connect() as connection:
            connection.execute(_TABLES)
            for number in range(1, _CUSTOMERS + 1):
                customer = [number, f"customer {number}", self._random.choice(_CITIES)]
                connection.execute("insert into customers values (%s, %s, %s)", customer)
            for number in range(1, _PRODUCTS + 1):
                product = [number, f"product {number}", self._random.randrange(100, 9_000) / 100]
                connection.execute("insert into products values (%s, %s, %s)", product)

    def trade(self, transactions: int) -> None:
        """Let so many things happen, each in a transaction of its own."""
        with self._connect() as connection:
            for _ in range(transactions):
                self._happen(connection)
                connection.commit()

    def _happen(self, connection: Connection) -> None:
        order = self._random.randint(max(1, self._next_order - 30), self._next_order)
        customer = self._random.randint(1, _CUSTOMERS)
        match self._random.randrange(12):
            case 0:
                connection.execute("delete from order_lines where order_id = %s", [order])
                connection.execute("delete from orders where order_id = %s", [order])
            case 1:
                connection.execute(
                    "delete from order_lines where order_id = %s and line_number = 1", [order]
                )
            case 2:
                city = self._random.choice(_CITIES)
                connection.execute(
                    "update customers set city = %s where customer_id = %s", [city, customer]
                )
            case 3:
                connection.execute(
                    "update products set price = price + %s where product_id = %s",
                    [self._random.randrange(-50, 90) / 100, self._random.randint(1, _PRODUCTS)],
                )
            case 4 | 5 | 6:
                status = self._random.choice(["paid", "sent"])
                connection.execute(
                    "update orders set status = %s where order_id = %s", [status, order]
                )
            case _:
                self._order(connection, customer)

    def _order(self, connection: Connection, customer: int) -> None:
        number, self._next_order = self._next_order, self._next_order + 1
        self._placed_at += timedelta(seconds=self._random.randrange(1, 600))
        row = [number, customer, self._placed_at]
        connection.execute("insert into orders values (%s, %s, 'placed', %s)", row)
        for line in range(1, self._random.randint(2, 5)):
            connection.execute(
                "insert into order_lines "
                "select %s, %s, product_id, %s, price from products where product_id = %s",
                [number, line, self._random.randint(1, 4), self._random.randint(1, _PRODUCTS)],
            )
