"""Chooses a chart for rows of a model: lines over time, bars by name, tiles of a single row.

Used by a model's page. The rules look at the kinds of columns, the key and the values; nothing is
added up or averaged, since only the project knows which numbers may be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

from livemart.store.served import ServedModel
from livemart.store.value_forms import TIMESTAMPS, decimal_size

ChartKind = Literal["lines", "bars", "tiles"]
ChartRow = Mapping[str, Any]

# One picture has no room for more.
MOST_LINES = 8
MOST_BARS = 20
MOST_TILES = 12
# Panels: how many are chosen by the rules, and how many a reader may ask for.
_FIRST_NUMBERS, _MOST_NUMBERS = 2, 6
# A longer text names nothing.
_LONGEST_NAME = 60
_TIMES = (*TIMESTAMPS, "date")
_NAMES = ("name", "title", "label")
_PARTS_OF_A_NAME = ("string", "int", "bigint", "boolean", "date")
BETWEEN = " \N{MIDDLE DOT} "


@dataclass(frozen=True, slots=True)
class ChartWish:
    """The chart that the address asks for; if it is empty, the rules choose.

    `kind`: of a chart, or `none`. `x`: the column of times, or of names. `numbers`: columns of
    numbers. `by`: columns that name a line.
    """

    kind: str = ""
    x: str = ""
    numbers: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and the columns that it shows.

    `x`: the column of times of lines, else empty. `numbers`: one picture each; of tiles, one tile.
    `names`: the columns that together name a line or a bar; empty if there is only one line.
    """

    kind: ChartKind
    x: str
    numbers: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line: its name, and the moment and value of each point, ascending; None is a gap."""

    name: str
    points: tuple[tuple[datetime, Any], ...]


def is_number(kind: str) -> bool:
    """Return True for a kind whose values are numbers."""
    return kind in ("int", "bigint", "float", "double") or decimal_size(kind) is not None


def is_time_kind(kind: str) -> bool:
    """Return True for a kind whose values are days or moments."""
    return kind in _TIMES


def time_of(model: ServedModel, wish: ChartWish = ChartWish()) -> str | None:
    """Return the column of times that a chart of a model would have; None if it has none."""
    times = [name for name, kind in model.columns if is_time_kind(kind)]
    first = [wish.x, model.time_column, *(name for name in model.row_key if name in times)]
    return next((name for name in [*first, *times] if name in times), None)


def choose_chart(model: ServedModel, rows: Sequence[ChartRow], wish: ChartWish) -> Chart | None:
    """Return the chart of these rows; None if no chart fits them, or none is wished for.

    One row gives tiles. Lines need times and numbers, and at most one row for each moment of a
    line. Bars need numbers, and names of which no two are the same. A model whose key holds no time
    has a row for each thing, and so it has bars rather than lines.

    Args:
        model: whose rows they are.
        rows: with all columns that the chart may need.
        wish: what the address asks for; names of columns that do not fit are passed over.
    """
    numbers = _numbers(model, rows, wish)
    if wish.kind == "none" or not rows or not numbers:
        return None
    time = time_of(model, wish)
    lines = None if time is None else _lines(model, rows, time, numbers, wish)
    bars = _bars(model, rows, numbers, wish)
    tiles = Chart("tiles", "", numbers, ()) if len(rows) == 1 else None
    of_kind = {"lines": lines, "bars": bars, "tiles": tiles}
    if wish.kind:
        return of_kind.get(wish.kind)
    is_course = time is not None and (time in model.row_key or time == model.time_column)
    return tiles or (lines if is_course else None) or bars or lines


def chart_lines(chart: Chart, number: str, rows: Sequence[ChartRow]) -> tuple[list[ChartLine], int]:
    """Return the busiest lines of a number, and how many others there are.

    The busiest line has the most values; of equals, the one with the largest ones.
    """
    points: dict[str, list[tuple[datetime, Any]]] = {}
    for row in rows:
        if (moment := row[chart.x]) is not None:
            value = row[number] if plotted(row[number]) is not None else None
            points.setdefault(series_name(row, chart.names), []).append((_moment(moment), value))

    def business(name: str) -> tuple[int, float]:
        values = [plotted(value) or 0.0 for _, value in points[name] if value is not None]
        return -len(values), -sum(map(abs, values))

    in_turn = sorted(points, key=lambda name: (*business(name), name))
    busiest = sorted(in_turn[:MOST_LINES])
    lines = [
        ChartLine(name, tuple(sorted(points[name], key=lambda point: point[0]))) for name in busiest
    ]
    return lines, len(in_turn) - len(busiest)


def series_name(row: ChartRow, names: Sequence[str]) -> str:
    """Return the name of a row by these columns; an empty text if it is the only one."""
    return BETWEEN.join("\N{EN DASH}" if row[name] is None else str(row[name]) for name in names)


def plotted(value: Any) -> float | None:
    """Return where a number is drawn; None for NULL, NaN and infinities."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _numbers(model: ServedModel, rows: Sequence[ChartRow], wish: ChartWish) -> tuple[str, ...]:
    kinds = model.kinds
    if wished := [name for name in wish.numbers if is_number(kinds.get(name, ""))]:
        return tuple(wished[: MOST_TILES if len(rows) == 1 else _MOST_NUMBERS])
    numbers = [
        name
        for name, kind in model.columns
        if is_number(kind)
        and name not in (*model.row_key, model.tenant_column)
        and not _is_id(name)
        and any(plotted(row[name]) is not None for row in rows)
    ]
    return tuple(numbers[: MOST_TILES if len(rows) == 1 else _FIRST_NUMBERS])


