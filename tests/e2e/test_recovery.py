"""The page after it was left, paused, or informed wrongly that there is no network."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Route

from tests.e2e.conftest import OpenSite, OpenVisit
from tests.e2e.following import holding, order_once, wait_for_figures, wait_for_trend
from tests.e2e.raw_orders import AZUL, NEW, RESTAURANTS, RawOrders
from tests.e2e.site import PATIENCE_MS, Site, Visit

# So long it waits at most before it tries again.
_LONGEST_WAIT_MS = 60_000
_BROKEN = re.compile("ERR_|status of (401|503)")


@pytest.mark.parametrize("is_stored", [False, pytest.param(True, marks=pytest.mark.extended)])
@pytest.mark.parametrize("is_paused", [True, pytest.param(False, marks=pytest.mark.extended)])
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
    text, _ = site.make_token()
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
    answer = route.fetch(timeout=PATIENCE_MS)
    route.fulfill(response=answer, headers={**answer.headers, "cache-control": "private"})


@pytest.mark.extended
def test_a_browser_that_wrongly_says_offline_does_not_stop_the_page(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    opened = visit(site)
    opened.go()
    opened.wait_live()
    opened.page.evaluate(
        "() => { Object.defineProperty(navigator, 'onLine', { value: false });"
        " dispatchEvent(new Event('offline')); }"
    )
    opened.wait_text("#connection-word", "Offline, retrying")

    order_once(site)

    opened.wait_live()
    wait_for_figures(opened, site)


@pytest.mark.extended
def test_a_pull_that_is_under_way_changes_no_paused_page(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    opened = visit(site)
    opened.go()
    opened.wait_live()
    before, held = opened.figure("order_count"), list[Route]()
    opened.page.route("**/r/**", lambda route: route.fallback() if held else held.append(route))
    with opened.page.expect_request("**/r/**"):
        opened.page.evaluate("dispatchEvent(new Event('online'))")
    opened.page.locator("#pause").evaluate("button => button.click()")
    order_once(site)

    for route in held:
        route.continue_()
    _pull_once_more(opened)

    assert opened.figure("order_count") == before
    assert opened.page.locator("#connection-word").inner_text().startswith("Paused at")
    opened.page.get_by_role("button", name="Resume").click()
    wait_for_figures(opened, site)
    opened.wait_live()


def test_a_chart_that_falls_behind_moves_no_paused_page(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    opened = visit(site)
    opened.page.clock.install()
    opened.go()
    opened.wait_live()
    trend = "**/trend?**"
    with opened.page.expect_response(trend), holding(opened, trend):
        with opened.page.expect_request(trend):
            order_once(site)
        wait_for_figures(opened, site)
        before = opened.figure("order_count")
        opened.page.get_by_role("button", name="Pause").click()
        opened.wait_text("#connection-word", "Paused at")
        # The answer will be of a snapshot that the page does not show.
        order_once(site)

    _pull_once_more(opened)
    opened.page.clock.fast_forward(_LONGEST_WAIT_MS)
    _pull_once_more(opened)

    assert opened.figure("order_count") == before
    assert opened.page.locator("#connection-word").inner_text().startswith("Paused at")
    opened.page.get_by_role("button", name="Resume").click()
    wait_for_figures(opened, site)
    wait_for_trend(opened, site)
    opened.wait_live()


def _pull_once_more(opened: Visit) -> None:
    """Pull past the page's own script: what the page had asked for before is answered before."""
    fetched = (
        "async path => (await fetch(path, { headers: { Accept: 'application/json' } })).status"
    )
    assert opened.page.evaluate(fetched, f"/r/{AZUL}?window=24h") == 200


@pytest.mark.parametrize(
    "zone",
    ["Mars/Base", *(pytest.param(zone, marks=pytest.mark.extended) for zone in ("", "+02:00"))],
)
def test_an_unknown_zone_is_utc_before_and_after_an_update(
    open_site: OpenSite, visit: OpenVisit, zone: str
) -> None:
    raw = RawOrders.of_two_weeks()
    raw.restaurants = RESTAURANTS | {NEW: ("New Bistro", zone, "EUR")}
    opened = visit(open_site(raw=raw))
    opened.go(f"/r/{NEW}?window=24h")
    opened.wait_live()
    before = opened.page.locator(".span").inner_text()
    assert opened.page.locator("#zone").inner_text() == "UTC"

    for window in ("168h", "24h"):
        opened.page.locator(f"button[value='{window}']").click()
        opened.page.locator(f"button[value='{window}'][aria-pressed='true']").wait_for()
        opened.wait_live()

    assert opened.page.locator("#zone").inner_text() == "UTC"
    assert opened.page.locator(".span").inner_text() == before
    opened.page.locator("#plot canvas").wait_for()


def test_a_store_that_was_filled_anew_is_shown_at_the_same_snapshot(
    site: Site, visit: OpenVisit
) -> None:
    opened = visit(site)
    opened.go()
    opened.wait_live()

    seen = opened.page.evaluate(
        "async () => { const { isShown, shown } = await import('/static/page/shown.js');"
        " const published_at = new Date(shown.publishedAt).toISOString();"
        " const at = (epoch) => isShown({ snapshot_id: shown.snapshot, epoch, published_at });"
        " const before = shown.epoch;"
        " shown.epoch = null; const found = [at(undefined), at(null), at('a')];"
        " shown.epoch = 'a'; found.push(at(undefined), at('a'), at('b'));"
        " const own = { snapshot_id: shown.snapshot, epoch: 'a', published_at };"
        " found.push(isShown({ ...own, snapshot_id: shown.snapshot + 1 }));"
        " found.push(isShown({ ...own, published_at: '2020-01-01T00:00:00Z' }));"
        " shown.epoch = before; return found; }"
    )

    assert seen == [True, True, True, True, True, False, False, False]
