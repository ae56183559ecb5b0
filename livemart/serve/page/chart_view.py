"""Draws a chart as the page's template needs it: paths and bars as numbers, all else as text.

Used by a model's page. The picture is stretched to its place, so its lines have no text: the page
writes the text beside them, in its own size. No style is needed, as the policy forbids any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from functools import partial
from typing import Any

from babel.dates import format_datetime

from livemart.serve.page.charts import (
    MOST_BARS,
    MOST_LINES,
    MOST_TILES,
    Chart,
    ChartLine,
    ChartRow,
    chart_lines,
    plotted,
    series_name,
)
from livemart.serve.page.number_formats import PLAIN_NUMBERS, NumberFormats
from livemart.serve.page.text import LOCALE

# The size of the picture before it is stretched.
WIDTH, HEIGHT = 1000, 300
# Spaces between the marks of the axis: how many there may be, the best first.
_SPACES = (4, 5, 3)
_SPACES_OF_TIME = 2
# Pieces of the width in which the first, last, least and greatest point of a line are drawn: more
# would look the same.
_PIECES = 250


def build_chart(
    chart: Chart,
    rows: Sequence[ChartRow],
    kinds: dict[str, str],
    formats: NumberFormats = PLAIN_NUMBERS,
    *,
    scope: str,
    is_sorted: bool,
) -> dict[str, Any]:
    """Return the texts and numbers of a chart, by the names of its template.

    There is one picture for each number. `caption`: which rows the chart shows, and which it leaves
    out. `x` and `names`: see `Chart`.

    Args:
        chart: the columns.
        rows: all rows of the chart.
        kinds: of the columns, by name.
        formats: of the numbers.
        scope: which rows they are, in words; empty if they are all.
        is_sorted: the reader has chosen the order of the rows, and bars keep it.
    """
    names = ", ".join(chart.names)
    if chart.kind == "tiles":
        code = formats.code_of(rows[0])
        tiles = [
            (name, formats.write(name, rows[0][name], code)) for name in chart.numbers[:MOST_TILES]
        ]
        return {"kind": "tiles", "caption": "The only row.", "tiles": tiles}
    if chart.kind == "bars":
        bars = [_bars(chart, it, rows, formats, is_sorted=is_sorted) for it in chart.numbers]
        caption = f"{_bars_caption(rows, scope, is_sorted)}{_mixed(chart, rows, formats)}"
        return {"kind": "bars", "caption": caption.strip(), "names": names, "bars": bars}
    others = chart_lines(chart, chart.numbers[0], rows)[1]
    left_out = f"The {MOST_LINES} busiest of {MOST_LINES + others} lines. " if others else ""
    zone = "" if kinds[chart.x] != "timestamp" else " Times are UTC."
    caption = f"{left_out}{_sentence(scope)}{zone}{_mixed(chart, rows, formats)}".strip()
    views = [_lines(chart, number, rows, kinds[chart.x], formats) for number in chart.numbers]
    return {"kind": "lines", "caption": caption, "x": chart.x, "names": names, "lines": views}


def axis_marks(values: Sequence[float]) -> list[Decimal]:
    """Return four to six round numbers, ascending, equally far apart, that hold all these values.

    They are those that leave the least room.

    >>> [int(mark) for mark in axis_marks([3.0, 97.0])]
    [0, 25, 50, 75, 100]
    """
    low, high = min(values), max(values)
    # A course is seen from zero, unless it is far away from it.
    if low >= 0 and (low < high / 2 or low == high):
        low = 0.0
    elif high <= 0 and (high > low / 2 or low == high):
        high = 0.0
    if low == high:
        high = 1.0
    first, last = Decimal(repr(low)), Decimal(repr(high))
    offered = [_marks(first, last, spaces) for spaces in _SPACES]
    return min(offered, key=lambda marks: marks[-1] - marks[0])


def _marks(first: Decimal, last: Decimal, spaces: int) -> list[Decimal]:
    step = _step((last - first) / spaces)
    while True:
        start = (first / step).to_integral_value(ROUND_FLOOR) * step
        if start + step * spaces >= last:
            return [start + step * number for number in range(spaces + 1)]
        step = _step(step * Decimal("1.01"))


def _step(least: Decimal) -> Decimal:
    """Return the least round number that is not below this one: 1, 2, 2.5 or 5 times a power."""
    power = Decimal(1).scaleb(least.adjusted())
    return next(
        power * factor
        for factor in (Decimal(1), Decimal(2), Decimal("2.5"), Decimal(5), Decimal(10))
        if power * factor >= least
    )


def _mixed(chart: Chart, rows: Sequence[ChartRow], formats: NumberFormats) -> str:
    if any(formats.are_mixed(number, rows) for number in chart.numbers):
        return " Amounts are in several currencies: lengths and heights do not compare them."
    return ""


def _lines(
    chart: Chart, number: str, rows: Sequence[ChartRow], kind: str, formats: NumberFormats
) -> dict[str, Any]:
    """Return the lines of one number, with the texts of both axes, from the top and the left."""
    lines, _ = chart_lines(chart, number, rows)
    moments = [moment for line in lines for moment, _ in line.points]
    start, end = min(moments), max(moments)
    values = [
        value for line in lines for _, raw in line.points if (value := plotted(raw)) is not None
    ]
    marks = axis_marks(values or [0.0])
    rows_of: dict[str, list[ChartRow]] = {}
    for row in rows:
        rows_of.setdefault(series_name(row, chart.names), []).append(row)
    views = []
    for look, line in enumerate(lines):
        write = partial(formats.write, number, code=formats.code_of_all(rows_of[line.name]))
        views.append(_line(look, line, (start, end), marks, write))
    times = [start + (end - start) * part / _SPACES_OF_TIME for part in range(_SPACES_OF_TIME + 1)]
    places = [HEIGHT * place // (len(marks) - 1) for place in range(len(marks))]
    ends = [_moment_words(moment, end - start, kind) for moment in (start, end)]
    count = f"{len(lines)} lines" if len(lines) > 1 else "One line"
    return {
        "number": number,
        "words": f"{count} of {number} by {chart.x}, from {ends[0]} to {ends[1]}. "
        "The table below has the newest, least and greatest value of each.",
        "y_marks": formats.write_marks(number, marks)[::-1],
        "x_marks": [_moment_words(moment, end - start, kind) for moment in times],
        "grid": "".join(f"M0 {place}H{WIDTH}" for place in places),
        "lines": views,
    }


def _line(
    look: int,
    line: ChartLine,
    span: tuple[datetime, datetime],
    marks: Sequence[Decimal],
    write: Callable[[Any], str],
) -> dict[str, Any]:
    """Return a line: its number for its look, its path, and its newest, least, greatest value."""
    values = [value for _, value in line.points if value is not None]
    return {
        "look": look,
        "name": line.name,
        "path": _path(line, span, marks),
        "newest": write(values[-1] if values else None),
        "least": write(min(values, key=_as_float, default=None)),
        "greatest": write(max(values, key=_as_float, default=None)),
    }


def _as_float(value: Any) -> float:
    return plotted(value) or 0.0


def _path(line: ChartLine, span: tuple[datetime, datetime], marks: Sequence[Decimal]) -> str:
    """Return the line's path: a gap where a value is not known, a dot where it is alone."""
    # The lines that are left may all be of one moment.
    start, width = span[0], (span[1] - span[0]) or timedelta(1)
    low, high = marks[0], marks[-1]
    runs: list[list[tuple[float, float]]] = [[]]
    for moment, raw in line.points:
        if (value := plotted(raw)) is None:
            runs.append([])
            continue
        # Not as floats: the difference of two of them may be larger than the largest one.
        y = float(HEIGHT * (high - Decimal(repr(value))) / (high - low))
        runs[-1].append((WIDTH * ((moment - start) / width), y))
    pieces = []
    for run in filter(None, runs):
        points = [f"{x:.1f} {y:.1f}" for x, y in thinned(run)]
        pieces.append(f"M{points[0]}" + ("h0" if len(points) == 1 else "L" + " ".join(points[1:])))
    return "".join(pieces)


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that draw the same line: of each piece the first, last, top and bottom."""
    if len(points) <= 4 * _PIECES:
        return list(points)
    pieces: dict[int, list[int]] = {}
    for place, (x, _) in enumerate(points):
        pieces.setdefault(math.floor(x * _PIECES / WIDTH), []).append(place)
    corners: list[tuple[float, float]] = []
    for places in pieces.values():
        by_height = sorted(places, key=lambda place: points[place][1])
        chosen = {places[0], places[-1], by_height[0], by_height[-1]}
        corners.extend(points[place] for place in sorted(chosen))
    return corners


def _bars(
    chart: Chart,
    number: str,
    rows: Sequence[ChartRow],
    formats: NumberFormats,
    *,
    is_sorted: bool,
) -> dict[str, Any]:
    """Return the bars of one number; places and widths are in percent of the place."""
    named = [(series_name(row, chart.names), row[number], formats.code_of(row)) for row in rows]
    if not is_sorted:
        # A bar without a value comes last.
        named.sort(key=lambda bar: (plotted(bar[1]) is None, -(plotted(bar[1]) or 0.0), bar[0]))
    shown = named[:MOST_BARS]
    values = [value for _, raw, _ in shown if (value := plotted(raw)) is not None]
    low, high = min([0.0, *values]), max([0.0, *values])
    # The difference of two huge numbers may be larger than any number.
    scale = max(abs(low), abs(high)) or 1.0
    low, high = low / scale, high / scale
    room = (high - low) or 1.0
    bars = []
    for name, raw, code in shown:
        value = (plotted(raw) or 0.0) / scale
        start, end = min(value, 0.0), max(value, 0.0)
        bars.append(
            {
                "name": name,
                "value": formats.write(number, raw, code),
                "start": _percent((start - low) / room),
                "width": _percent((end - start) / room),
                "is_below": value < 0,
            }
        )
    return {"number": number, "zero": _percent(-low / room), "bars": bars}


def _percent(part: float) -> str:
    return f"{100 * part:.2f}%"


def _bars_caption(rows: Sequence[ChartRow], scope: str, is_sorted: bool) -> str:
    if len(rows) > MOST_BARS:
        word = "first" if is_sorted else "greatest"
        return f"The {MOST_BARS} {word} of {scope or f'{len(rows)} rows'}."
    return _sentence(scope)


def _sentence(scope: str) -> str:
    return f"{scope[:1].upper()}{scope[1:]}." if scope else ""


def _moment_words(moment: datetime, span: timedelta, kind: str) -> str:
    """Return a moment as exactly as the span asks for."""
    if kind != "date" and span < timedelta(days=3):
        pattern = "d MMM HH:mm" if span >= timedelta(minutes=3) else "d MMM HH:mm:ss"
    else:
        pattern = "d MMM y" if span > timedelta(days=300) else "d MMM"
    return format_datetime(moment, pattern, tzinfo=moment.tzinfo, locale=LOCALE)
