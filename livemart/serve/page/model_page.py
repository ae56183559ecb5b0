"""Builds the pages of served models: the rows of one, or a dashboard of several.

Used by the router of pages. Rights, conditions, order and cursors are those of `/v1/models/{name}`:
an address of the one is an address of the other, but for the parameters that begin with `page.`.
A dashboard is an exposure of the project; a caller sees the models of it that they may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from starlette.requests import Request

from livemart.epoch import parse_moment
from livemart.project.declared.model_page import NO_PAGE, PageSpec
from livemart.serve.auth.callers import Caller
from livemart.serve.auth.seal import Seal
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.live.snapshot_json import json_text
from livemart.serve.models.pull import asked_rows, may_read
from livemart.serve.models.row_cursors import RowCursors, order_kinds
from livemart.serve.models.row_forms import FORMS
from livemart.serve.models.row_questions import RowQuestion, read_row_question
from livemart.serve.models.written_rows import MOST_BYTES, row_place
from livemart.serve.page.chart_view import build_chart
from livemart.serve.page.charts import (
    Chart,
    ChartRow,
    ChartWish,
    choose_chart,
    is_number,
    is_time_kind,
    time_of,
)
from livemart.serve.page.model_address import OPERATORS, ModelAddress
from livemart.serve.page.models_view import (
    build_columns,
    build_conditions,
    build_heads,
    build_model,
    build_rows,
    extent_words,
)
from livemart.serve.page.number_formats import NumberFormats
from livemart.serve.shares.shares import note_rows
from livemart.store.positions import Position
from livemart.store.predicates import AskedRows
from livemart.store.row_places import order_columns
from livemart.store.served import Dashboard
from livemart.store.snapshot_view import SnapshotView

MOST_SHOWN = 100
# The API writes more rows; a browser would take seconds to show them.
_MOST_ASKED = 500
# Rows of a chart that is no picture of the rows below it alone.
_CHARTED = 2_000
# Values of a chart that are read at once: fewer rows of a model with many columns.
_CHARTED_VALUES = 24_000
# In a larger model the newest rows are not found without reading them all.
_MOST_SEARCHED = 200_000
_FROM_LARGE = (
    f"A model of more than {_MOST_SEARCHED:,} rows is drawn from its first ones, in the order of "
    "the rows below."
)
MOST_LOADED = 10_000
# Values that may be long; to count the signs of each number takes the server's time.
_LONG = (str, bytes, list, dict)
_CHARTS = [("lines", "Lines"), ("bars", "Bars"), ("tiles", "Tiles"), ("none", "None")]
# Each reads up to 2,000 rows; a browser, and a reader, would take long over more.
_MOST_DRAWN = 12
_ROWS_OF_A_PANEL = 10


@dataclass(frozen=True, slots=True)
class ShownRows:
    """Rows of a page, with the columns of `question` and the address that asks for them.

    `next`: the cursor of the rows behind them, None if there are none. `has_changed`: the rows of
    the page before were those of an earlier snapshot.
    """

    rows: list[ChartRow]
    question: RowQuestion
    next: str | None
    has_changed: bool


def read_rows(
    request: Request, caller: Caller, view: SnapshotView, address: ModelAddress
) -> tuple[ShownRows, dict[str, Any] | None]:
    """Return the rows and the chart that an address asks for.

    Raises:
        ProblemError: PARAMETER_WRONG, POSITION_REFUSED, SNAPSHOT_GONE.
    """
    model = address.model
    after = address.first("after")
    question = read_row_question(model, address.conditions, address.first("select"), address.order)
    times = (_read_moment(address, "from"), _read_moment(address, "to"))
    keys, column = address.all("key"), address.first("time_column")
    asked = asked_rows(model, caller, question, keys, *times, column)
    limit = _read_limit(address)
    in_turn = order_columns(model, question.order_by)
    currency = [address.page.currency] if address.page.currency in model.kinds else []
    asked["columns"] = tuple(dict.fromkeys([*question.columns, *in_turn, *currency]))
    which = json_text(sorted(address.of_rows))
    cursors = RowCursors(part_of(request, Seal), model.name, caller.tenants, which)
    kinds = order_kinds(model, question.order_by)
    since, behind = (None, None) if after is None else cursors.read(after, kinds)
    shown, has_more = _read_most(request, view, model.name, limit, {**asked, "behind": behind})
    next_ = None
    if has_more:
        here = Position(view.published.snapshot_id, view.mark(model.name))
        next_ = cursors.write(here, row_place(model, in_turn, shown, behind), kinds)
    has_changed = since is not None and not view.is_unchanged(model.name, since, caller.tenants)
    page_rows = ShownRows(shown, question, next_, has_changed)
    return page_rows, _read_chart(request, view, address, asked)


def build_page(
    address: ModelAddress, shown: ShownRows, model: Mapping[str, Any], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the texts and addresses of the page, by the names of its template."""
    kinds, question = address.model.kinds, shown.question
    parts = [
        name for name, kind in kinds.items() if kind not in ("json", "binary", "float", "double")
    ]
    across = [name for name in parts if is_time_kind(kinds[name]) or kinds[name] == "string"]
    of_rows = replace(address.model, columns=question.columns_of(address.model))
    return {
        "address": address,
        "about": about,
        "page": address.page,
        "wish": address.chart_wish,
        "columns": build_heads(address, question),
        "all_columns": build_columns(address, question, about),
        "rows": build_rows(of_rows, shown.rows, NumberFormats.of(address.page, kinds)),
        "extent": extent_words(model, len(shown.rows), address, has_more=shown.next is not None),
        "conditions": build_conditions(address),
        "has_changed": shown.has_changed,
        "is_later": address.first("after") is not None,
        "next_href": shown.next and address.next_page(shown.next),
        "downloads": [
            (form.word, address.download(name, MOST_LOADED)) for name, form in FORMS.items()
        ],
        "operators": list(OPERATORS.items()),
        "filterable": [(name, name) for name in kinds],
        "chart_kinds": _CHARTS,
        "numbers": [(name, name) for name, kind in kinds.items() if is_number(kind)],
        "across": [(name, name) for name in across],
        "names": [(name, name) for name in parts if not is_time_kind(kinds[name])],
    }


