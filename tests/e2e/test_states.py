"""Every state of the page, light and dark, on phone and desktop: accessible, and pictured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from livemart.state.last_run import BuildProgress, LastRun, keep_last_run
from livemart.state.lock import hold_warehouse
from tests.e2e import accessibility
from tests.e2e.conftest import OpenSite, OpenVisit
from tests.e2e.raw_orders import AZUL, NEW, QUIET, RESTAURANTS
from tests.e2e.site import DESKTOP, EVERY, PHONE, Site, Visit, published_site, refuse_with
from tests.store.stores import PANE

_OFFLINE = re.compile("ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_NETWORK_CHANGED")
_REFUSED = re.compile("status of (401|404|503)")

# A movement that is given up has ended, too, and another may have taken its place.
_SETTLE = """async () => {
  const isMoving = ({ playState }) => playState === "running";
  for (let moving; (moving = document.getAnimations().filter(isMoving)).length; )
    await Promise.allSettled(moving.map((each) => each.finished));
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
}"""


@pytest.fixture(scope="module")
def old_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that was not refreshed for three intervals."""
    with published_site(tmp_path_factory.mktemp("old"), age=3 * EVERY).running() as site:
        yield site


@pytest.fixture(scope="module")
def guarded_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    """A site with a token, and the token's text."""
    with published_site(tmp_path_factory.mktemp("guarded")).running() as site:
        text, _ = site.make_token()
        yield site, text


