"""The writer of the test under fire: publishes snapshots that say of themselves which they are.

Arguments: URL of the store, last snapshot, failpoint (or `none`). A line of its input says up to
which snapshot it may go. It goes on from whatever the store shows, as a runner that was killed
does.
"""

from __future__ import annotations

import sys
import zlib
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from livemart.failpoints import arm, failpoint
from livemart.store import connections
from livemart.store.store import Store, read_state
from tests.store.stores import KEYS as MART_KEYS
from tests.store.stores import NOON, fill_store, reference_tables

RESTAURANTS = [f"r{number:02}" for number in range(20)]
SLOTS = range(5)
KEYS = {**MART_KEYS, "balances": ("restaurant_id", "slot")}
_SCHEMAS = {name: table.schema for name, table in reference_tables([]).items()}
_BALANCES = pa.schema([("restaurant_id", pa.string()), ("slot", pa.int32()), ("value", pa.int64())])


@cache
def balances(restaurant: str, number: int) -> dict[int, int]:
    """Return value by slot at a snapshot: rows come, change at different times, and go."""
    found = {}
    for slot in SLOTS:
        luck = zlib.crc32(f"{restaurant}/{slot}".encode())
        if zlib.crc32(f"{restaurant}/{slot}/{number // 3}".encode()) % 5:
            found[slot] = (number + luck % 4) // 4
    return found


def tables_of(number: int) -> dict[str, pa.Table]:
    """Return the models of a snapshot; every figure of the owner's models is its number."""
    money = Decimal(number).quantize(Decimal("0.01"))
    metrics: list[dict[str, Any]] = []
    dishes: list[dict[str, Any]] = []
    panes: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for restaurant in RESTAURANTS:
        for hours in (1, 24, 168):
            metrics.append(
                {
                    "restaurant_id": restaurant,
                    "restaurant_name": f"Name of {restaurant}",
                    "time_zone": "UTC",
                    "currency_code": "EUR",
                    "window_hours": hours,
                    "order_count": number,
                    "sales_amount": money,
                    "average_order_value": money,
                    "unique_customers": number,
                    "previous_order_count": number,
                    "previous_sales_amount": money,
                    "previous_average_order_value": money,
                }
            )
            dishes += [
                {
                    "restaurant_id": restaurant,
                    "dish_id": f"d{rank}",
                    "dish_name": f"Dish {rank}",
                    "window_hours": hours,
                    "dish_rank": rank,
                    "quantity_sold": number,
                    "sales_amount": money,
                }
                for rank in (1, 2, 3)
            ]
        for start in (NOON - timedelta(days=20), NOON - timedelta(minutes=5)):
            sums = {f"order_count_{hours}h": number for hours in (1, 24, 168)}
            amounts = {f"sales_amount_{hours}h": money for hours in (1, 24, 168)}
            panes.append(
                {
                    "restaurant_id": restaurant,
                    "order_count": number,
                    "sales_amount": money,
                    "pane_started_at": start,
                    "pane_date": start.date(),
                    **sums,
                    **amounts,
                }
            )
        rows += [
            {"restaurant_id": restaurant, "slot": slot, "value": value}
            for slot, value in balances(restaurant, number).items()
        ]
    found = {
        "restaurant_order_metrics": metrics,
        "restaurant_top_dishes": dishes,
        "restaurant_sales_trend": panes,
    }
    tables = {name: pa.Table.from_pylist(found[name], _SCHEMAS[name]) for name in found}
    return {**tables, "balances": pa.Table.from_pylist(rows, _BALANCES)}


def publish(url: str, number: int) -> None:
    """Publish one snapshot."""
    fill_store(
        url, tables_of(number), KEYS, snapshot_id=number, as_of=NOON, is_start=True, step=failpoint
    )


def main(url: str, last: int) -> None:
    """Publish all snapshots that are missing up to `last`, each when it is allowed."""
    store = Store.open(url)
    with store.begin() as connection:
        published = read_state(connection).published
    store.close()
    allowed = 0
    for number in range(published.snapshot_id + 1 if published else 1, last + 1):
        while allowed < number:
            allowed = int(sys.stdin.readline())
        publish(url, number)


if __name__ == "__main__":
    arm("" if sys.argv[3] == "none" else sys.argv[3])
    # A slow machine is not a store that does not answer.
    connections._BUSY_SECONDS = 600
    main(sys.argv[1], int(sys.argv[2]))
