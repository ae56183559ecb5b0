"""Filling a serving store in tests: through the real publisher, from tables at hand, without Spark.

`reference_tables` computes the served models of the reference mart from a list of orders, in plain
Python. All that a page or an API shows can be compared with a sum over that list.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from itertools import accumulate, chain

import pyarrow as pa

from livemart.arrow.bags import WEIGHT, net_rows
from livemart.errors import RefreshError
from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import Publication, publish
from livemart.publish.transaction import Publishing
from livemart.state.snapshots import ModelState, Snapshot
from livemart.store.positions import Position
from livemart.store.predicates import ColumnCondition
from livemart.store.reader import StoreReader
from livemart.store.served import NO_PAGES, ChangePage, ModelDescription, ProjectPages
from livemart.store.store import Store
from tests.store.served_tables import Versions

PANE = timedelta(minutes=5)
WEEK = timedelta(days=7)
WINDOWS = (1, 24, 168)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
KEYS: dict[str, tuple[str, ...]] = {
    "restaurant_order_metrics": ("restaurant_id", "window_hours"),
    "restaurant_top_dishes": ("restaurant_id", "window_hours", "dish_rank"),
    "restaurant_sales_trend": ("restaurant_id", "pane_started_at"),
    "order_arrivals": ("arrival_id",),
}
# Name, time zone, currency.
RESTAURANTS: dict[str, tuple[str, str, str]] = {
    "r1": ("Taverna Azul", "Europe/Lisbon", "EUR"),
    "r2": ("Joe's Diner", "America/New_York", "USD"),
    "r3": ("麺処 さくら", "Asia/Tokyo", "JPY"),
}
# Name, price.
DISHES: dict[str, tuple[str, Decimal]] = {
    "d1": ("Joe's Burger", Decimal("9.50")),
    "d2": ("Crème brûlée", Decimal("6.25")),
    "d3": ("Ramen 特製", Decimal("11.00")),
    "d4": ("Espresso", Decimal("1.80")),
    "d5": ("Bacalhau à Brás", Decimal("14.90")),
}
_MONEY = pa.decimal128(18, 2)
_TIME = pa.timestamp("us", tz="UTC")
_SCHEMAS: dict[str, pa.Schema] = {
    "restaurant_order_metrics": pa.schema(
        [
            ("restaurant_id", pa.string()),
            ("restaurant_name", pa.string()),
            ("time_zone", pa.string()),
            ("currency_code", pa.string()),
            ("window_hours", pa.int32()),
            ("order_count", pa.int64()),
            ("sales_amount", _MONEY),
            ("average_order_value", _MONEY),
            ("unique_customers", pa.int64()),
            ("previous_order_count", pa.int64()),
            ("previous_sales_amount", _MONEY),
            ("previous_average_order_value", _MONEY),
            *(
                (f"{kind}_{name}", kind_of_figure)
                for kind in ("compared", "last_week")
                for name, kind_of_figure in (
                    ("order_count", pa.int64()),
                    ("sales_amount", _MONEY),
                    ("average_order_value", _MONEY),
                    ("unique_customers", pa.int64()),
                )
            ),
        ]
    ),
    "restaurant_top_dishes": pa.schema(
        [
            ("restaurant_id", pa.string()),
            ("dish_id", pa.string()),
            ("dish_name", pa.string()),
            ("window_hours", pa.int32()),
            ("dish_rank", pa.int32()),
            ("quantity_sold", pa.int64()),
            ("sales_amount", _MONEY),
        ]
    ),
    "restaurant_sales_trend": pa.schema(
        [
            ("restaurant_id", pa.string()),
            ("order_count", pa.int64()),
            ("sales_amount", _MONEY),
            ("order_count_1h", pa.int64()),
            ("sales_amount_1h", _MONEY),
            ("order_count_24h", pa.int64()),
            ("sales_amount_24h", _MONEY),
            ("order_count_168h", pa.int64()),
            ("sales_amount_168h", _MONEY),
            ("pane_started_at", _TIME),
            ("pane_date", pa.date32()),
        ]
    ),
    "order_arrivals": pa.schema(
        [
            ("arrival_id", pa.string()),
            ("order_id", pa.string()),
            ("restaurant_id", pa.string()),
            ("order_status", pa.string()),
            ("batch_id", pa.int64()),
            ("lateness_seconds", pa.int64()),
            ("transit_seconds", pa.int64()),
            ("is_deletion", pa.bool_()),
            ("is_late", pa.bool_()),
            ("ordered_at", _TIME),
            ("updated_at", _TIME),
            ("landed_at", _TIME),
            ("pane_started_at", _TIME),
            ("changed_pane_started_at", _TIME),
        ]
    ),
}


@dataclass(frozen=True, slots=True)
class Order:
    """An order: portions by dish, when it was placed, and when it landed (a minute later)."""

    order_id: str
    restaurant_id: str
    customer_id: str
    ordered_at: datetime
    quantities: tuple[tuple[str, int], ...]
    landed_at: datetime | None = None

    @property
    def amount(self) -> Decimal:
        """The total of the order."""
        return sum((DISHES[dish][1] * n for dish, n in self.quantities), Decimal("0.00"))

    @property
    def pane(self) -> datetime:
        """When the order's pane began."""
        return pane_of(self.ordered_at)