def test_live(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{AZUL}?window=24h")

    assert opened.page.locator("#connection").inner_text() == "Live"
    assert opened.page.locator("#stale").is_hidden()
    _examine(opened, "live")


@pytest.mark.extended
def test_live_with_everything_unfolded(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{AZUL}?window=1h")
    for summary in opened.page.locator("summary").all():
        summary.click()

    assert opened.page.locator("#points tr").count() == 12
    _examine(opened, "unfolded")


@pytest.mark.extended
def test_a_week(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{AZUL}?window=168h")

    # The window ends within an hour of the clock: it holds the rest of one, and the start of one.
    marks = opened.page.locator("#points .mark.part")
    assert marks.evaluate_all("marks => marks.map((mark) => mark.textContent)") == [
        "part",
        "so far",
    ]
    assert opened.page.locator("#points tr").count() == 169
    _examine(opened, "week")


@pytest.mark.extended
def test_no_orders(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{QUIET}?window=1h")

    assert opened.page.locator("#note").inner_text() == "No orders in the last hour."
    assert opened.page.locator("#order_count .value").inner_text() == "0"
    assert opened.page.locator("#sales_amount .value").inner_text() == "US$0.00"
    assert opened.page.locator("#average_order_value .value").inner_text() == "\u2013"
    assert opened.page.locator("#no-dishes").is_visible()
    _examine(opened, "no-orders")


@pytest.mark.extended
def test_partial(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{NEW}?window=24h")
    text = opened.page.locator("#since").inner_text()

    assert re.fullmatch(r"; since (Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d:\d\d", text)
    assert opened.page.locator("#order_count .words").inner_text() == "no comparison"
    first_cells = opened.page.locator("#points tr").first.locator("td")
    assert first_cells.all_text_contents() == ["\u2013", "\u2013", "\u2013"]
    _examine(opened, "partial")


@pytest.mark.extended
def test_late_correction(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{AZUL}?window=1h")
    opened.page.locator("#data summary").click()

    sentence = opened.page.locator("#late").inner_text()
    panes = _late_panes(site)
    first, end = panes[0], panes[-1] + PANE
    assert sentence == f"3 late orders changed {first:%H:%M} to {end:%H:%M}."
    marked = opened.page.locator("#points tr.late")
    assert marked.count() == len(panes)
    assert "late orders" in marked.first.inner_text()
    assert marked.first.inner_text()[:5] == f"{first:%H:%M}"
    _examine(opened, "late")


@pytest.mark.extended
def test_stale(old_site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, old_site, f"/r/{AZUL}?window=24h", word="Stale")
    opened.page.locator("#stale").wait_for()

    banner = opened.page.locator("#stale").inner_text()
    assert "The last update was 3 d ago;" in banner
    assert opened.figure("order_count") > 0
    _examine(opened, "stale")


def test_offline(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{AZUL}?window=24h")
    opened.expected = _OFFLINE
    opened.page.context.set_offline(True)
    opened.wait_text("#connection", "Offline, retrying")

    assert opened.figure("order_count") > 0
    assert opened.page.locator("#status").text_content() == "Offline, retrying."
    _examine(opened, "offline")


def test_paused(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{AZUL}?window=24h")
    opened.page.get_by_role("button", name="Pause").click()

    assert re.fullmatch(r"Paused at \d\d:\d\d", opened.page.locator("#connection").inner_text())
    assert opened.page.locator("#pause").inner_text() == "Resume"
    _examine(opened, "paused")


def test_error(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{AZUL}?window=24h")
    opened.expected = _REFUSED
    problem = refuse_with("STORE_UNREACHABLE", "The store is away", "try again later", 503)
    opened.page.route("**/r/**", problem)
    before = opened.figure("order_count")
    opened.page.locator("button[value='1h']").click()
    opened.page.locator("#problem").wait_for()

    shown = opened.page.locator("#problem").inner_text()
    for word in ("The store is away", "Try again later.", "STORE_UNREACHABLE"):
        assert word in shown
    assert opened.figure("order_count") == before
    assert opened.page.locator("button[value='24h']").get_attribute("aria-pressed") == "true"
    _examine(opened, "error")

    opened.page.unroute("**/r/**")
    opened.page.get_by_role("button", name="Try again").click()
    opened.wait_live()
    assert opened.page.locator("#problem").is_hidden()


def test_signed_out(guarded_site: tuple[Site, str], visit: OpenVisit) -> None:
    site, token = guarded_site
    opened = _sign_in(visit, site, token)
    before = opened.page.locator("#sales_amount .value").inner_text()
    opened.expected = _REFUSED
    opened.page.context.clear_cookies()
    opened.page.locator("button[value='1h']").click()
    opened.page.get_by_role("heading", name="You are signed out").wait_for()

    assert before not in opened.page.content()
    assert "Taverna Azul" not in opened.page.content()
    _examine(opened, "signed-out")

    opened.page.get_by_role("link", name="Sign in").click()
    opened.page.get_by_label("Access token").fill(token)
    opened.page.get_by_role("button", name="Sign in").click()
    opened.wait_live()
    assert opened.page.url.endswith(f"/r/{AZUL}?window=24h")


@pytest.mark.extended
def test_sign_in_form(guarded_site: tuple[Site, str], visit: OpenVisit) -> None:
    opened = visit(guarded_site[0], before=accessibility.bring_axe)
    opened.expected = _REFUSED
    opened.go("/")
    _examine(opened, "sign-in")
    opened.page.get_by_label("Access token").fill("lm_wrong")
    opened.page.get_by_role("button", name="Sign in").click()

    assert "not valid" in opened.page.get_by_role("alert").inner_text()
    _examine(opened, "sign-in-refused")


@pytest.mark.extended
def test_not_found(site: Site, visit: OpenVisit) -> None:
    opened = visit(site, before=accessibility.bring_axe)
    opened.expected = _REFUSED
    opened.go("/r/nobody?window=24h")

    assert "RESTAURANT_UNKNOWN" in opened.page.locator("main").inner_text()
    assert "nobody" not in opened.page.content()
    _examine(opened, "not-found")


@pytest.mark.extended
def test_while_the_first_build_runs_the_page_says_how_far_it_is_and_loads_by_itself(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site(is_published=False)
    opened = visit(site, before=accessibility.bring_axe)
    opened.expected = _REFUSED
    opened.go("/")
    assert "NOTHING_PUBLISHED" in opened.page.locator("main").inner_text()
    _examine(opened, "nothing-published")

    began_at = datetime.now(UTC)
    with hold_warehouse(site.warehouse) as lock:
        for done in (3, 4):
            progress = BuildProgress(done, 5)
            run = LastRun("up", lock.holder.pid, began_at, began_at, progress=progress)
            keep_last_run(site.warehouse, run)
            opened.wait_text("#detail", f"Building {done} of 5 models; this page loads by itself.")
        site.publish()
        opened.wait_live()


def test_the_chart_reads_out_the_point_under_the_hand(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, f"/r/{AZUL}?window=168h")
    opened.page.locator("#plot").hover()

    # The chart follows the hand with its next frame.
    text = re.compile(r"^\w{3} \d\d:\d\d: €[\d,.]+( so far)?, last week €[\d,.]+$")
    opened.page.locator("#readout").filter(has_text=text).wait_for()


@pytest.mark.extended
def test_models(site: Site, visit: OpenVisit) -> None:
    opened = visit(site, before=accessibility.bring_axe)
    opened.go("/models")

    opened.page.get_by_role("link", name="restaurant_top_dishes", exact=True).click()
    opened.wait_text("#connection-word", "Live")
    assert opened.page.get_by_role("heading", name="restaurant_top_dishes").is_visible()
    _examine(opened, "model")
    opened.page.get_by_role("link", name="Served models").click()
    _examine(opened, "models")


def _late_panes(site: Site) -> list[datetime]:
    """Return the starts of the panes with late orders, ascending, on the restaurant's clock."""
    zone = ZoneInfo(RESTAURANTS[AZUL][1])
    late = [row.order for row in site.raw.rows if row.order.landed_at != row.order.ordered_at]
    return [pane.astimezone(zone) for pane in sorted({order.pane for order in late})]


def _open(visit: OpenVisit, site: Site, path: str, *, word: str = "Live") -> Visit:
    opened: Visit = visit(site, before=accessibility.bring_axe)
    opened.go(path)
    opened.wait_text("#connection-word", word)
    return opened


def _sign_in(visit: OpenVisit, site: Site, token: str) -> Visit:
    opened: Visit = visit(site, before=accessibility.bring_axe)
    opened.expected = _REFUSED
    opened.go(f"/r/{AZUL}?window=24h")
    opened.page.get_by_label("Access token").fill(token)
    opened.page.get_by_role("button", name="Sign in").click()
    opened.wait_live()
    return opened


def _examine(opened: Visit, name: str) -> None:
    """Look at a state in four ways: no barrier that can be measured, and a picture of each."""
    # The thing below the mouse looks different, and depends on the width.
    opened.page.mouse.move(0, 0)
    for width in (DESKTOP, PHONE):
        opened.page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            opened.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            _settle(opened)
            opened.keep_screenshot(f"{name}-{scheme}-{width}")
            look = f"{name} {scheme} {width}"

            assert accessibility.violations(opened.page) == [], look
            assert accessibility.small_targets(opened.page) == [], look
            assert not accessibility.scrolls_sideways(opened.page), look


def _settle(opened: Visit) -> None:
    """Wait until nothing moves, then for two frames: in the first the chart learns of its size."""
    opened.page.evaluate(_SETTLE)


def test_text_may_be_twice_as_large(site: Site, visit: OpenVisit) -> None:
    _assert_readable(_open(visit, site, f"/r/{AZUL}?window=168h"), "large-text", DESKTOP)


@pytest.mark.parametrize("width", [pytest.param(DESKTOP, marks=pytest.mark.extended), PHONE])
def test_text_may_be_spaced(site: Site, visit: OpenVisit, width: int) -> None:
    _assert_readable(_open(visit, site, f"/r/{AZUL}?window=168h"), "spaced-text", width)


def _assert_readable(opened: Visit, name: str, width: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    accessibility.ADAPTATIONS[name](opened.page)
    _settle(opened)
    opened.keep_screenshot(f"{name}-light-{width}")

    assert not accessibility.scrolls_sideways(opened.page)
    assert accessibility.clipped(opened.page) == []
