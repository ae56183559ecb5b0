"""A month of orders as Arrow tables, made column by column: ten million in a minute.

Everything follows from the seed, so that the engine and its peer are given the same orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from livemart.epoch import epoch_micros

END = datetime(2026, 3, 1, 19, tzinfo=UTC)
DAYS = 30
RESTAURANTS = 2_000
DISHES = 40
CUSTOMERS = 500_000
CHUNK = 100_000

_TIME = pa.timestamp("us", tz="UTC")
_PRICE = pa.decimal128(10, 2)
_ITEM = pa.struct([("dish_id", pa.string()), ("quantity", pa.int32()), ("unit_price", _PRICE)])
ORDERS = pa.schema(
    [
        ("order_id", pa.string()),
        ("restaurant_id", pa.string()),
        ("customer_id", pa.string()),
        ("ordered_at", _TIME),
        ("status", pa.string()),
        ("currency_code", pa.string()),
        ("items", pa.list_(pa.field("element", _ITEM))),
        ("updated_at", _TIME),
        ("op", pa.string()),
    ]
)

# Share of a day's orders in each hour: a lunch, a dinner, few at night.
_HOURS = (
    0.6, 0.3, 0.2, 0.1, 0.1, 0.2, 0.5, 1.2, 2.0, 2.2, 3.0, 7.0,
    11.0, 9.0, 4.5, 3.0, 3.5, 6.0, 11.5, 13.0, 10.0, 6.0, 3.5, 1.6,
)  # fmt: skip
_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE
_CANCELLED_SHARE = 0.04
_FOREIGN_SHARE = 0.001

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class History:
    """The market before `END`: `orders` orders of 30 days.

    Customers, restaurants and menus do not depend on the number of orders.
    """

    orders: int
    seed: int
    _times: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_times", self._order_times())

    def restaurants(self) -> pa.Table:
        """Return all restaurants, most popular first; key: restaurant_id."""
        start = END - timedelta(days=DAYS)
        return pa.table(
            {
                "restaurant_id": _RESTAURANT_IDS,
                "restaurant_name": [f"Restaurant {number}" for number in range(RESTAURANTS)],
                "time_zone": ["Europe/Madrid"] * RESTAURANTS,
                "currency_code": ["EUR"] * RESTAURANTS,
                "updated_at": pa.array([start] * RESTAURANTS, _TIME),
                "op": ["c"] * RESTAURANTS,
            }
        )

    def dishes(self) -> pa.Table:
        """Return all menus; key: dish_id."""
        start, count = END - timedelta(days=DAYS), RESTAURANTS * DISHES
        return pa.table(
            {
                "dish_id": _DISH_IDS,
                "restaurant_id": _RESTAURANT_IDS.take(np.arange(count) // DISHES),
                "dish_name": [f"Dish {number % DISHES}" for number in range(count)],
                "updated_at": pa.array([start] * count, _TIME),
                "op": ["c"] * count,
            }
        )

    def chunks(self, since: datetime | None = None) -> Iterator[pa.Table]:
        """Yield orders in the order of their time, 100,000 a table; key: order_id.

        Args:
            since: leave out the tables that end before it.
        """
        end = epoch_micros(END)
        for number, first in enumerate(range(0, self.orders, CHUNK)):
            times = self._times[first : first + CHUNK]
            if since is not None and times[-1] < epoch_micros(since):
                continue
            rng = np.random.default_rng([self.seed, number])
            yield make_orders(rng, times, first, end)

    def _order_times(self) -> Ints:
        """Return the event times in microseconds, sorted."""
        rng = np.random.default_rng([self.seed, 1_000_000])
        start = epoch_micros(END - timedelta(days=DAYS))
        hours = start // _HOUR + np.arange(DAYS * 24 + 1)
        weights = np.array(_HOURS)[hours[:-1] % 24]
        shares = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
        drawn = np.interp(np.sort(rng.random(self.orders)), shares, (hours * _HOUR).astype(float))
        times: Ints = np.minimum(drawn.astype(np.int64), epoch_micros(END) - 1)
        return times


def make_orders(rng: np.random.Generator, times: Ints, first: int, now: int) -> pa.Table:
    """Return one order for each of `times`, with the columns of `ORDERS`.

    Args:
        rng: decides everything but the times.
        times: event times, microseconds since 1970 in UTC.
        first: number of the first order; no two orders share one.
        now: orders that are done by then say so; microseconds.
    """
    count = len(times)
    restaurants = np.searchsorted(_RESTAURANT_SHARES, rng.random(count))
    sizes = 1 + rng.binomial(4, 0.5, count)
    owners = np.repeat(restaurants, sizes)
    dishes = owners * DISHES + np.searchsorted(_DISH_SHARES, rng.random(len(owners)))
    items = pa.StructArray.from_arrays(
        [
            _DISH_IDS.take(pa.array(dishes)),
            pa.array(1 + (rng.random(len(owners)) < 0.2), pa.int32()),
            _decimals(_CENTS[dishes]),
        ],
        fields=list(_ITEM),
    )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    customers = (rng.random(count) ** 2 * CUSTOMERS).astype(np.int64)
    done = times + (15 + rng.random(count) * 35) * _MINUTE
    is_done = done < now
    is_cancelled = is_done & (rng.random(count) < _CANCELLED_SHARE)
    statuses = np.where(is_cancelled, 2, is_done.astype(np.int64))
    columns = [
        _order_ids(times, first),
        _RESTAURANT_IDS.take(pa.array(restaurants)),
        _CUSTOMER_IDS.take(pa.array(customers)),
        pa.array(times).cast(_TIME),
        pa.array(["placed", "delivered", "cancelled"]).take(pa.array(statuses)),
        pa.array(["EUR", "USD"]).take(pa.array((rng.random(count) < _FOREIGN_SHARE) * 1)),
        pa.ListArray.from_arrays(pa.array(offsets), items, type=ORDERS.field("items").type),
        pa.array(np.where(is_done, done, times).astype(np.int64)).cast(_TIME),
        pa.array(["c", "u"]).take(pa.array(is_done * 1)),
    ]
    return pa.table(columns, schema=ORDERS)


def _order_ids(times: Ints, first: int) -> pa.Array:
    """Ids that grow with time keep the look-up of stored orders cheap."""
    millis = pa.array(times // 1_000).cast(pa.string())
    numbers = pa.array(np.arange(first, first + len(times))).cast(pa.string())
    return pc.binary_join_element_wise(millis, pc.utf8_lpad(numbers, 8, "0"), "-")


def _decimals(cents: Ints) -> pa.Array:
    """Return cents as decimal(10,2): 128-bit integers, the lower half first."""
    halves = np.zeros((len(cents), 2), np.int64)
    halves[:, 0] = cents
    return pa.Array.from_buffers(_PRICE, len(cents), [None, pa.py_buffer(halves)])


def _zipf(count: int, exponent: float) -> Floats:
    """Return cumulated shares; the last is 1, so that no draw is above it."""
    weights = 1.0 / np.arange(1, count + 1) ** exponent
    shares: Floats = np.cumsum(weights) / weights.sum()
    shares[-1] = 1.0
    return shares


_RESTAURANT_SHARES = _zipf(RESTAURANTS, 1.0)
_DISH_SHARES = _zipf(DISHES, 0.7)
_RESTAURANT_IDS = pa.array([f"r{number:04}" for number in range(RESTAURANTS)])
_DISH_IDS = pa.array(
    [f"r{number // DISHES:04}-d{number % DISHES:02}" for number in range(RESTAURANTS * DISHES)]
)
_CUSTOMER_IDS = pa.array([f"c{number:06}" for number in range(CUSTOMERS)])
# From 3.00 to 24.00 in steps of ten cents, the same in every run.
_CENTS: Ints = 300 + np.arange(RESTAURANTS * DISHES, dtype=np.int64) * 7_919 % 211 * 10
