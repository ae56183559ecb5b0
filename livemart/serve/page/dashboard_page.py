"""Builds the page of a dashboard: the chart, or the first rows, of each model that it names.

Used by the router of pages. A dashboard is an exposure of the project; a caller sees the models of
it that they may read, and none of their rows that are not theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from starlette.requests import Request

from livemart.project.declared.model_page import NO_PAGE, PageSpec
from livemart.serve.auth.callers import Caller
from livemart.serve.http.problems import ProblemError
from livemart.serve.models.pull import may_read
from livemart.serve.page.model_address import ModelAddress
from livemart.serve.page.model_page import read_rows
from livemart.serve.page.models_view import build_heads, build_model, build_rows
from livemart.serve.page.number_formats import NumberFormats
from livemart.store.served import Dashboard
from livemart.store.snapshot_view import SnapshotView

# Each reads up to 2,000 rows; a browser, and a reader, would take long over more.
_MOST_DRAWN = 12
_ROWS_OF_A_PANEL = 10


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
