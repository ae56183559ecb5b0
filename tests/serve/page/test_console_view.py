"""The console shows the state of each node and batch, from the log alone."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from livemart.land.lag import SourceLag
from livemart.serve.page.console_view import build_console, console_file
from livemart.serve.page.text import DASH
from livemart.state.atomic_files import write_state_file
from livemart.state.counts import TableCounts
from livemart.state.last_run import LastRun, NewestBatch, TestStanding
from livemart.state.places import StateFolder
from livemart.state.project_graph import GraphNode, ProjectGraph
from livemart.state.snapshots import ModelState, SetAside, Snapshot, SnapshotLog
from tests.serve.apps import Site, make_settings, site
from tests.serve.page.any_models import EVIL
from tests.serve.page.template_names import by_name

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOURS, DAYS, STG = "model.shop.hours", "model.shop.days", "model.shop.stg"
UNIQUE, FEW = "test.shop.unique_hours.1a", "test.shop.few.2b"
GRAPH = ProjectGraph(
    "shop",
    (
        GraphNode("source.shop.orders", "source", "shop.orders", "bronze.orders"),
        GraphNode(STG, "view", "stg", "silver.stg", ("source.shop.orders",)),
        GraphNode(HOURS, "table", "hours", "gold.hours", (STG,), (UNIQUE, FEW)),
        GraphNode(DAYS, "table", "a_name_that_is_longer_than_a_box", "gold.days", (HOURS,)),
        GraphNode("exposure.shop.page", "exposure", "The page", reads=(DAYS,)),
    ),
)
HTML = "text/html,*/*;q=0.8"


def state(version: int, **other: Any) -> ModelState:
    values: dict[str, Any] = {
        "fingerprint": "f",
        "strategy": "signed",
        "reason": None,
        "rows_changed": 10 * version,
        "took_ms": 100 * version,
        "generation": 0,
        "table_id": "t",
    }
    return ModelState(version, **(values | other))


def snapshot(number: int, **other: Any) -> Snapshot:
    """Return a refresh that ended `number` minutes after noon and took as many seconds."""
    finished_at = NOON + timedelta(minutes=number)
    values: dict[str, Any] = {
        "as_of": finished_at,
        "sources": {"bronze.orders": number},
        "models": {HOURS: state(number), DAYS: state(1)},
        "tests": {UNIQUE: "pass", FEW: "pass"},
        "status": "published",
        "started_at": finished_at - timedelta(seconds=number),
        "finished_at": finished_at,
        "landed": {"bronze.orders": TableCounts(12, 10, 1, 1)},
        "delivered_at": finished_at - timedelta(seconds=90),
    }
    return Snapshot(number, "e", number, kind="refresh", **(values | other))


def view(*rows: Snapshot, chosen: str | None = None, **facts: Any) -> Any:
    known: dict[str, Any] = {"graph": GRAPH, "lags": {}, "run": None} | facts
    texts = build_console(rows, **known, now=NOON + timedelta(minutes=10), chosen=chosen)
    return by_name(texts)


def nodes_of(console: Any) -> dict[str, Any]:
    return {node.unique_id: node for node in console.nodes}


def test_a_node_has_its_state_age_strategy_seconds_rows_and_tests() -> None:
    nodes = nodes_of(view(snapshot(3), snapshot(2), snapshot(1)))

    hours, days, stg = nodes[HOURS], nodes[DAYS], nodes[STG]
    assert (hours.state, hours.strategy, hours.changed) == ("ok", "signed", "7 min ago")
    assert (hours.took, hours.rows, hours.tests) == ("0.3 s", "30", "2 pass")
    # It has not changed since the first batch, which is still listed.
    assert (days.changed, days.rows, days.tests) == ("9 min ago", "10", DASH)
    assert (days.newest, nodes["exposure.shop.page"].newest) == (
        "10 rows, 0.1 s, 9 min ago",
        "exposure",
    )
    assert days.short == "a_name_that_is_longer_tha\N{HORIZONTAL ELLIPSIS}"
    assert (stg.state, stg.strategy, stg.rows) == ("view", "", DASH)
    source = nodes["source.shop.orders"]
    assert (source.state, source.changed, source.rows) == ("ok", "7 min ago", "10")


def test_the_worst_of_a_node_is_its_state() -> None:
    aside = SetAside(2, NOON, "f", HOURS, "MODEL_FAILED: no")
    broken = snapshot(
        3,
        models={HOURS: state(3, strategy="full", reason="KEY_UNKNOWN")},
        tests={UNIQUE: "warn", FEW: "pass"},
        set_aside={DAYS: aside},
    )

    nodes = nodes_of(view(broken, lags={"bronze.orders": SourceLag(away="no broker")}))
    failing = nodes_of(view(replace(broken, tests={UNIQUE: "fail"}, status="held")))
    full = nodes_of(view(replace(broken, tests={})))

    assert (nodes[HOURS].state, nodes[HOURS].tests) == ("warns", "1 pass, 1 warn")
    assert nodes[DAYS].state == "aside"
    assert nodes[DAYS].reason == "since snapshot 2: waits for hours: MODEL_FAILED: no"
    assert (nodes["source.shop.orders"].state, nodes["source.shop.orders"].reason) == (
        "away",
        "no broker",
    )
    assert failing[HOURS].state == "fails"
    assert (full[HOURS].state, full[HOURS].reason) == ("full", "KEY_UNKNOWN")


def test_batches_have_their_duration_lag_records_and_slowest_model() -> None:
    full = {HOURS: state(2, strategy="full", reason="KEY_UNKNOWN", took_ms=900), DAYS: state(1)}
    console = view(snapshot(4, status="held"), snapshot(2, models=full))

    held, before = console.batches
    assert console.is_held and console.snapshot.startswith("Snapshot 4, held 6 min ago")
    assert (held.status, held.took, held.width, held.lag) == ("held", "4.0 s", "100.00%", DASH)
    assert (before.took, before.width, before.lag) == ("2.0 s", "50.00%", "90.0 s")
    assert (before.landed, before.dead_letters, before.rows_changed) == ("10", "1", "30")
    assert (before.slowest, before.full) == ("hours 0.9 s", ["hours: KEY_UNKNOWN"])
    assert console.sources[0].landed == "20"


def test_a_chosen_node_has_its_history_and_its_neighbors() -> None:
    console = view(snapshot(2), snapshot(1), chosen=STG)
    of_hours = view(snapshot(2), snapshot(1), chosen=HOURS)

    assert console.chosen is not None and console.chosen.name == "stg"
    assert console.history == []
    assert [(it.snapshot_id, it.took, it.width, it.rows) for it in of_hours.history] == [
        (2, "0.2 s", "100.00%", "20"),
        (1, "0.1 s", "50.00%", "10"),
    ]
    assert view(snapshot(1), chosen="model.shop.nothing").chosen is None


def test_a_test_that_does_not_pass_has_the_command_that_shows_its_rows() -> None:
    run = LastRun(
        "stream",
        1,
        NOON,
        NOON,
        newest=NewestBatch(3, True, 1.0, {UNIQUE: TestStanding("fail", 7, "m.yml:3")}),
    )

    console = view(snapshot(3, tests={UNIQUE: "fail", FEW: "pass"}, status="held"), run=run)

    (test,) = console.tests
    assert (test.name, test.outcome, test.rows, test.place) == (
        "unique_hours",
        "fail",
        "7",
        "m.yml:3",
    )
    assert test.command.startswith('eval "$(livemart env)" && dbt show --select unique_hours')
    assert console.run == "The run of stream began 10 min ago and goes on."


def test_without_a_graph_there_is_the_table_alone_and_without_a_log_nothing() -> None:
    console = view(snapshot(1), graph=None)
    nothing = view(graph=None)

    assert console.picture is None
    assert [node.name for node in console.nodes] == ["bronze.orders", "hours", "days"]
    assert (nothing.snapshot, list(nothing.nodes), list(nothing.batches)) == ("", [], [])


def test_a_large_graph_is_drawn_around_a_node_alone() -> None:
    many = [GraphNode(f"model.shop.m{number}", "table", f"m{number}") for number in range(300)]
    graph = ProjectGraph("shop", tuple(many))

    assert view(snapshot(1), graph=graph).is_too_large
    around = view(snapshot(1), graph=graph, chosen="model.shop.m7")
    assert around.picture is not None and len(around.nodes) == 1
    assert around.chosen is not None and around.chosen.state == "none"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a warehouse in which a project ran twice."""
    path = tmp_path_factory.mktemp("console")
    warehouse = path / "warehouse"
    write_state_file(StateFolder(warehouse).project_graph, GRAPH)
    log = SnapshotLog(warehouse)
    for number in (1, 2):
        log.append(snapshot(number))
    return path


