"""The bodies against sums over the orders, and against the shapes that are documented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from livemart.serve.owner import schemas
from livemart.serve.owner.facts import DISHES, METRICS
from livemart.serve.owner.panes import TREND
from livemart.store.reader import StoreReader
from tests.serve.owner.window_bodies import metrics_body, state_body, top_dishes_body, trend_body
from tests.store.stores import DISHES as MENU
from tests.store.stores import NOON, PANE, WEEK, Order, fill_store, make_orders, reference_tables

ORDERS = make_orders()
CASES = [(restaurant, hours) for restaurant in ("r1", "r2", "r3") for hours in (1, 24, 168)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreReader]:
    url = f"sqlite:///{tmp_path_factory.mktemp('bodies')}/serving.db"
    fill_store(url, reference_tables(ORDERS))
    with closing(StoreReader.open(url)) as reader:
        yield reader


def within(
    restaurant: str, hours: int, back: timedelta = timedelta(), *, cut: timedelta = timedelta()
) -> list[Order]:
    end = NOON - back - cut
    start = NOON - back - timedelta(hours=hours)
    return [
        order
        for order in ORDERS
        if order.restaurant_id == restaurant and start <= order.ordered_at < end
    ]


def sales(orders: list[Order]) -> str:
    return format(sum((order.amount for order in orders), Decimal("0.00")), "f")


def average(orders: list[Order]) -> str | None:
    if not orders:
        return None
    exact = Decimal(sales(orders)) / len(orders)
    return format(exact.quantize(Decimal("0.01"), ROUND_HALF_UP), "f")


FIGURES: dict[str, Callable[[list[Order]], object]] = {
    "order_count": len,
    "sales_amount": sales,
    "average_order_value": average,
    "unique_customers": lambda orders: len({order.customer_id for order in orders}),
}


@pytest.mark.parametrize(("restaurant", "hours"), CASES)
def test_the_tiles_are_sums_over_the_orders(
    store: StoreReader, restaurant: str, hours: int
) -> None:
    now, before = within(restaurant, hours), within(restaurant, hours, timedelta(hours=hours))
    compared = within(restaurant, hours, cut=PANE)
    last_week = within(restaurant, hours, WEEK, cut=PANE)

    with store.snapshot() as view:
        body = metrics_body(view, restaurant, hours)

    assert body is not None
    metrics = body["metrics"]
    assert metrics == {
        name: {
            "value": figure(now),
            "previous": None if name == "unique_customers" else figure(before),
            "compared": figure(compared),
            # The orders go back over 15 days: of all windows there is the same a week before.
            "last_week": figure(last_week),
        }
        for name, figure in FIGURES.items()
    }
    assert body["window"]["compared_until"] == f"{NOON - PANE:%Y-%m-%dT%H:%M:%S}Z"
    assert body["window"]["start"] == f"{NOON - timedelta(hours=hours):%Y-%m-%dT%H:%M:%S}Z"
    schemas.Metrics.model_validate(body)


@pytest.mark.parametrize(("restaurant", "hours"), CASES)
def test_the_top_dishes_are_the_dishes_sold_most(
    store: StoreReader, restaurant: str, hours: int
) -> None:
    sold: Counter[str] = Counter()
    for order in within(restaurant, hours):
        sold.update(dict(order.quantities))
    best = sorted(sold, key=lambda dish: (-sold[dish], -MENU[dish][1] * sold[dish], dish))[:3]
    total = Decimal(sales(within(restaurant, hours)))

    with store.snapshot() as view:
        body = top_dishes_body(view, restaurant, hours)

    assert body is not None
    assert [dish["dish_id"] for dish in body["top_dishes"]] == best
    for dish in body["top_dishes"]:
        amount = MENU[dish["dish_id"]][1] * sold[dish["dish_id"]]
        assert dish["quantity_sold"] == sold[dish["dish_id"]]
        assert dish["sales_amount"] == format(amount, "f")
        share = (amount / total).quantize(Decimal("0.0001"), ROUND_HALF_UP)
        assert dish["share"] == format(share, "f")
    schemas.TopDishes.model_validate(body)


@pytest.mark.parametrize(("restaurant", "hours"), CASES)
def test_the_points_of_a_trend_add_up_to_the_tiles(
    store: StoreReader, restaurant: str, hours: int
) -> None:
    count = 12 if hours == 1 else hours

    with store.snapshot() as view:
        trend, tiles = trend_body(view, restaurant, hours), metrics_body(view, restaurant, hours)

    assert trend is not None and tiles is not None
    assert (len(trend["points"]), len(trend["last_week"])) == (count, count)
    points = trend["points"]
    assert (
        sum(point["order_count"] for point in points) == (tiles["metrics"]["order_count"]["value"])
    )
    assert sum(Decimal(point["sales_amount"]) for point in points) == Decimal(
        tiles["metrics"]["sales_amount"]["value"]
    )
    a_week_ago = within(restaurant, hours, timedelta(days=7))
    assert sum(point["order_count"] or 0 for point in trend["last_week"]) == len(a_week_ago)
    schemas.Trend.model_validate(trend)


def test_the_state_is_all_of_a_window(store: StoreReader) -> None:
    with store.snapshot() as view:
        state = state_body(view, "r1", 24, server_time=NOON)
        trend = trend_body(view, "r1", 24)

    assert state is not None and trend is not None
    assert state["trend_point"] == trend["points"][-1]
    assert state["server_time"] == "2026-03-02T12:00:00Z"
    schemas.StateBody.model_validate(state)


def test_nobody_knows_an_unknown_restaurant(store: StoreReader) -> None:
    with store.snapshot() as view:
        found = [
            metrics_body(view, "r9", 1),
            top_dishes_body(view, "r9", 1),
            trend_body(view, "r9", 1),
            state_body(view, "r9", 1, server_time=NOON),
        ]

    assert found == [None] * 4


def test_before_the_first_order_a_point_is_unknown_not_zero(tmp_path: Path) -> None:
    first = NOON - timedelta(minutes=32)
    orders = [Order("o1", "r1", "c1", first, (("d1", 1),))]
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, reference_tables(orders))

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        trend, tiles = trend_body(view, "r1", 1), metrics_body(view, "r1", 1)

    assert trend is not None and tiles is not None
    assert [point["order_count"] for point in trend["points"]] == [None] * 5 + [1] + [0] * 6
    assert trend["window"]["since"] == "2026-03-02T11:25:00Z"
    assert tiles["metrics"]["order_count"] == {
        "value": 1,
        "previous": None,
        "compared": 1,
        "last_week": None,
    }


def test_an_empty_window_is_zero_without_average_or_share(tmp_path: Path) -> None:
    orders = [Order("o1", "r1", "c1", NOON - timedelta(days=14, hours=1), (("d1", 1),))]
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, reference_tables(orders))

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        tiles, dishes = metrics_body(view, "r1", 1), top_dishes_body(view, "r1", 1)

    assert tiles is not None and dishes is not None
    kinds = ("value", "previous", "compared", "last_week")
    assert tiles["metrics"] == {
        "order_count": dict.fromkeys(kinds, 0),
        "sales_amount": dict.fromkeys(kinds, "0.00"),
        "average_order_value": dict.fromkeys(kinds),
        "unique_customers": dict.fromkeys(kinds, 0) | {"previous": None},
    }
    assert (dishes["top_dishes"], tiles["window"]["since"]) == ([], None)


def test_late_orders_of_the_last_hour_name_the_panes_they_changed(tmp_path: Path) -> None:
    landed = NOON - timedelta(minutes=10)
    late = [
        Order(f"late{n}", "r1", "c1", NOON - timedelta(minutes=n), (("d1", 1),), landed)
        for n in (31, 33, 58, 90)
    ]
    early = Order("in time", "r1", "c1", landed, (("d1", 1),), landed)
    before = Order("o0", "r1", "c1", NOON - timedelta(days=1), (("d1", 1),))
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, reference_tables([before, *late, early]))

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        state = state_body(view, "r1", 1, server_time=NOON)

    assert state is not None
    assert state["late_corrections"] == {
        "order_count": 3,
        "start": "2026-03-02T11:00:00Z",
        "end": "2026-03-02T11:30:00Z",
        "panes": ["2026-03-02T11:00:00Z", "2026-03-02T11:25:00Z"],
    }


def test_without_arrivals_nothing_is_known_of_late_orders(tmp_path: Path) -> None:
    tables = reference_tables()
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, {name: tables[name] for name in (METRICS, DISHES, TREND)})

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        state = state_body(view, "r1", 24, server_time=NOON)

    assert state is not None
    assert state["late_corrections"] is None


def test_a_pane_whose_figure_is_unknown_makes_its_point_unknown(tmp_path: Path) -> None:
    orders = [
        Order(f"o{n}", "r1", "c1", NOON - timedelta(minutes=n), (("d1", 1),)) for n in (2, 8, 58)
    ]
    tables = reference_tables(orders)
    trend = tables[TREND].sort_by("pane_started_at")
    index = trend.schema.get_field_index("sales_amount")
    amounts = [*trend["sales_amount"].to_pylist()[:-1], None]
    tables[TREND] = trend.set_column(
        index, "sales_amount", pa.array(amounts, trend.schema.field(index).type)
    )
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, tables)

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        body = trend_body(view, "r1", 1)

    assert body is not None
    assert [point["order_count"] for point in body["points"]][-2:] == [1, None]
    assert [point["sales_amount"] for point in body["points"]][-2:] == ["9.50", None]


def test_a_project_without_the_owner_s_models_has_no_restaurants(tmp_path: Path) -> None:
    tables = reference_tables()
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, {METRICS: tables[METRICS]})

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        assert metrics_body(view, "r1", 1) is None


def test_a_project_that_compares_nothing_has_its_figures_all_the_same(tmp_path: Path) -> None:
    tables = reference_tables(ORDERS)
    metrics = tables[METRICS]
    own = [name for name in metrics.schema.names if not name.startswith(("compared", "last_week"))]
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, tables | {METRICS: metrics.select(own)})

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        body = metrics_body(view, "r1", 24)

    assert body is not None
    assert body["metrics"]["order_count"]["value"] == len(within("r1", 24))
    assert body["metrics"]["order_count"]["compared"] is None
    assert body["metrics"]["order_count"]["last_week"] is None


@pytest.mark.parametrize(
    ("zone", "first", "last"),
    [("Europe/Lisbon", "11:35", "11:00"), ("Asia/Kathmandu", "11:35", "11:15")],
)
def test_points_of_a_day_are_hours_of_the_restaurant_s_clock(
    tmp_path: Path, zone: str, first: str, last: str
) -> None:
    as_of = NOON - timedelta(minutes=25)
    orders = [order for order in ORDERS if order.restaurant_id == "r1"]
    place = {"r1": ("Taverna Azul", zone, "EUR")}
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, reference_tables(orders, as_of, restaurants=place), as_of=as_of)

    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        body, state = trend_body(view, "r1", 24), state_body(view, "r1", 24, server_time=NOON)

    assert body is not None and state is not None
    starts = [point["start"] for point in body["points"]]
    assert (starts[0], starts[-1]) == (f"2026-03-01T{first}:00Z", f"2026-03-02T{last}:00Z")
    assert {start[-6:] for start in starts[1:]} == {f"{last[3:]}:00Z"}
    assert state["trend_point"] == body["points"][-1]
    past = [order for order in orders if as_of - timedelta(hours=24) <= order.ordered_at < as_of]
    assert sum(point["order_count"] for point in body["points"]) == len(past)
