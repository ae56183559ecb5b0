"""Writes the console: the graph of the project, its batches, sources and tests.

Used by the router of pages, for admins, and as one file by `status --html`. It reads the snapshot
log, the graph and the notes of the newest run; nothing is measured here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request

from livemart.land.lag import SourceLag, WatchedLags, source_lags
from livemart.project.graph import short_name
from livemart.serve.http.parts import part_of
from livemart.serve.live.run_watch import RunWatch
from livemart.serve.page.console_graph import BOX_HEIGHT, BOX_WIDTH, around, draw_graph
from livemart.serve.page.run_words import failure_words, run_words
from livemart.serve.page.templating import render, style_sheet
from livemart.serve.page.text import DASH, age, count
from livemart.settings import Settings
from livemart.state.counts import Counts
from livemart.state.last_run import LastRun, read_last_run
from livemart.state.project_graph import GraphNode, ProjectGraph, read_graph
from livemart.state.snapshots import ModelState, Snapshot, SnapshotLog, how_to_show_rows
from livemart.storage.location import StoragePlace

CONSOLE_PATH = "/console"
# Snapshots that the console looks back.
MOST_BATCHES = 40
# A larger graph is drawn around a chosen node alone.
_MOST_DRAWN = 250
_LONGEST_NAME = 26
_FAILING = ("fail", "error")
_STATE_WORDS = {
    "fails": "a test fails",
    "warns": "a test warns",
    "aside": "set aside",
    "away": "away",
    "full": "recomputed in full",
    "ok": "up to date",
    "view": "computed when it is read",
    "reader": "shows what it reads",
    "none": "not built yet",
}


def build_console(
    rows: Sequence[Snapshot],
    graph: ProjectGraph | None,
    lags: Mapping[str, SourceLag],
    run: LastRun | None,
    now: datetime,
    chosen: str | None = None,
) -> dict[str, Any]:
    """Return the texts of the console, by the names of its template.

    Args:
        rows: snapshots, in any order; one more than is shown says what the oldest one changed.
        graph: of the project, if it is known.
        lags: how much waits for each source.
        run: the newest one.
        now: the wall clock, UTC.
        chosen: the unique id of a node; None, or an unknown one: all of them.
    """
    rows = sorted(rows, key=lambda row: row.snapshot_id, reverse=True)
    shown = rows[:MOST_BATCHES]
    newest = rows[0] if rows else None
    project = graph or _graph_of_log(newest)
    if chosen not in {node.unique_id for node in project.nodes}:
        chosen = None
    drawn = project.nodes if chosen is None else around(project.nodes, chosen)
    is_too_large = len(drawn) > _MOST_DRAWN
    nodes = [_node(node, rows, lags, now) for node in drawn]
    return {
        "project": project.project,
        "run": run_words(run, now),
        "failed": failure_words(run, now, is_admin=True),
        "snapshot": "" if newest is None else _snapshot_words(newest, now),
        "is_held": newest is not None and newest.status == "held",
        "nodes": nodes,
        "picture": draw_graph(drawn) if drawn and graph and not is_too_large else None,
        "is_too_large": is_too_large,
        "chosen": next((it for it in nodes if it["unique_id"] == chosen), None),
        "history": [] if chosen is None else _history(shown, chosen),
        "batches": _batches(shown),
        "sources": _sources(shown, lags, now),
        "tests": _tests(newest, run),
    }


def _graph_of_log(newest: Snapshot | None) -> ProjectGraph:
    """Return the nodes that a snapshot names; who reads whom is not known."""
    if newest is None:
        return ProjectGraph("")
    models = [GraphNode(key, "table", short_name(key)) for key in newest.models]
    sources = [GraphNode(name, "source", name, name) for name in newest.sources]
    return ProjectGraph("", (*sources, *models))


def _node(
    node: GraphNode, rows: Sequence[Snapshot], lags: Mapping[str, SourceLag], now: datetime
) -> dict[str, Any]:
    """Return a node: `state` chooses its look, `words` name it.

    `changed`, `took`, `rows`: of the newest batch in which its table changed; `newest`: all three.
    """
    newest = rows[0] if rows else None
    newest_tests = newest.tests if newest else {}
    outcomes = Counter(newest_tests[it] for it in node.tests if it in newest_tests)
    changed = _changed_in(node, rows)
    model = changed.models.get(node.unique_id) if changed else None
    current = newest.models.get(node.unique_id) if newest else None
    aside = newest.set_aside.get(node.unique_id) if newest else None
    lag = lags.get(node.relation)
    state = _state(node, outcomes, current, is_aside=aside is not None, lag=lag, newest=newest)
    reason = (current.reason or "") if current else ""
    if aside is not None:
        why = "" if aside.cause == node.unique_id else f"waits for {short_name(aside.cause)}: "
        reason = f"since snapshot {aside.since}: {why}{aside.message}"
    elif lag is not None and lag.away:
        reason = lag.away
    landed = changed.landed.get(node.relation) if changed else None
    count_text = DASH
    if model is not None:
        count_text = count(model.rows_changed)
    elif landed is not None:
        count_text = count(landed.landed)
    changed_text = DASH if changed is None else age(now - changed.finished_at)
    took = DASH if model is None else _seconds(model.took_ms / 1000)
    parts = [f"{count_text} rows" if count_text != DASH else DASH, took, changed_text]
    return {
        "unique_id": node.unique_id,
        "kind": node.kind,
        "name": node.name,
        "short": _cut(node.name),
        "state": state,
        "words": _STATE_WORDS[state],
        "strategy": current.strategy if current else "",
        "reason": reason,
        "changed": changed_text,
        "took": took,
        "rows": count_text,
        "newest": ", ".join(it for it in parts if it != DASH) or node.kind,
        "tests": ", ".join(f"{number} {word}" for word, number in sorted(outcomes.items())) or DASH,
    }


def _state(
    node: GraphNode,
    outcomes: Mapping[str, int],
    current: ModelState | None,
    *,
    is_aside: bool,
    lag: SourceLag | None,
    newest: Snapshot | None,
) -> str:
    if is_aside:
        return "aside"
    if any(outcomes.get(word) for word in _FAILING):
        return "fails"
    if lag is not None and lag.away:
        return "away"
    if outcomes.get("warn"):
        return "warns"
    if node.kind == "exposure":
        return "reader"
    if node.kind == "source":
        return "ok" if newest is not None and node.relation in newest.sources else "none"
    if current is None:
        return "none" if node.kind in ("table", "incremental", "seed", "snapshot") else "view"
    is_full = newest is not None and newest.kind == "refresh" and current.strategy == "full"
    return "full" if is_full and current.reason else "ok"


def _changed_in(node: GraphNode, rows: Sequence[Snapshot]) -> Snapshot | None:
    """Return the newest snapshot in which the table of a node has another version than before."""

    def table_in(row: Snapshot) -> object:
        if node.kind == "source":
            return row.sources.get(node.relation)
        state = row.models.get(node.unique_id)
        return None if state is None else (state.version, state.table_id)

    for row, before in zip(rows, [*rows[1:], None], strict=True):
        if table_in(row) is None:
            return None
        if before is None:
            return row if len(rows) <= MOST_BATCHES else None
        if table_in(before) != table_in(row):
            return row
    return None


def _batches(rows: Sequence[Snapshot]) -> list[dict[str, Any]]:
    """Return the batches; `width`: of the duration, in percent of the longest."""
    longest = max((_took_s(row) for row in rows), default=0.0)
    return [_batch(row, longest) for row in rows]


def _batch(row: Snapshot, longest: float) -> dict[str, Any]:
    slowest = max(row.models, key=lambda key: row.models[key].took_ms, default=None)
    lag = None
    if row.kind == "refresh" and row.status == "published" and row.delivered_at is not None:
        lag = (row.finished_at - row.delivered_at).total_seconds()
    return {
        "snapshot_id": row.snapshot_id,
        "kind": row.kind,
        "status": row.status,
        "finished": f"{row.finished_at:%Y-%m-%d %H:%M:%S}",
        "took": _seconds(_took_s(row)),
        "width": _percent(_took_s(row), longest),
        "lag": DASH if lag is None else _seconds(lag),
        "landed": count(sum(it.landed for it in row.landed.values())),
        "dead_letters": count(sum(it.dead_letters for it in row.landed.values())),
        "rows_changed": count(sum(state.rows_changed for state in row.models.values())),
        "slowest": DASH
        if slowest is None
        else f"{short_name(slowest)} {_seconds(row.models[slowest].took_ms / 1000)}",
        "full": [
            f"{short_name(key)}: {state.reason}"
            for key, state in row.stored.items()
            if row.kind == "refresh" and state.strategy == "full" and state.reason
        ],
    }


def _history(rows: Sequence[Snapshot], unique_id: str) -> list[dict[str, Any]]:
    """Return the part of each batch that a model had."""
    states = [(row, row.models[unique_id]) for row in rows if unique_id in row.models]
    longest = max((state.took_ms for _, state in states), default=0)
    return [
        {
            "snapshot_id": row.snapshot_id,
            "finished": f"{row.finished_at:%Y-%m-%d %H:%M:%S}",
            "strategy": state.strategy,
            "reason": state.reason or "",
            "took": _seconds(state.took_ms / 1000),
            "width": _percent(state.took_ms, longest),
            "rows": count(state.rows_changed),
        }
        for row, state in states
    ]


def _sources(
    rows: Sequence[Snapshot], lags: Mapping[str, SourceLag], now: datetime
) -> list[dict[str, str]]:
    """Return the landed sources: the records of these batches, and those that wait."""
    sums: dict[str, Counts] = {name: Counts() for name, lag in lags.items() if lag.away}
    for row in rows:
        for name, counts in row.landed.items():
            sums[name] = sums.get(name, Counts()) + counts
    return [
        {
            "relation": name,
            "landed": count(counts.landed),
            "superseded": count(counts.superseded),
            "dead_letters": count(counts.dead_letters),
            "waiting": _waiting(lags.get(name), now),
            "away": lags[name].away if name in lags else "",
        }
        for name, counts in sorted(sums.items())
    ]


def _waiting(lag: SourceLag | None, now: datetime) -> str:
    if lag is None:
        return DASH
    words = []
    if lag.files:
        words.append(f"{count(lag.files)} {'file' if lag.files == 1 else 'files'}")
    if lag.records:
        about = "about " if lag.files else ""
        words.append(f"{about}{count(lag.records)} {'record' if lag.records == 1 else 'records'}")
    if words and lag.oldest_at is not None:
        words.append(f"the oldest from {age(timedelta(seconds=lag.waits_s(now)))}")
    return ", ".join(words) or "none"


def _tests(newest: Snapshot | None, run: LastRun | None) -> list[dict[str, str]]:
    """Return the tests that do not pass, each with the command that shows its rows."""
    if newest is None:
        return []
    noted = run.newest if run is not None else None
    is_of_newest = noted is not None and noted.snapshot_id == newest.snapshot_id
    standings = noted.tests if noted is not None and is_of_newest else {}
    tests = []
    for key, outcome in sorted(newest.tests.items()):
        if outcome not in (*_FAILING, "warn"):
            continue
        standing = standings.get(key)
        tests.append(
            {
                "name": short_name(key),
                "outcome": outcome,
                "rows": DASH if standing is None else count(standing.rows),
                "place": standing.place if standing is not None else "",
                "command": how_to_show_rows(key).partition(": ")[2],
            }
        )
    return tests


def _snapshot_words(newest: Snapshot, now: datetime) -> str:
    return (
        f"Snapshot {newest.snapshot_id}, {newest.status} {age(now - newest.finished_at)}, "
        f"took {_seconds(_took_s(newest))}."
    )


def _took_s(row: Snapshot) -> float:
    return max((row.finished_at - row.started_at).total_seconds(), 0.0)


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "0%"


def _cut(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


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
