"""The console in a browser: its looks, and the way from a node to its history."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.state.atomic_files import write_state_file
from livemart.state.places import StateFolder
from livemart.state.snapshots import SnapshotLog
from tests.e2e import accessibility
from tests.e2e.conftest import OpenVisit
from tests.e2e.site import make_site
from tests.e2e.test_model_page import examine
from tests.serve.page.test_console_view import GRAPH, HOURS, UNIQUE, snapshot


@pytest.mark.extended
def test_the_console_is_accessible_and_needs_no_script(tmp_path: Path, visit: OpenVisit) -> None:
    site = make_site(tmp_path)
    log = SnapshotLog(site.warehouse)
    for number in range(1, 12):
        log.append(snapshot(number))
    log.append(snapshot(12, status="held", tests={UNIQUE: "fail"}))
    write_state_file(StateFolder(site.warehouse).project_graph, GRAPH)
    with site.running():
        opened = visit(site, before=accessibility.bring_axe)
        opened.go("/console")
        examine(opened, "console")
        opened.go(f"/console?node={HOURS}")
        examine(opened, "console-node")

        plain = visit(site, has_script=False)
        plain.go("/console")
        # By the picture, and by the table.
        plain.page.locator("svg.graph a", has_text="hours").first.click()
        assert plain.page.locator("#chosen").inner_text() == "hours"
        plain.page.get_by_role("link", name="All of the project").click()
        plain.page.get_by_role("cell", name="hours").or_(
            plain.page.get_by_role("rowheader", name="hours")
        ).get_by_role("link").first.click()
        assert plain.page.url.endswith(f"node={HOURS}")
