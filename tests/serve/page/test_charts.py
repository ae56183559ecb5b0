"""A chart is chosen by the kinds of columns, the key and the values."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from livemart.serve.page.charts import (
    MOST_LINES,
    Chart,
    ChartWish,
    chart_lines,
    choose_chart,
    is_number,
    plotted,
    series_name,
    time_of,
)
from livemart.serve.page.text import DASH
from livemart.store.served import ServedModel

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
AUTO = ChartWish()
SALES = ServedModel(
    "sales",
    (
        ("shop", "string"),
        ("day", "date"),
        ("amount", "decimal(18,2)"),
        ("orders", "bigint"),
        ("note", "string"),
    ),
    ("shop", "day"),
    "shop",
)


def sale(shop: str | None, day: int, amount: object = 1, orders: int = 1) -> dict[str, Any]:
    return {
        "shop": shop,
        "day": date(2026, 3, day),
        "amount": amount if amount is None else Decimal(str(amount)),
        "orders": orders,
        "note": None,
    }


def model_of(row_key: tuple[str, ...] = (), time: str | None = None, **kinds: str) -> ServedModel:
    return ServedModel("model", tuple(kinds.items()), row_key, None, time)


def test_times_in_the_key_and_numbers_give_a_line_for_each_other_part_of_the_key() -> None:
    rows = [sale("a", 1), sale("a", 2), sale("b", 1)]

    assert choose_chart(SALES, rows, AUTO) == Chart("lines", "day", ("amount", "orders"), ("shop",))


def test_a_part_of_the_key_that_is_the_same_in_all_rows_names_no_line() -> None:
    rows = [sale("a", 1), sale("a", 2)]

    assert choose_chart(SALES, rows, AUTO) == Chart("lines", "day", ("amount", "orders"), ())


def test_one_row_gives_tiles_of_its_numbers() -> None:
    assert choose_chart(SALES, [sale("a", 1)], AUTO) == Chart("tiles", "", ("amount", "orders"), ())


def test_a_row_for_each_name_gives_bars_although_each_has_a_time() -> None:
    shops = model_of(("id",), id="string", shop_name="string", opened_at="timestamp", sold="int")
    rows = [
        {"id": str(number), "shop_name": f"Shop {number}", "opened_at": NOON, "sold": number}
        for number in range(3)
    ]

    assert choose_chart(shops, rows, AUTO) == Chart("bars", "", ("sold",), ("shop_name",))


def test_bars_are_named_by_the_key_if_no_single_text_names_a_row() -> None:
    dishes = model_of(("shop", "rank"), shop="string", rank="int", dish="string", sold="int")
    rows = [
        {"shop": shop, "rank": rank, "dish": "Soup", "sold": 5} for shop in "ab" for rank in (1, 2)
    ]
    one_shop = [{**row, "dish": f"Dish {row['rank']}"} for row in rows[:2]]

    assert choose_chart(dishes, rows, AUTO) == Chart("bars", "", ("sold",), ("shop", "rank"))
    assert choose_chart(dishes, one_shop, AUTO) == Chart("bars", "", ("sold",), ("dish",))


def test_events_without_a_key_give_one_line_or_one_for_each_short_text() -> None:
    events = model_of((), at="timestamp", sensor="string", value="double")
    apart = [
        {"at": NOON + timedelta(seconds=number), "sensor": "ab"[number % 2], "value": 1.5}
        for number in range(4)
    ]
    together = [
        {**row, "at": NOON + timedelta(seconds=number // 2)} for number, row in enumerate(apart)
    ]

    assert choose_chart(events, apart, AUTO) == Chart("lines", "at", ("value",), ())
    assert choose_chart(events, together, AUTO) == Chart("lines", "at", ("value",), ("sensor",))
    # Rows that no text tells apart have no line: it would jump up and down.
    assert choose_chart(events, [*together, together[0]], AUTO) is None


@pytest.mark.parametrize(
    ("kinds", "row"),
    [
        ({"name": "string"}, {"name": "a"}),
        ({"id": "bigint", "shop_id": "int"}, {"id": 1, "shop_id": 2}),
        ({"share": "double"}, {"share": float("nan")}),
        ({"amount": "decimal(18,2)"}, {"amount": None}),
    ],
)
def test_without_numbers_there_is_no_chart(kinds: dict[str, str], row: dict[str, Any]) -> None:
    assert choose_chart(model_of(("id",) if "id" in kinds else (), **kinds), [row], AUTO) is None


def test_without_rows_there_is_no_chart() -> None:
    assert choose_chart(SALES, [], AUTO) is None


def test_the_reader_chooses_kind_number_names_and_lines() -> None:
    rows = [sale("a", 1), sale("b", 2), sale("c", 3)]

    assert choose_chart(SALES, rows, ChartWish("none")) is None
    assert choose_chart(SALES, rows, ChartWish("tiles")) is None
    assert choose_chart(SALES, rows, ChartWish("pie")) is None
    assert choose_chart(SALES, rows, ChartWish("bars", numbers=("orders",))) == Chart(
        "bars", "", ("orders",), ("shop",)
    )
    # A name that fits nothing is passed over.
    odd = ChartWish("lines", "amount", ("note", "nothing"), ("nothing",))
    assert choose_chart(SALES, rows, odd) == Chart("lines", "day", ("amount", "orders"), ("shop",))
    by_note = ChartWish(by=("note",))
    assert choose_chart(SALES, rows, by_note) == Chart(
        "lines", "day", ("amount", "orders"), ("note",)
    )


def test_long_texts_are_no_names() -> None:
    notes = model_of((), text="string", amount="int")
    rows = [{"text": f"{number}{'x' * 60}", "amount": 1} for number in range(2)]

    assert choose_chart(notes, rows, AUTO) is None


def test_the_busiest_lines_are_those_with_the_most_values_then_the_largest() -> None:
    rows = [sale(f"s{shop}", day, shop) for shop in range(10) for day in (1, 2)]
    rows += [sale("few", 1, 1000), sale("unknown", 1, None), sale("unknown", 2, None)]
    chart = Chart("lines", "day", ("amount",), ("shop",))

    lines, others = chart_lines(chart, "amount", rows)

    assert [line.name for line in lines] == [f"s{shop}" for shop in range(2, 10)]
    assert (len(lines), others) == (MOST_LINES, 4)


def test_points_are_in_the_order_of_time_and_what_is_not_known_is_a_gap() -> None:
    chart = Chart("lines", "day", ("amount",), ("shop",))
    rows = [sale("a", 3, 3), sale("a", 1, 1), sale("a", 2, None), {**sale("a", 4), "day": None}]

    ((line,), _) = chart_lines(chart, "amount", rows)

    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    assert line.points == tuple(
        (midnight + timedelta(day), value)
        for day, value in enumerate([Decimal(1), None, Decimal(3)])
    )


def test_times_are_those_of_the_wish_then_of_the_model_then_of_the_key() -> None:
    model = model_of(("c",), "b", a="date", b="timestamp", c="timestamp_ntz", d="int")

    assert time_of(model, ChartWish(x="a")) == "a"
    assert time_of(model, ChartWish(x="d")) == "b"
    assert time_of(model_of(("c",), a="date", c="timestamp")) == "c"
    assert time_of(model_of((), d="int")) is None


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (3, 3.0),
        (Decimal("-0.50"), -0.5),
        (2**62, 2.0**62),
        (None, None),
        (True, None),
        (float("nan"), None),
        (float("-inf"), None),
        ("7", None),
    ],
)
def test_only_numbers_have_a_place(value: object, place: float | None) -> None:
    assert plotted(value) == place


def test_names_are_put_together() -> None:
    assert series_name({"a": "x", "b": None, "c": 7}, ("a", "b", "c")) == f"x · {DASH} · 7"
    assert [is_number(kind) for kind in ("decimal(38,0)", "double", "string", "boolean")] == [
        True,
        True,
        False,
        False,
    ]
