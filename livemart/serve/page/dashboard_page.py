"""Builds the page of a dashboard: the chart, or the first rows, of each model that it names.

Used by the router of pages. A dashboard is an exposure of the project; a caller sees the models of
it that they may read, and none of their rows that are not theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from starlette.requests import Request

from livemart.project.declared.model_page import NO_PAGE, PageSpec
from livemart.serve.auth.callers import Caller
from livemart.serve.http.problems import Kinds, ProblemError
from livemart.serve.models.pull import may_read
from livemart.serve.page.chart_view import ChartView
from livemart.serve.page.model_address import ModelAddress
from livemart.serve.page.model_page import read_rows
from livemart.serve.page.models_view import HeadView, build_heads, build_model, build_rows
from livemart.serve.page.number_formats import NumberFormats
from livemart.store.served import Dashboard
from livemart.store.snapshot_view import SnapshotView

# Each reads up to 2,000 rows; a browser, and a reader, would take long over more.
_MOST_DRAWN = 12
_ROWS_OF_A_PANEL = 10


class DashboardProblemError(ProblemError):
    """A question for a dashboard that is answered with a problem."""

    kinds: ClassVar[Kinds] = {"DASHBOARD_UNKNOWN": (404, "Unknown dashboard")}


@dataclass(frozen=True, slots=True)
class DashboardPanel:
    """A model on a dashboard: its chart, or else its first rows below `heads`."""

    name: str
    title: str
    href: str
    text: str
    changed: str
    aside: str
    chart: ChartView | None
    heads: Sequence[HeadView]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class DashboardView:
    """A dashboard as a caller sees it.

    `others`: title and address of further models, which are not drawn. `followed`: the model whose
    stream tells of each snapshot.
    """

    title: str
    paragraphs: Sequence[str]
    panels: Sequence[DashboardPanel]
    others: Sequence[tuple[str, str]]
    followed: str


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
) -> DashboardView:
    """Return a dashboard with the rows of a caller.

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
        raise DashboardProblemError("DASHBOARD_UNKNOWN", detail)
    addresses = {it: _address(view, pages.models, it) for it in names}
    panels = [_panel(request, view, caller, addresses[it], now) for it in names[:_MOST_DRAWN]]
    others = [(addresses[it].page.title or it, addresses[it].path) for it in names[_MOST_DRAWN:]]
    paragraphs = [part.strip() for part in board.text.split("\n\n") if part.strip()]
    return DashboardView(board.title, paragraphs, panels, others, names[0])


def _readable(view: SnapshotView, board: Dashboard, caller: Caller) -> list[str]:
    served = view.models()
    return [it for it in board.models if it in served and may_read(caller, served[it])]


def _address(view: SnapshotView, pages: Mapping[str, PageSpec], name: str) -> ModelAddress:
    model = view.models()[name]
    page, _ = pages.get(name, NO_PAGE).fitted(model.kinds)
    return ModelAddress.of(model, [], page)


def _panel(
    request: Request, view: SnapshotView, caller: Caller, address: ModelAddress, now: datetime
) -> DashboardPanel:
    model, page = address.model, address.page
    few = ModelAddress.of(model, [("limit", str(_ROWS_OF_A_PANEL))], page)
    shown, chart = read_rows(request, caller, view, few)
    described = view.description(model.name)
    about = build_model(view, model, caller, now)
    return DashboardPanel(
        name=model.name,
        title=page.title or model.name,
        href=address.path,
        text=described.text.partition("\n\n")[0].strip() if described else "",
        changed=about.changed,
        aside=about.aside,
        chart=chart,
        heads=[] if chart else build_heads(address, shown.question),
        rows=[] if chart else build_rows(model, shown.rows, NumberFormats.of(page, model.kinds)),
    )
