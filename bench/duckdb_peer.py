"""The peer: the mart's answers in DuckDB, kept up to date by hand with upserted panes.

A careful engineer would write this for one machine: stored versions are looked up, panes move by
the difference, windows are added up from panes. Models and answers are those of the mart; only the
hourly sketches are missing, as DuckDB cannot store one: its estimate reads the window's orders.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

_NAIVE = pa.timestamp("us")
_WINDOWS = (1, 24, 168)
_PANE_MINUTES = 5
_ORDER_KINDS = ("current", "previous", "compared", "last_week")
_CUSTOMER_KINDS = ("current", "compared", "last_week")

_PREPARED = """
    select order_id, o.restaurant_id, customer_id, ordered_at, items, o.updated_at,
        cast(coalesce(list_sum([item.quantity * item.unit_price for item in items]), 0)
            as decimal(18, 2)) as amount,
        o.status <> 'cancelled' and o.currency_code = r.currency_code as counts
    from {orders} as o left join restaurants as r using (restaurant_id)
"""
_ORDER_PANES = """
    select restaurant_id, time_bucket(interval 5 minute, ordered_at) as pane,
        cast(sum(sign) as bigint) as order_count,
        cast(sum(sign * amount) as decimal(18, 2)) as sales
    from {orders} where counts group by all
"""
_DISH_PANES = """
    select restaurant_id, item.dish_id as dish_id,
        time_bucket(interval 5 minute, ordered_at) as pane,
        cast(sum(sign) as bigint) as item_count,
        cast(sum(sign * item.quantity) as bigint) as quantity,
        cast(sum(sign * item.quantity * item.unit_price) as decimal(18, 2)) as sales
    from (select restaurant_id, ordered_at, sign, unnest(items) as item from {orders} where counts)
    group by all