def pane_of(moment: datetime) -> datetime:
    """Return the start of the 5-minute pane that holds `moment`."""
    return moment - (moment - datetime(2020, 1, 1, tzinfo=UTC)) % PANE


def make_orders(
    until: datetime = NOON, *, days: int = 15, a_day: int = 40, seed: int = 7
) -> list[Order]:
    """Return orders of all restaurants, the same for the same seed, in the order of their time."""
    chance = random.Random(seed)
    orders = []
    for restaurant in RESTAURANTS:
        for number in range(days * a_day):
            ordered_at = until - timedelta(seconds=chance.randrange(1, days * 86_400))
            dishes = chance.sample(sorted(DISHES), chance.randint(1, 3))
            orders.append(
                Order(
                    f"{restaurant}-{number}",
                    restaurant,
                    f"c{chance.randrange(60)}",
                    ordered_at,
                    tuple((dish, chance.randint(1, 4)) for dish in dishes),
                )
            )
    return sorted(orders, key=lambda order: (order.ordered_at, order.order_id))


def reference_tables(
    orders: Iterable[Order] | None = None,
    as_of: datetime = NOON,
    *,
    restaurants: Mapping[str, tuple[str, str, str]] = RESTAURANTS,
    dish_names: Mapping[str, str] | None = None,
) -> dict[str, pa.Table]:
    """Return the served models of the reference mart as of a moment, by name."""
    if (orders, as_of, restaurants, dish_names) == (None, NOON, RESTAURANTS, None):
        return dict(_usual_tables())
    known = [order for order in (make_orders() if orders is None else orders)]
    past = [order for order in known if order.ordered_at < as_of]
    names = {dish: name for dish, (name, _) in DISHES.items()} | dict(dish_names or {})
    rows: dict[str, list[dict[str, object]]] = {
        "restaurant_order_metrics": _metrics(past, as_of, restaurants),
        "restaurant_top_dishes": _top_dishes(past, as_of, names),
        "restaurant_sales_trend": _trend(past),
        "order_arrivals": [_arrival(order) for order in past],
    }
    return {name: pa.Table.from_pylist(rows[name], schema=_SCHEMAS[name]) for name in rows}


@cache
def _usual_tables() -> dict[str, pa.Table]:
    return reference_tables(make_orders())


