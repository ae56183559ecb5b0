"""The page after it was left, paused, or told wrongly that there is no network."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Route

from tests.e2e.conftest import OpenSite, OpenVisit
from tests.e2e.following import order_once, wait_for_figures
from tests.e2e.raw_orders import AZUL, NEW, RESTAURANTS, RawOrders
from tests.e2e.site import Site, Visit

_BROKEN = re.compile("ERR_|status of (401|503)")


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("is_paused", [False, True])
def test_after_signing_out_the_way_back_leads_to_the_form(
    open_site: OpenSite, visit: OpenVisit, is_paused: bool, is_stored: bool
) -> None:
    site = open_site()
    opened = visit(site, is_remembering=True)
    opened.expected = _BROKEN
    _sign_in(opened, site, _keep_pages if is_stored else None)
    if is_paused:
        opened.page.get_by_role("button", name="Pause").click()
        opened.wait_text("#connection-word", "Paused at")
    opened.page.evaluate("window.wasLeft = true")
    opened.page.get_by_role("button", name="Sign out").click()
    opened.page.get_by_role("heading", name="Sign in").wait_for()

    opened.page.go_back()

    opened.page.get_by_role("heading", name="Sign in").wait_for()
    assert opened.page.evaluate("window.wasLeft") is None
    assert "EUR" not in opened.page.content()


def _sign_in(opened: Visit, site: Site, handler: Callable[[Route], None] | None) -> None:
    tokens = site.tokens()
    text, _ = tokens.create("owner", restaurants=[AZUL])
    tokens.close()
    while site.status_of("/") != 401:
        opened.page.wait_for_timeout(50)
    opened.go()
    opened.page.get_by_label("Access token").fill(text)
    if handler is not None:
        opened.page.route("**/r/**", handler)
    opened.page.get_by_role("button", name="Sign in").click()
    opened.wait_live()


def _keep_pages(route: Route) -> None:
    """Answer as a server did that let pages be kept: what counts then is the page's own script."""
    if route.request.method != "GET" or route.request.resource_type != "document":
        route.continue_()
        return
    answer = route.fetch()
    route.fulfill(response=answer, headers={**answer.headers, "cache-control": "private"})