"""
_TREND = "select restaurant_id, pane, order_count, sales, " + ", ".join(
    f"cast(sum({name}) over (partition by restaurant_id order by pane"
    f" range between interval {hours * 60 - 5} minute preceding and current row) as {kind})"
    f" as {name}_{hours}h"
    for hours in _WINDOWS
    for name, kind in (("order_count", "bigint"), ("sales", "decimal(18, 2)"))
)


class DuckDBPeer:
    """The mart in one DuckDB file. Times are UTC without a zone."""

    def __init__(self, file: Path, *, memory: str = "4GB", threads: int = 2) -> None:
        self._db = duckdb.connect(
            str(file), config={"memory_limit": memory, "threads": str(threads)}
        )

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def load(
        self, restaurants: pa.Table, dishes: pa.Table, chunks: Iterable[pa.Table], as_of: datetime
    ) -> None:
        """Fill all tables from a history, chunks in time order."""
        self._store("restaurants", restaurants)
        self._store("dishes", dishes)
        for number, chunk in enumerate(chunks):
            self._db.register("given", _naive(chunk))
            prepared = _PREPARED.format(orders="given")
            verb = "insert into orders" if number else "create table orders as"
            self._db.execute(f"{verb} {prepared}")
            self._db.execute(
                ("insert into arrivals" if number else "create table arrivals as")
                + _arrivals(as_of)
            )
        signed = "(select *, 1 as sign from orders)"
        # In time order, so that recent rows are together.
        self._db.execute(
            f"create table order_panes as {_ORDER_PANES.format(orders=signed)} order by pane"
        )
        self._db.execute(
            f"create table dish_panes as {_DISH_PANES.format(orders=signed)} order by pane"
        )
        self._db.execute(f"create table trend as {_TREND} from order_panes")
        self._db.unregister("given")
        self._add_up(as_of)

    def upsert(self, orders: pa.Table, as_of: datetime) -> None:
        """Take one batch, one transaction."""
        db = self._db
        db.register("given", _naive(orders))
        db.execute("begin")
        db.execute("create or replace temp table fresh as " + _PREPARED.format(orders="given"))
        db.execute(
            "create or replace temp table moved as "
            "select o.*, -1 as sign from orders as o join fresh as f using (order_id) "
            "where f.updated_at > o.updated_at union all "
            "select f.*, 1 from fresh as f left join orders as o using (order_id) "
            "where o.order_id is null or f.updated_at > o.updated_at"
        )
        db.execute(
            "merge into orders as o using (select * exclude (sign) from moved where sign = 1) as f "
            "on o.order_id = f.order_id when matched then update when not matched then insert"
        )
        db.execute("insert into arrivals" + _arrivals(as_of))
        self._add_panes("order_panes", _ORDER_PANES, ("restaurant_id",), ("order_count", "sales"))
        self._add_panes(
            "dish_panes",
            _DISH_PANES,
            ("restaurant_id", "dish_id"),
            ("item_count", "quantity", "sales"),
        )
        self._move_trend()
        self._add_up(as_of)
        db.execute("commit")
        db.unregister("given")

    def metrics(self) -> list[tuple[Any, ...]]:
        """Return restaurant_order_metrics: names and amounts, key: restaurant and window."""
        return self._db.execute("from metrics").fetchall()

    def top_dishes(self) -> list[tuple[Any, ...]]:
        """Return restaurant_top_dishes, key: restaurant, window and rank."""
        return self._db.execute("from top_dishes").fetchall()

    def trend(self, since: datetime) -> list[tuple[Any, ...]]:
        """Return restaurant_sales_trend of the panes from `since` on."""
        return self._db.execute(f"from trend where pane >= {_literal(since)}").fetchall()

    def _store(self, name: str, rows: pa.Table) -> None:
        self._db.register("given", _naive(rows))
        self._db.execute(f"create table {name} as from given")

    def _add_panes(
        self, table: str, sql: str, key: tuple[str, ...], values: tuple[str, ...]
    ) -> None:
        counted = values[0]
        on = " and ".join(f"t.{name} = d.{name}" for name in (*key, "pane"))
        sums = ", ".join(f"{name} = t.{name} + d.{name}" for name in values)
        changes = f"delta_{table}"
        self._db.execute(f"create or replace temp table {changes} as {sql.format(orders='moved')}")
        self._db.execute(
            f"merge into {table} as t using {changes} as d on {on} "
            f"when matched and t.{counted} + d.{counted} = 0 then delete "
            f"when matched then update set {sums} when not matched then insert"
        )

    def _move_trend(self) -> None:
        """Recompute the panes of each touched restaurant from its first changed pane on."""
        self._db.execute(
            "create or replace temp table touched as "
            "select restaurant_id, min(pane) as since from delta_order_panes group by 1"
        )
        self._db.execute(
            "delete from trend using touched as c "
            "where trend.restaurant_id = c.restaurant_id and trend.pane >= c.since"
        )
        self._db.execute(
            f"insert into trend select t.* from ({_TREND} from ("
            "select p.* from order_panes as p join touched as c using (restaurant_id) "
            "where p.pane >= c.since - interval 168 hour "
            "and p.pane >= (select min(since) from touched) - interval 168 hour"
            ")) as t join touched as c using (restaurant_id) where t.pane >= c.since"
        )

    def _add_up(self, as_of: datetime) -> None:
        for statement in _windows(_literal(as_of)):
            self._db.execute(statement)


def _windows(as_of: str) -> list[str]:
    """Return the statements that compute everything that ends at `as_of`."""

    def of(column: str, hours: int, back: int, end_minutes: int) -> str:
        return (
            f"{column} >= {as_of} - interval {hours + back} hour "
            f"and {column} < {as_of} - interval {back * 60 + end_minutes} minute"
        )

    def kinds(column: str, hours: int) -> dict[str, str]:
        return {
            "current": of(column, hours, 0, 0),
            "previous": of(column, hours, hours, 0),
            "compared": of(column, hours, 0, _PANE_MINUTES),
            "last_week": of(column, hours, 168, _PANE_MINUTES),
        }

    orders = " union all ".join(
        f"select restaurant_id, {hours} as window_hours, '{kind}' as kind, "
        "sum(order_count) as order_count, cast(sum(sales) as decimal(18, 2)) as sales "
        f"from order_panes where {during} group by 1"
        for hours in _WINDOWS
        for kind, during in kinds("pane", hours).items()
    )
    dishes = " union all ".join(
        f"select restaurant_id, dish_id, {hours} as window_hours, "
        "sum(quantity) as quantity, cast(sum(sales) as decimal(18, 2)) as sales "
        f"from dish_panes where {of('pane', hours, 0, 0)} group by 1, 2"
        for hours in _WINDOWS
    )
    customers = " union all ".join(
        f"select restaurant_id, {hours} as window_hours, '{kind}' as kind, "
        f"count(distinct customer_id) as customers from orders where counts and {during} group by 1"
        for hours in _WINDOWS
        for kind, during in kinds("ordered_at", hours).items()
        if kind in _CUSTOMER_KINDS
    )
    whole = f"date_trunc('hour', {as_of})"
    estimates = " union all ".join(
        f"select restaurant_id, {hours} as window_hours, approx_count_distinct(customer_id) "
        f"as customers from orders where counts and ordered_at < {whole} "
        f"and ordered_at >= {whole} - interval {hours} hour group by 1"
        for hours in (24, 168)
    )
    # Half up in whole cents: DuckDB divides decimals as doubles.
    average = (
        "cast((cast(200 * {0}.sales as hugeint) + {0}.order_count) // (2 * {0}.order_count) "
        "* 0.01::decimal(3, 2) as decimal(18, 2))"
    )
    figures = []
    for kind in _ORDER_KINDS:
        figures += [
            f"coalesce({kind}_order_windows.order_count, 0)::bigint",
            f"coalesce({kind}_order_windows.sales, 0)::decimal(18, 2)",
            average.format(f"{kind}_order_windows"),
        ]
        if kind in _CUSTOMER_KINDS:
            figures.append(f"coalesce({kind}_customers_counted.customers, 0)::bigint")
    return [
        f"create or replace table order_windows as {orders}",
        f"create or replace table dish_windows as {dishes}",
        f"create or replace table customers_counted as {customers}",
        f"create or replace table customer_estimates as {estimates}",
        "create or replace table metrics as select r.restaurant_id, r.restaurant_name, "
        f"r.time_zone, r.currency_code, w.window_hours, {', '.join(figures)} "
        "from restaurants as r cross join (select unnest([1, 24, 168]) as window_hours) as w "
        + " ".join(
            f"left join {table} as {kind}_{table} on {kind}_{table}.kind = '{kind}' "
            f"and {kind}_{table}.restaurant_id = r.restaurant_id "
            f"and {kind}_{table}.window_hours = w.window_hours"
            for table, compared in (
                ("order_windows", _ORDER_KINDS),
                ("customers_counted", _CUSTOMER_KINDS),
            )
            for kind in compared
        ),
        "create or replace table top_dishes as select t.restaurant_id, t.dish_id, "
        "coalesce(d.dish_name, t.dish_id), t.window_hours, t.dish_rank, t.quantity::bigint, "
        "t.sales from (select *, row_number() over (partition by restaurant_id, window_hours "
        "order by quantity desc, sales desc, dish_id) as dish_rank from dish_windows "
        "qualify dish_rank <= 3) as t left join dishes as d using (dish_id)",
    ]


def _arrivals(landed_at: datetime) -> str:
    return (
        " select order_id, restaurant_id, status, ordered_at, updated_at, "
        f"{_literal(landed_at)} as landed_at, "
        "time_bucket(interval 5 minute, ordered_at) as pane, "
        f"pane + interval 5 minute <= {_literal(landed_at)} as is_late from given"
    )


def _literal(moment: datetime) -> str:
    return f"timestamp '{moment:%Y-%m-%d %H:%M:%S.%f}'"


def _naive(rows: pa.Table) -> pa.Table:
    for index, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            rows = rows.set_column(index, column.name, rows.column(index).cast(_NAIVE))
    return rows
