"""Figures and times as text: exact, and in the restaurant's own zone and currency."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from livemart.serve.page import text as page_text
from livemart.serve.page.text import DASH, FigureChange, LocalFormat

LISBON = LocalFormat.of("Europe/Lisbon", "EUR")


@pytest.mark.parametrize(
    ("currency", "amount", "expected"),
    [
        ("EUR", "8243.5", "€8,243.50"),
        ("EUR", "-5", "-€5.00"),
        ("JPY", "1234.5", "JP¥1,235"),
        ("KWD", "3", "KWD\u00a03.000"),
        ("EUR", "12345678901234567890.12", "€12,345,678,901,234,567,890.12"),
        ("EUR", f"{10**35 + 1}.125", f"€{10**35 + 1:,}.13"),
        ("not a code", "3", "3.00"),
        (None, "3", "3.00"),
    ],
)
def test_money_is_written_exactly_in_its_currency(
    currency: str | None, amount: str, expected: str
) -> None:
    actual = LocalFormat.of("UTC", currency).money(Decimal(amount))

    assert actual == expected


def test_an_unknown_figure_is_a_dash_and_never_zero() -> None:
    actual = (LISBON.money(None), page_text.count(None), page_text.count(0))

    assert actual == (DASH, DASH, "0")


@pytest.mark.parametrize("zone", ["Nowhere/City", "../../etc/passwd", "", None, "/etc/localtime"])
def test_a_time_zone_that_nobody_knows_is_utc(zone: str | None) -> None:
    place = LocalFormat.of(zone, "EUR")

    assert (place.zone_name, place.clock(datetime(2026, 7, 1, 12, tzinfo=UTC))) == ("UTC", "12:00")


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (1, "14:35 to 15:35"),
        (24, "Sun 15:35 to Mon 15:35"),
        (168, "Mon 20 Jul 15:35 to Mon 27 Jul 15:35"),
    ],
)
def test_a_span_names_the_day_only_where_it_is_needed(hours: int, expected: str) -> None:
    end = datetime(2026, 7, 27, 14, 35, tzinfo=UTC)

    actual = LISBON.span(end - timedelta(hours=hours), end)

    assert actual == (f"Mon {expected}" if hours == 1 else expected)


@pytest.mark.parametrize(
    ("value", "last_week", "expected"),
    [
        ("412", "389", FigureChange("up", "up 5.9\u00a0% on last week")),
        ("20.01", "20.54", FigureChange("down", "down 2.6\u00a0% on last week")),
        ("1000", "1", FigureChange("up", "up 99,900.0\u00a0% on last week")),
        # Half of a tenth goes away from zero on both sides.
        ("20.01", "20.00", FigureChange("up", "up 0.1\u00a0% on last week")),
        ("19.99", "20.00", FigureChange("down", "down 0.1\u00a0% on last week")),
        ("5", "5", FigureChange("same", "unchanged from last week")),
        ("5", "0", FigureChange("none", "no comparison")),
        ("5", None, FigureChange("none", "no comparison")),
        (None, "5", FigureChange("none", "no comparison")),
    ],
)
def test_a_change_is_a_word_and_names_its_base(
    value: str | None, last_week: str | None, expected: FigureChange
) -> None:
    actual = page_text.change(
        None if value is None else Decimal(value),
        None if last_week is None else Decimal(last_week),
    )

    assert actual == expected


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        ("13.83", "100", 14),
        ("0.5", "100", 1),
        ("120", "100", 100),
        ("-10", "100", 0),
        # 38.4955 %: rounded to four digits before, it would be half a percent more.
        ("38.4955", "100", 38),
        (None, "100", None),
        ("1", None, None),
        ("1", "0.00", None),
    ],
)
def test_a_share_is_a_whole_percent_within_bounds(
    part: str | None, whole: str | None, expected: int | None
) -> None:
    actual = page_text.percent(
        None if part is None else Decimal(part), None if whole is None else Decimal(whole)
    )

    assert actual == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-3, "0 s ago"),
        (12, "12 s ago"),
        (240, "4 min ago"),
        (7_200, "2 h ago"),
        (7_500, "2 h 5 min ago"),
        (172_800, "2 d ago"),
        (200_000, "2 d 7 h ago"),
    ],
)
def test_an_age_is_told_in_the_units_that_matter(seconds: int, expected: str) -> None:
    assert page_text.age(timedelta(seconds=seconds)) == expected


def test_a_window_has_one_name_in_a_sentence() -> None:
    assert [page_text.window_words(hours) for hours in (1, 24, 168)] == [
        "hour",
        "24 hours",
        "7 days",
    ]


def test_figures_of_all_the_digits_of_a_decimal_are_compared() -> None:
    large = Decimal(10**35)

    assert page_text.change(large + Decimal("0.01"), large).direction == "same"
    assert page_text.change(large, Decimal("0.01")).direction == "up"
    assert page_text.change(large + 1, Decimal(1)).direction == "up"
    assert page_text.percent(large * 3, large * 8) == 38
    assert page_text.percent(large, Decimal("0.01")) == 100