def _is_id(name: str) -> bool:
    """Return True for a column whose numbers only tell things apart."""
    plain = name.lower()
    return plain == "id" or plain.endswith(("_id", " id")) or name.endswith("Id")


def _lines(
    model: ServedModel,
    rows: Sequence[ChartRow],
    time: str,
    numbers: tuple[str, ...],
    wish: ChartWish,
) -> Chart | None:
    if len({row[time] for row in rows} - {None}) < 2:
        return None
    for names in _line_names(model, rows, time, numbers, wish):
        places = Counter(
            (row[time], series_name(row, names)) for row in rows if row[time] is not None
        )
        if max(places.values()) == 1:
            return Chart("lines", time, numbers, names)
    return None


def _line_names(
    model: ServedModel,
    rows: Sequence[ChartRow],
    time: str,
    numbers: Collection[str],
    wish: ChartWish,
) -> list[tuple[str, ...]]:
    """Return the columns that may name a line, the best first."""
    kinds = model.kinds
    if wished := tuple(name for name in wish.by if kinds.get(name) in _PARTS_OF_A_NAME):
        return [wished]
    if time in model.row_key:
        others = [name for name in model.row_key if name != time]
        if any(kinds[name] not in _PARTS_OF_A_NAME for name in others):
            return []
        # A column with one value in all rows tells no line from another.
        return [tuple(name for name in others if len({row[name] for row in rows}) > 1)]
    short = [name for name in _short_texts(model, rows) if name not in model.row_key]
    return [(), *((name,) for name in short if name not in numbers)]


def _bars(
    model: ServedModel, rows: Sequence[ChartRow], numbers: tuple[str, ...], wish: ChartWish
) -> Chart | None:
    texts = [name for name in _short_texts(model, rows) if _is_distinct(rows, (name,))]
    key = tuple(name for name in model.row_key if len({row[name] for row in rows}) > 1)
    has_text = any(model.kinds[name] == "string" for name in key)
    is_nameable = has_text and all(model.kinds[name] in _PARTS_OF_A_NAME for name in key)
    candidates = [
        *((name,) for name in texts if name == wish.x),
        *((name,) for name in texts if name.lower().endswith(_NAMES)),
        *((name,) for name in texts if name in model.row_key),
        *((name,) for name in texts),
        *([key] if is_nameable and _is_distinct(rows, key) else []),
    ]
    return Chart("bars", "", numbers, candidates[0]) if candidates else None


def _short_texts(model: ServedModel, rows: Sequence[ChartRow]) -> list[str]:
    return [
        name
        for name, kind in model.columns
        if kind == "string"
        and all(len(row[name]) <= _LONGEST_NAME for row in rows if row[name] is not None)
        and any(row[name] for row in rows)
    ]


def _is_distinct(rows: Sequence[ChartRow], names: Sequence[str]) -> bool:
    return len({series_name(row, names) for row in rows}) == len(rows)


def _moment(value: date) -> datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return datetime(value.year, value.month, value.day, tzinfo=UTC)