def ask(one: Site, path: str) -> str:
    answer = one.client.get(path, headers={**one.bearer(), "Accept": HTML})
    assert answer.status_code == 200
    return unescape(answer.text)


def test_an_admin_sees_the_graph_and_the_batches(folder: Path) -> None:
    with site(folder, page=True) as one:
        text = ask(one, "/console")
        chosen = ask(one, f"/console?node={HOURS}")
        unknown = ask(one, "/console?node=x")
        own = one.client.get("/console", headers={**one.bearer("r1"), "Accept": HTML})

    assert "Console of shop" in text and "Snapshot 2, published" in text
    assert text.count('<g class="node"') == len(GRAPH.nodes)
    assert f'<a href="/console?node={HOURS}">' in text
    assert "<h2>Batches</h2>" in text and "<h2>Landed sources</h2>" in text
    assert 'id="chosen">hours<' in chosen and "History of hours" in chosen
    assert "<h2>Batches</h2>" in unknown
    assert own.status_code == 404


def test_where_nothing_was_built_the_console_says_so(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as one:
        text = ask(one, "/console")

    assert f"No snapshot log is at {tmp_path / 'warehouse'}" in text


def test_the_file_needs_nothing_from_elsewhere(folder: Path) -> None:
    text = console_file(make_settings(folder), datetime(2026, 3, 1, 13, tzinfo=UTC))

    assert text.count('<g class="node"') == len(GRAPH.nodes)
    assert "Written 2026-03-01 13:00:00 UTC" in text
    # Links and scripts would lead to a server.
    assert re.findall(r"<(?:a|link|script|img|form|base)\b", text) == []
    assert "--ground:" in text and "@import" not in text


def test_a_file_of_foreign_words_is_only_text(tmp_path: Path) -> None:
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.tags: set[str] = set()

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.tags.add(tag)

    nodes = tuple(
        type(node)(node.unique_id, node.kind, f"{EVIL}{node.name}", node.relation, node.reads)
        for node in GRAPH.nodes
    )
    warehouse = tmp_path / "warehouse"
    write_state_file(StateFolder(warehouse).project_graph, type(GRAPH)(EVIL, nodes))
    SnapshotLog(warehouse).append(snapshot(1, finished_at=datetime.now(UTC) + timedelta(days=1)))

    tags = Tags()
    tags.feed(console_file(make_settings(tmp_path), datetime.now(UTC)))

    assert tags.tags.isdisjoint({"script", "img", "a"})
