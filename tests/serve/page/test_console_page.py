"""The console is a page for admins, and one file."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from livemart.serve.page.console_page import console_file
from livemart.state.atomic_files import write_state_file
from livemart.state.places import StateFolder
from livemart.state.snapshots import SnapshotLog
from tests.serve.apps import Site, make_settings, site
from tests.serve.page.any_models import EVIL
from tests.serve.page.test_console_view import GRAPH, HOURS, snapshot

HTML = "text/html,*/*;q=0.8"


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
