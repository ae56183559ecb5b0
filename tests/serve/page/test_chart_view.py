"""Charts are drawn in numbers, and described in words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from livemart.serve.page.chart_view import HEIGHT, WIDTH, axis_marks, build_chart, thinned
from livemart.serve.page.charts import Chart
from livemart.serve.page.number_formats import exact, write_marks
from livemart.serve.page.text import DASH
from tests.serve.page.template_names import by_name

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LINES = Chart("lines", "at", ("amount",), ("shop",))


def draw(
    chart: Chart, rows: list[dict[str, Any]], *, scope: str = "", is_sorted: bool = False
) -> Any:
    kinds = {"at": "timestamp", "amount": "int", "shop": "string"}
    return by_name(build_chart(chart, rows, kinds, scope=scope, is_sorted=is_sorted))


def point(minutes: float, amount: object, shop: str | None = "a") -> dict[str, Any]:
    return {"at": NOON + timedelta(minutes=minutes), "amount": amount, "shop": shop}


def test_a_line_runs_from_edge_to_edge_with_gaps_and_dots() -> None:
    rows = [point(0, 0), point(10, 50), point(20, None), point(30, 75), point(40, 100)]
    lonely = [*rows[:3], point(40, 100)]

    (panel,) = draw(LINES, rows).lines
    (other,) = draw(LINES, lonely).lines

    assert panel.y_marks == ["100", "75", "50", "25", "0"]
    assert panel.x_marks == ["1 Mar 12:00", "1 Mar 12:20", "1 Mar 12:40"]
    assert panel.lines[0].path == "M0.0 300.0L250.0 150.0M750.0 75.0L1000.0 0.0"
    assert other.lines[0].path.endswith("M1000.0 0.0h0")
    assert (panel.lines[0].newest, panel.lines[0].least, panel.lines[0].greatest) == (
        "100",
        "0",
        "100",
    )
    assert panel.words == (
        "One line of amount by at, from 1 Mar 12:00 to 1 Mar 12:40. "
        "The table below has the newest, least and greatest value of each."
    )


def test_what_is_left_out_is_said() -> None:
    rows = [point(minute, 1, f"s{number}") for number in range(11) for minute in (0, 1)]

    view = draw(LINES, rows, scope="the newest 22 rows")

    assert view.caption == "The 8 busiest of 11 lines. The newest 22 rows. Times are UTC."
    assert len(view.lines[0].lines) == 8


def test_lines_that_are_all_of_one_moment_are_drawn() -> None:
    rows = [point(0, number, f"s{number}") for number in range(8)] + [point(5, None, "z")]

    (panel,) = draw(LINES, rows).lines

    assert all(line.path.startswith("M0.0 ") for line in panel.lines)


def test_days_are_written_without_a_time_and_long_spans_with_the_year() -> None:
    chart = Chart("lines", "at", ("amount",), ())
    rows = [{"at": date(2024 + year, 3, 1), "amount": year, "shop": None} for year in range(3)]
    kinds = {"at": "date", "amount": "int"}

    view = by_name(build_chart(chart, rows, kinds, scope="", is_sorted=False))

    assert view.lines[0].x_marks == ["1 Mar 2024", "1 Mar 2025", "1 Mar 2026"]
    assert view.caption == ""


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([3.0, 97.0], ["0", "25", "50", "75", "100"]),
        ([-97.0, -3.0], ["-100", "-75", "-50", "-25", "0"]),
        ([-62.0, 96.0], ["-100", "-50", "0", "50", "100"]),
        # Far away from zero the difference counts.
        ([20.0, 26.9], ["20", "22.5", "25", "27.5"]),
        ([5.0], ["0", "1", "2", "3", "4", "5"]),
        ([0.0], ["0", "0.25", "0.5", "0.75", "1"]),
        ([0.001, 0.0042], ["0", "0.001", "0.002", "0.003", "0.004", "0.005"]),
        ([0.0, 1_234_567.0], ["0", "250K", "500K", "750K", "1M", "1.25M"]),
        ([0.0, 3e20], ["0", "1e+20", "2e+20", "3e+20"]),
    ],
)
def test_marks_are_round_and_equally_far_apart(values: list[float], marks: list[str]) -> None:
    assert write_marks(axis_marks(values)) == marks


@pytest.mark.parametrize(
    "values", [[-1.7e308, 1.7e308], [5e-324, 1e-323], [1e18, 1e18 + 256], [-0.0, 0.0]]
)
def test_marks_hold_all_values(values: list[float]) -> None:
    marks = axis_marks(values)

    assert marks[0] <= Decimal(repr(min(values))) and Decimal(repr(max(values))) <= marks[-1]
    assert len({after - before for before, after in pairwise(marks)}) == 1


@pytest.mark.parametrize("amounts", [[-1.7e308, 1.7e308], [2**62, -(2**62)], [1e-320, 0.0]])
def test_extreme_numbers_are_drawn_inside_the_picture(amounts: list[float]) -> None:
    rows = [point(number, amount) for number, amount in enumerate(amounts)]
    path = draw(LINES, rows).lines[0].lines[0].path
    numbers = [float(text) for text in path.replace("M", "").replace("L", " ").split()]

    assert all(0 <= number <= WIDTH for number in numbers[::2])
    assert all(0 <= number <= HEIGHT for number in numbers[1::2])
    bars = draw(Chart("bars", "", ("amount",), ("shop",)), rows).bars[0].bars
    assert all(0 <= float(bar.start[:-1]) <= 100 for bar in bars)


def test_bars_go_both_ways_from_zero_the_greatest_first() -> None:
    rows = [point(0, amount, name) for amount, name in ((-50, "x"), (150, "y"), (None, "z"))]

    (panel,) = draw(Chart("bars", "", ("amount",), ("shop",)), rows).bars

    assert [(bar.name, bar.value, bar.start, bar.width, bar.is_below) for bar in panel.bars] == [
        ("y", "150", "25.00%", "75.00%", False),
        ("x", "-50", "0.00%", "25.00%", True),
        ("z", DASH, "25.00%", "0.00%", False),
    ]
    assert panel.zero == "25.00%"


def test_bars_keep_the_order_that_a_reader_chose_and_say_how_many_are_left_out() -> None:
    chart = Chart("bars", "", ("amount",), ("shop",))
    rows = [point(0, number, f"s{number:02}") for number in range(25)]

    greatest = draw(chart, rows)
    first = draw(chart, rows, is_sorted=True, scope="the first 25 rows")

    assert [bar.value for bar in greatest.bars[0].bars] == [str(it) for it in range(24, 4, -1)]
    assert [bar.value for bar in first.bars[0].bars] == [str(it) for it in range(20)]
    assert greatest.caption == "The 20 greatest of 25 rows."
    assert first.caption == "The 20 first of the first 25 rows."


def test_a_single_row_is_tiles_with_all_digits() -> None:
    view = draw(Chart("tiles", "", ("amount",), ()), [point(0, Decimal("1234567.50"))])

    assert view.tiles == [("amount", "1,234,567.50")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, DASH),
        (2**62, "4,611,686,018,427,387,904"),
        (-0.000001, "-1e-06"),
        (1234.5, "1,234.5"),
        (1234.0, "1,234"),
        (99_999_999_999_999.98, "99,999,999,999,999.98"),
        (1_234_567_890_123_456.0, "1,234,567,890,123,456"),
        (1.23456789e-7, "1.23456789e-07"),
        (float("nan"), "nan"),
        (Decimal("0.00"), "0.00"),
    ],
)
def test_numbers_keep_their_digits(value: object, text: str) -> None:
    assert exact(value) == text


def test_a_long_line_keeps_its_ends_and_extremes() -> None:
    points = [(number / 10, float(number * 7919 % 1000)) for number in range(10_000)]
    points[5_432] = (543.2, -5_000.0)

    kept = thinned(points)

    assert len(kept) <= 1_000
    assert {points[0], points[-1], points[5_432]} <= set(kept)
    assert kept == sorted(kept)
    assert thinned(points[:1_000]) == points[:1_000]