def fill_store(
    url: str,
    models: Mapping[str, pa.Table],
    keys: Mapping[str, Sequence[str]] = KEYS,
    snapshot_id: int = 1,
    as_of: datetime | None = NOON,
    *,
    epoch: str = "epoch",
    fingerprints: Mapping[str, str] | None = None,
    event_times: Mapping[str, str] | None = None,
    descriptions: Mapping[str, ModelDescription] | None = None,
    pages: ProjectPages = NO_PAGES,
    is_start: bool = False,
    now: datetime | None = None,
    step: Callable[[str], None] = lambda _: None,
    mark: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
) -> Publication | None:
    """Publish tables as a snapshot, through the real publisher.

    A table's version is the snapshot's id; net changes are against the rows that the store holds,
    so that this works from several processes one after the other.
    """
    tests = {name: it.tests for name, it in (descriptions or {}).items()}
    outcomes = {
        test.name: test.outcome
        for test in chain.from_iterable(tests.values())
        if test.outcome is not None
    }
    specs = [
        ServedSpec(
            name,
            f"model.test.{name}",
            f"gold.{name}",
            tuple(keys.get(name, ())),
            (event_times or {}).get(name),
            (descriptions or {}).get(name, ModelDescription()),
            {test.name: test for test in tests.get(name, ())},
        )
        for name in models
    ]
    snapshot = make_snapshot(snapshot_id, models, as_of, epoch=epoch, fingerprints=fingerprints)
    snapshot = mark(replace(snapshot, tests=outcomes))

    def read_change(relation: str, from_version: int | None, to_version: int) -> pa.Table:
        new = models[relation.removeprefix("gold.")]
        try:
            old = None if from_version is None else stored_rows(url, relation, new.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            message = f"{relation}: its schema differs ({error})"
            raise RefreshError("CDF_UNAVAILABLE", message, hint="rebuild") from error
        return net_change(old, new)

    how = Publishing(tenant_column="restaurant_id", step=step)
    if now is not None:
        how = replace(how, now=lambda: now)
    store = Store.open(url)
    try:
        return publish(
            store, snapshot, specs, Versions(read_change), how, is_start=is_start, pages=pages
        )
    finally:
        store.close()


def make_snapshot(
    snapshot_id: int,
    models: Iterable[str],
    as_of: datetime | None = NOON,
    *,
    epoch: str = "epoch",
    fingerprints: Mapping[str, str] | None = None,
    versions: Mapping[str, int] | None = None,
) -> Snapshot:
    """Return a published row of the log in which each model is at version `snapshot_id`."""
    states = {
        f"model.test.{name}": ModelState(
            version=(versions or {}).get(name, snapshot_id),
            fingerprint=(fingerprints or {}).get(name, "f"),
            strategy="region",
            reason=None,
            rows_changed=0,
            took_ms=1,
            generation=0,
            table_id=f"table-{name}",
        )
        for name in models
    }
    moment = as_of or NOON
    return Snapshot(
        snapshot_id,
        epoch,
        snapshot_id,
        "refresh",
        as_of,
        {},
        states,
        {},
        "published",
        moment,
        moment,
    )


def stored_rows(url: str, relation: str, schema: pa.Schema) -> pa.Table:
    """Return what the store holds of a relation `gold.<model>`."""
    reader = StoreReader.open(url)
    try:
        with reader.snapshot() as view:
            rows = view.rows(relation.removeprefix("gold."), tenants=None)
    finally:
        reader.close()
    return pa.Table.from_pylist(rows, schema=schema)


def changes_of(
    reader: StoreReader,
    model: str,
    after: int,
    tenants: frozenset[str] | None,
    limit: int,
    mark: str | None = None,
    conditions: Sequence[ColumnCondition] = (),
) -> ChangePage:
    """Return a page of the changes behind a snapshot, of the newest one."""
    with reader.snapshot() as view:
        position = Position(after, mark)
        return view.changes(model, position, tenants, limit, conditions=conditions)


def net_change(old: pa.Table | None, new: pa.Table) -> pa.Table:
    """Return the net change from `old` to `new`: the columns plus `WEIGHT`."""
    if old is None:
        ones = pa.array([1] * new.num_rows, pa.int64())
        return new.append_column(pa.field(WEIGHT, pa.int64()), ones)
    weights = pa.array([-1] * old.num_rows + [1] * new.num_rows, pa.int64())
    return net_rows(pa.concat_tables([old, new]).combine_chunks(), weights)


def _metrics(
    orders: Sequence[Order], as_of: datetime, restaurants: Mapping[str, tuple[str, str, str]]
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for restaurant, (name, zone, currency) in restaurants.items():
        for hours in WINDOWS:
            width = timedelta(hours=hours)
            now = _between(orders, restaurant, as_of - width, as_of)
            before = _between(orders, restaurant, as_of - 2 * width, as_of - width)
            rows.append(
                {
                    "restaurant_id": restaurant,
                    "restaurant_name": name,
                    "time_zone": zone,
                    "currency_code": currency,
                    "window_hours": hours,
                    "order_count": len(now),
                    "sales_amount": _total(now),
                    "average_order_value": _average(now),
                    "unique_customers": len({order.customer_id for order in now}),
                    "previous_order_count": len(before),
                    "previous_sales_amount": _total(before),
                    "previous_average_order_value": _average(before),
                }
                | _figures("compared", _between(orders, restaurant, as_of - width, as_of - PANE))
                | _figures(
                    "last_week",
                    _between(orders, restaurant, as_of - WEEK - width, as_of - WEEK - PANE),
                )
            )
    return rows


def _figures(kind: str, orders: Sequence[Order]) -> dict[str, object]:
    return {
        f"{kind}_order_count": len(orders),
        f"{kind}_sales_amount": _total(orders),
        f"{kind}_average_order_value": _average(orders),
        f"{kind}_unique_customers": len({order.customer_id for order in orders}),
    }


def _top_dishes(
    orders: Sequence[Order], as_of: datetime, names: Mapping[str, str]
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for restaurant in sorted({order.restaurant_id for order in orders}):
        for hours in WINDOWS:
            sold: Counter[str] = Counter()
            for order in _between(orders, restaurant, as_of - timedelta(hours=hours), as_of):
                sold.update(dict(order.quantities))
            sales = {dish: DISHES[dish][1] * quantity for dish, quantity in sold.items()}
            best = sorted(sold, key=lambda dish: (-sold[dish], -sales[dish], dish))[:3]
            rows += [
                {
                    "restaurant_id": restaurant,
                    "dish_id": dish,
                    "dish_name": names[dish],
                    "window_hours": hours,
                    "dish_rank": rank,
                    "quantity_sold": sold[dish],
                    "sales_amount": sales[dish],
                }
                for rank, dish in enumerate(best, start=1)
            ]
    return rows


def _trend(orders: Sequence[Order]) -> list[dict[str, object]]:
    panes: dict[str, dict[datetime, list[Order]]] = defaultdict(lambda: defaultdict(list))
    for order in orders:
        panes[order.restaurant_id][order.pane].append(order)
    rows: list[dict[str, object]] = []
    for restaurant, by_pane in sorted(panes.items()):
        starts = sorted(by_pane)
        counts = [0, *accumulate(len(by_pane[start]) for start in starts)]
        sales = [Decimal("0.00"), *accumulate(_total(by_pane[start]) for start in starts)]
        for position, start in enumerate(starts):
            row: dict[str, object] = {
                "restaurant_id": restaurant,
                "order_count": len(by_pane[start]),
                "sales_amount": _total(by_pane[start]),
                "pane_started_at": start,
                "pane_date": start.date(),
            }
            for hours in WINDOWS:
                first = bisect_left(starts, start + PANE - timedelta(hours=hours))
                row[f"order_count_{hours}h"] = counts[position + 1] - counts[first]
                row[f"sales_amount_{hours}h"] = sales[position + 1] - sales[first]
            rows.append(row)
    return rows


def _arrival(order: Order) -> dict[str, object]:
    landed_at = order.landed_at or order.ordered_at + timedelta(minutes=1)
    is_late = landed_at >= order.pane + PANE
    return {
        "arrival_id": f"orders/{order.order_id}.jsonl:1",
        "order_id": order.order_id,
        "restaurant_id": order.restaurant_id,
        "order_status": "placed",
        "batch_id": 1,
        "lateness_seconds": int((landed_at - order.ordered_at).total_seconds()),
        "transit_seconds": int((landed_at - order.ordered_at).total_seconds()),
        "is_deletion": False,
        "is_late": is_late,
        "ordered_at": order.ordered_at,
        "updated_at": order.ordered_at,
        "landed_at": landed_at,
        "pane_started_at": order.pane,
        "changed_pane_started_at": order.pane if is_late else None,
    }


def _between(
    orders: Sequence[Order], restaurant: str, start: datetime, end: datetime
) -> list[Order]:
    return [
        order
        for order in orders
        if order.restaurant_id == restaurant and start <= order.ordered_at < end
    ]


def _total(orders: Iterable[Order]) -> Decimal:
    return sum((order.amount for order in orders), Decimal("0.00"))


def _average(orders: Sequence[Order]) -> Decimal | None:
    if not orders:
        return None
    return (_total(orders) / len(orders)).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
