"""Writes the console: as a page of the server, and as one file.

Used by the router of pages, for admins, and by `status --html`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from starlette.requests import Request

from livemart.land.lag import SourceLag, WatchedLags, source_lags
from livemart.serve.http.parts import part_of
from livemart.serve.live.run_watch import RunWatch
from livemart.serve.page.console_graph import BOX_HEIGHT, BOX_WIDTH
from livemart.serve.page.console_view import CONSOLE_PATH, MOST_BATCHES, build_console
from livemart.serve.page.templating import render, style_sheet
from livemart.settings import Settings
from livemart.state.last_run import LastRun, read_last_run
from livemart.state.project_graph import read_graph
from livemart.state.snapshots import SnapshotLog
from livemart.storage.location import StoragePlace


def console_values(request: Request, now: datetime, node: str | None) -> dict[str, Any]:
    """Return the texts of the console's page, by the names of its template.

    Args:
        request: of an admin.
        now: the wall clock, UTC.
        node: the unique id of the node whose history is asked for, if any.
    """
    settings = part_of(request, Settings)
    lags = part_of(request, WatchedLags).lags()
    run = part_of(request, RunWatch).newest()
    return _values(settings.warehouse, lags, run, now, node) | {"is_file": False}


def console_file(settings: Settings, now: datetime) -> str:
    """Return the console as one file of HTML, which needs nothing from elsewhere."""
    warehouse = settings.warehouse
    lags = WatchedLags(lambda: source_lags(warehouse, settings.landing)).lags()
    values = _values(warehouse, lags, read_last_run(warehouse), now, None)
    return render("console.html", **values, is_file=True, style=style_sheet())


def _values(
    warehouse: StoragePlace,
    lags: Mapping[str, SourceLag],
    run: LastRun | None,
    now: datetime,
    node: str | None,
) -> dict[str, Any]:
    rows = SnapshotLog(warehouse).rows(MOST_BATCHES + 1)
    return {
        "console": build_console(rows, read_graph(warehouse), lags, run, now, node),
        "warehouse": warehouse,
        "now": now,
        "path": CONSOLE_PATH,
        "box_width": BOX_WIDTH,
        "box_height": BOX_HEIGHT,
    }
