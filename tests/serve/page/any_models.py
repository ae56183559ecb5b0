"""Models of any project: their shapes, their values and how they are described."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from livemart.project.declared.model_page import PageSpec
from livemart.store.served import Dashboard, DescribedTest, ModelDescription, ProjectPages

BEGIN = datetime(2026, 2, 16, tzinfo=UTC)
SHOPS = (
    "Aveiro", "Braga", "Coimbra", "Évora", "Faro", "Guarda", "Lagos", "Porto",
    "Santiago do Cacém e arredores", "Viseu",
)  # fmt: skip
EVIL = '<script>alert(1)</script><img src=x onerror=alert(1)> & "it\'s"'
LONG = "a_rather_long_name_of_a_column_that_somebody_has_chosen_with_great_care_and_no_abbreviation"
KEYS: Mapping[str, tuple[str, ...]] = {
    "daily_sales": ("shop", "day"),
    "hourly_balance": ("hour",),
    "shops": ("shop_id",),
    "wide": ("id",),
    "empty": ("id",),
    "totals": ("id",),
    "readings": ("reading_id",),
    "hostile": ("id",),
}
DESCRIPTIONS: Mapping[str, ModelDescription] = {
    "daily_sales": ModelDescription(
        "Sales of each shop by day of its own calendar, refunds taken off.\n\n"
        "A day without an order has no row.",
        {"day": "Day of the shop's calendar", "sales_amount": "In euros, with tax"},
        (
            DescribedTest("not_null_daily_sales_day", "not_null", "day", "error", "pass"),
            DescribedTest("not_null_daily_sales_shop", "not_null", "SHOP", "error", "pass"),
            DescribedTest("positive", "positive", "sales_amount", "warn", "warn"),
            DescribedTest("no_future_day", None, None, "error", "fail"),
            DescribedTest("unique_daily_sales", "unique_combination", None, "error"),
        ),
        "select shop, day, sum(amount) as sales_amount, count(*) as order_count\n"
        "from {{ ref('orders') }}\ngroup by shop, day",
        "select shop, day, sum(amount) as sales_amount, count(*) as order_count\n"
        "from `mart`.`orders`\ngroup by shop, day",
    ),
    "hostile": ModelDescription(EVIL, {"text": EVIL}, (), EVIL, EVIL),
}

PAGES = ProjectPages(
    {
        "daily_sales": PageSpec(
            title="Sales by day",
            numbers=("order_count", "sales_amount"),
            order=("day.desc", "shop"),
            formats={"sales_amount": "money", "order_count": "compact"},
            currency="EUR",
        ),
        "totals": PageSpec(tiles=("sales_amount", "order_count"), x="no_such_column"),
        "shops": PageSpec(chart="bars", numbers=("visits",), order=("visits",)),
    },
    {
        "overview": Dashboard(
            "How the shops do",
            "Sales, visits and the newest words.\n\nEvery morning before nine.",
            ("totals", "daily_sales", "shops", "repeated", "empty", "hourly_balance", "hostile"),
        ),
        "alone": Dashboard(EVIL, EVIL, ("hostile", "not_served")),
        "nothing": Dashboard("Nothing", "", ("not_served",)),
    },
)


def any_models() -> dict[str, pa.Table]:
    """Return tables by name: the same at each call."""
    chance = random.Random(7)
    cents = pa.decimal128(18, 2)
    days = [
        (shop, BEGIN.date() + timedelta(day))
        for place, shop in enumerate(SHOPS)
        for day in range(60)
        if chance.random() > place / 30
    ]
    hours = [BEGIN + timedelta(hours=hour) for hour in range(24 * 8)]
    daily_sales = {
        "shop": [shop for shop, _ in days],
        "day": [day for _, day in days],
        "sales_amount": pa.array(
            [
                Decimal(300 + 90 * SHOPS.index(shop) + 40 * day.weekday() + chance.randrange(150))
                + Decimal(chance.randrange(100)) / 100
                for shop, day in days
            ],
            cents,
        ),
        "order_count": [20 + 4 * day.weekday() + chance.randrange(9) for _, day in days],
    }
    hourly_balance = {
        "hour": pa.array(hours, pa.timestamp("us", "UTC")),
        "balance": pa.array(
            [
                None if 60 < hour < 75 else Decimal(hour % 24 * 7 - 90 + chance.randrange(30))
                for hour in range(len(hours))
            ],
            cents,
        ),
    }
    shops = {
        "shop_id": [f"s{number}" for number in range(25)],
        "shop_name": [f"{SHOPS[number % 10]} {number}" for number in range(25)],
        "result_amount": pa.array(
            [None, *(Decimal((number * 7919) % 5000 - 1500) for number in range(24))], cents
        ),
        "visits": [2**60 - number**3 for number in range(25)],
        "opened_on": [date(2020, 1, 1) + timedelta(days=99 * number) for number in range(25)],
    }
    wide: dict[str, object] = {"id": list(range(40))}
    for number in range(58):
        wide[f"measure_{number}"] = [None if number % 7 == 3 else number * row for row in range(40)]
    wide[LONG] = ["word " * 80] * 40
    readings = {
        "reading_id": list(range(10_000)),
        "sensor": [f"sensor {number % 3}" for number in range(10_000)],
        "read_at": pa.array(
            [BEGIN + timedelta(seconds=37 * number) for number in range(10_000)],
            pa.timestamp("us", "UTC"),
        ),
        "celsius": [20 + number % 700 / 100 for number in range(10_000)],
    }
    totals = {
        "id": [1],
        "order_count": [12_345],
        "sales_amount": pa.array([Decimal("8243.50")], cents),
        "smallest": [-0.000001],
        "largest": [2**62],
    }
    hostile = {"id": [1, 2], "text": [EVIL, "\u202eplain"], EVIL: [1.5, float("nan")]}
    empty = {"id": pa.array([], pa.int64()), "at": pa.array([], pa.timestamp("us", "UTC"))}
    repeated = {"word": ["a", "a", "b", None], "at": [datetime(2026, 3, 1)] * 4}
    return {
        "daily_sales": pa.table(daily_sales),
        "hourly_balance": pa.table(hourly_balance),
        "shops": pa.table(shops),
        "wide": pa.table(wide),
        "readings": pa.table(readings),
        "totals": pa.table(totals),
        "hostile": pa.table(hostile),
        "empty": pa.table(empty),
        "repeated": pa.table(repeated),
    }
