"""A serving store as large as a mart's, and a writer that publishes one snapshot after the other.

`python -m bench.serving_store URL RESTAURANTS COUNT EVERY_S` publishes, and prints of each snapshot
the id and the instant of its commit, on the clock that all processes of a machine share.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from livemart.arrow.bags import WEIGHT
from livemart.epoch import MICROSECOND, epoch_micros
from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import publish
from livemart.publish.transaction import Publishing
from livemart.state.snapshots import ModelState, Snapshot
from livemart.store.store import Store, read_state

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PANE = timedelta(minutes=5)
DAYS = 15
WINDOWS = (1, 24, 168)
KEYS = {
    "restaurant_order_metrics": ("restaurant_id", "window_hours"),
    "restaurant_top_dishes": ("restaurant_id", "window_hours", "dish_rank"),
    "restaurant_sales_trend": ("restaurant_id", "pane_started_at"),
}
# Two panes of five have an order.
_DENSITY = 0.4

Ints = npt.NDArray[np.int64]


def as_of(number: int) -> datetime:
    """Return where the windows of a snapshot end."""
    return START + PANE * number


def rows_at(model: str, restaurants: int, number: int) -> pa.Table:
    """Return the rows of a model that are of this snapshot alone: of the trend, its last pane."""
    names = pa.array([restaurant_id(each) for each in range(restaurants)])
    if model == "restaurant_sales_trend":
        started = np.full(restaurants, epoch_micros(as_of(number) - PANE), dtype=np.int64)
        return _trend(names, started, np.full(restaurants, 1 + number % 5, dtype=np.int64))
    hours = np.tile(np.array(WINDOWS, dtype=np.int64), restaurants)
    if model == "restaurant_order_metrics":
        orders = hours * 4 + number
        return pa.table(
            {
                "restaurant_id": names.take(pa.array(np.repeat(np.arange(restaurants), 3))),
                "restaurant_name": pa.array([f"Restaurant {n // 3}" for n in range(len(hours))]),
                "time_zone": pa.array(["Europe/Berlin"] * len(hours)),
                "currency_code": pa.array(["EUR"] * len(hours)),
                "window_hours": pa.array(hours, pa.int32()),
                "order_count": pa.array(orders),
                "sales_amount": _money(orders * 2_150),
                "average_order_value": _money(np.full(len(hours), 2_150, dtype=np.int64)),
                "unique_customers": pa.array(orders // 2),
                "previous_order_count": pa.array(orders - 1),
                "previous_sales_amount": _money((orders - 1) * 2_150),
                "previous_average_order_value": _money(np.full(len(hours), 2_150, dtype=np.int64)),
            }
        )
    count = restaurants * 9
    ranks = np.tile(np.array([1, 2, 3], dtype=np.int64), restaurants * 3)
    sold = np.repeat(hours, 3) * 3 + number - ranks + 3
    return pa.table(
        {
            "restaurant_id": names.take(pa.array(np.repeat(np.arange(restaurants), 9))),
            "dish_id": pa.array([f"d{n % 3}" for n in range(count)]),
            "dish_name": pa.array([f"Dish number {n % 3}" for n in range(count)]),
            "window_hours": pa.array(np.repeat(hours, 3), pa.int32()),
            "dish_rank": pa.array(ranks, pa.int32()),
            "quantity_sold": pa.array(sold),
            "sales_amount": _money(sold * 950),
        }
    )


def history(restaurants: int) -> pa.Table:
    """Return the panes of 15 days before the first snapshot."""
    rng = np.random.default_rng(20260301)
    panes = np.arange(DAYS * 288, dtype=np.int64)
    starts, owners = [], []
    for each in range(restaurants):
        chosen = panes[rng.random(len(panes)) < _DENSITY]
        starts.append(epoch_micros(START - timedelta(days=DAYS)) + chosen * (PANE // MICROSECOND))
        owners.append(np.full(len(chosen), each))
    names = pa.array([restaurant_id(each) for each in range(restaurants)])
    owner = np.concatenate(owners)
    return _trend(names.take(pa.array(owner)), np.concatenate(starts), 1 + owner % 5)


def restaurant_id(number: int) -> str:
    """Return the id of a restaurant."""
    return f"r{number:04}"


def publish_number(store: Store, restaurants: int, number: int) -> float:
    """Publish a snapshot; return the instant of its commit, in seconds of the monotonic clock."""
    committed = 0.0

    def step(name: str) -> None:
        nonlocal committed
        if name == "publish.after":
            committed = time.monotonic()

    class Tables:
        def change(self, relation: str, from_version: int, to_version: int) -> pa.Table:
            (new,) = self.rows_of(relation, to_version)
            model = relation.removeprefix("gold.")
            if model == "restaurant_sales_trend":
                return new
            before = rows_at(model, restaurants, from_version)
            return pa.concat_tables([_weighted(before, -1), new])

        def rows(self, relation: str, version: int) -> Iterator[pa.Table]:
            if relation == "gold.restaurant_sales_trend":
                yield _weighted(history(restaurants), 1)
            yield from self.rows_of(relation, version)

        def rows_of(self, relation: str, version: int) -> Iterator[pa.Table]:
            yield _weighted(rows_at(relation.removeprefix("gold."), restaurants, version), 1)

    specs = [
        ServedSpec(name, f"model.bench.{name}", f"gold.{name}", key) for name, key in KEYS.items()
    ]
    how = Publishing(tenant_column="restaurant_id", step=step)
    publish(store, _snapshot(number), specs, Tables(), how, is_start=number == 1)
    return committed


def _trend(names: pa.Array, started: Ints, orders: Ints) -> pa.Table:
    columns: dict[str, pa.Array] = {
        "restaurant_id": names,
        "order_count": pa.array(orders),
        "sales_amount": _money(orders * 2_150),
    }
    for hours in WINDOWS:
        columns[f"order_count_{hours}h"] = pa.array(orders * hours)
        columns[f"sales_amount_{hours}h"] = _money(orders * hours * 2_150)
    columns["pane_started_at"] = pa.array(started, pa.timestamp("us", tz="UTC"))
    columns["pane_date"] = pa.array(started // 86_400_000_000, pa.int32()).cast(pa.date32())
    return pa.table(columns)


def _money(cents: Ints) -> pa.Array:
    """Return amounts that are not negative, exactly: 128 bits each, the low half first."""
    wide = np.zeros((len(cents), 2), dtype=np.int64)
    wide[:, 0] = cents
    kind = pa.decimal128(18, 2)
    return pa.Array.from_buffers(kind, len(cents), [None, pa.py_buffer(wide.tobytes())])


def _weighted(table: pa.Table, weight: int) -> pa.Table:
    return table.append_column(WEIGHT, pa.array(np.full(table.num_rows, weight, dtype=np.int64)))


def _snapshot(number: int) -> Snapshot:
    state = ModelState(number, "f", "region", None, 0, 1, 0, "table")
    models = {f"model.bench.{name}": state for name in KEYS}
    moment = as_of(number)
    return Snapshot(
        number, "bench", number, "refresh", moment, {}, models, {}, "published", moment, moment
    )


def main(url: str, restaurants: int, count: int, every_s: float) -> None:
    """Publish `count` snapshots behind what the store shows."""
    store = Store.open(url)
    try:
        with store.begin() as connection:
            published = read_state(connection).published
        first = published.snapshot_id + 1 if published else 1
        for number in range(first, first + count):
            committed = publish_number(store, restaurants, number)
            print(json.dumps({"snapshot_id": number, "committed_s": committed}), flush=True)
            time.sleep(every_s)
    finally:
        store.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