def _read_chart(
    request: Request, view: SnapshotView, address: ModelAddress, asked: AskedRows
) -> dict[str, Any] | None:
    """Return the chart of the rows that an address asks for, whichever page of them is shown.

    Args:
        request: notes how many rows are read.
        view: the snapshot.
        address: with the wish for a chart.
        asked: the rows.
    """
    model, wish = address.model, _wish_of(address)
    if wish.kind == "none":
        return None
    names = [name for name, kind in model.columns if kind not in ("json", "binary")]
    if not names:
        return None
    time = time_of(model, wish)
    # An index finds the rows of a tenant, and how many others have is not theirs to know. Another
    # one finds the newest rows by a key that begins with their time.
    is_indexed = asked["tenants"] is not None or (time is not None and model.row_key[:1] == (time,))
    is_large = not is_indexed and view.row_count(model.name) > _MOST_SEARCHED
    # The project's order is that of the rows below, and of bars.
    is_sorted = bool(asked.get("order_by"))
    is_ordered = address.first("order") is not None or (is_sorted and wish.kind == "bars")
    newest_first = time is not None and not is_ordered and not is_large
    most = MOST_SHOWN if is_large else max(MOST_SHOWN, min(_CHARTED, _CHARTED_VALUES // len(names)))
    order: AskedRows = {**asked, "columns": tuple(names)}
    if newest_first and time is not None:
        order = {**order, "order_by": (time,), "descending": (time,)}
        is_sorted = False
    rows, has_more = _read_most(request, view, model.name, most, order)
    scope = f"the {'newest' if newest_first else 'first'} {len(rows):,} rows" if has_more else ""
    chart = _choose_chart(address, rows, wish)
    if chart is None:
        return None
    formats = NumberFormats.of(address.page, model.kinds)
    drawn = build_chart(chart, rows, dict(model.columns), formats, scope=scope, is_sorted=is_sorted)
    if scope and is_large:
        drawn["caption"] += f" {_FROM_LARGE}"
    return drawn


def _read_most(
    request: Request, view: SnapshotView, name: str, most: int, asked: AskedRows
) -> tuple[list[ChartRow], bool]:
    """Return `most` rows of a model at most, and whether there are more.

    Where texts are long, there are fewer: they are in memory all at once.
    """
    page: AskedRows = {**asked, "limit": most + 1}
    rows, size = list[ChartRow](), 0
    slices = view.row_slices(name, size=MOST_SHOWN + 1, **page)
    for some in slices:
        rows += some
        size += sum(
            len(str(value)) for row in some for value in row.values() if isinstance(value, _LONG)
        )
        if size > MOST_BYTES and next(slices, None):
            note_rows(request, len(rows))
            return rows[:most], True
    note_rows(request, len(rows))
    return rows[:most], len(rows) > most


def _wish_of(address: ModelAddress) -> ChartWish:
    """Return the chart to draw: the address comes before the project, column by column."""
    wish, page = address.chart_wish, address.page
    return ChartWish(
        wish.kind or page.chart,
        wish.x or page.x,
        wish.numbers or page.numbers,
        wish.by or page.by,
    )


def _choose_chart(address: ModelAddress, rows: Sequence[ChartRow], wish: ChartWish) -> Chart | None:
    """Return the chart; where the project's kind does not fit these rows, the rules choose one."""
    asked, page = address.chart_wish, address.page
    if len(rows) == 1 and page.tiles and not asked.kind and not asked.numbers:
        return choose_chart(address.model, rows, replace(wish, kind="tiles", numbers=page.tiles))
    chart = choose_chart(address.model, rows, wish)
    if chart is None and not asked.kind:
        chart = choose_chart(address.model, rows, replace(wish, kind=""))
    return chart


def _read_moment(address: ModelAddress, name: str) -> datetime | None:
    text = address.first(name)
    if text is None:
        return None
    try:
        return parse_moment(text)
    except ValueError:
        detail = f"{name}: write a time as 2026-03-01T12:00Z; found {text[:80]}"
        raise ProblemError("PARAMETER_WRONG", detail) from None


def _read_limit(address: ModelAddress) -> int:
    text = address.first("limit")
    if text is None:
        return MOST_SHOWN
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_ASKED):
        raise ProblemError(
            "PARAMETER_WRONG",
            f"limit: write a number from 1 to {_MOST_ASKED}, the most of a page; found {text[:80]}",
        )
    return int(text)


def visible_dashboards(view: SnapshotView, caller: Caller) -> dict[str, Dashboard]:
    """Return the dashboards of which a caller may read a model, by name, in the order of titles."""
    visible = {
        name: board
        for name, board in view.pages().dashboards.items()
        if _readable(view, board, caller)
    }
    return dict(sorted(visible.items(), key=lambda item: (item[1].title, item[0])))


def read_dashboard(
    request: Request, view: SnapshotView, caller: Caller, name: str, now: datetime
) -> dict[str, Any]:
    """Return a dashboard with the rows of a caller, by the names of its template.

    `others`: title and address of further models, which are not drawn. `followed`: the model whose
    stream tells of each snapshot.

    Args:
        request: notes how many rows are read.
        view: the snapshot.
        caller: whose rows.
        name: of the dashboard.
        now: the wall clock, UTC.

    Raises:
        ProblemError: DASHBOARD_UNKNOWN, also if none of its models is the caller's to read.
    """
    pages = view.pages()
    board = pages.dashboards.get(name)
    names = [] if board is None else _readable(view, board, caller)
    if board is None or not names:
        detail = "no dashboard of this name exists with a model that you may read"
        raise ProblemError("DASHBOARD_UNKNOWN", detail)
    addresses = {it: _address(view, pages.models, it) for it in names}
    panels = [_panel(request, view, caller, addresses[it], now) for it in names[:_MOST_DRAWN]]
    others = [(addresses[it].page.title or it, addresses[it].path) for it in names[_MOST_DRAWN:]]
    paragraphs = [part.strip() for part in board.text.split("\n\n") if part.strip()]
    return {
        "title": board.title,
        "paragraphs": paragraphs,
        "panels": panels,
        "others": others,
        "followed": names[0],
    }


def _readable(view: SnapshotView, board: Dashboard, caller: Caller) -> list[str]:
    served = view.models()
    return [it for it in board.models if it in served and may_read(caller, served[it])]


def _address(view: SnapshotView, pages: Mapping[str, PageSpec], name: str) -> ModelAddress:
    model = view.models()[name]
    page, _ = pages.get(name, NO_PAGE).fitted(model.kinds)
    return ModelAddress.of(model, [], page)


def _panel(
    request: Request, view: SnapshotView, caller: Caller, address: ModelAddress, now: datetime
) -> dict[str, Any]:
    """Return a model on a dashboard: its chart, or else its first rows below `heads`."""
    model, page = address.model, address.page
    few = ModelAddress.of(model, [("limit", str(_ROWS_OF_A_PANEL))], page)
    shown, chart = read_rows(request, caller, view, few)
    described = view.description(model.name)
    about = build_model(view, model, caller, now)
    return {
        "name": model.name,
        "title": page.title or model.name,
        "href": address.path,
        "text": described.text.partition("\n\n")[0].strip() if described else "",
        "changed": about["changed"],
        "aside": about["aside"],
        "chart": chart,
        "heads": [] if chart else build_heads(address, shown.question),
        "rows": [] if chart else build_rows(model, shown.rows, NumberFormats.of(page, model.kinds)),
    }
