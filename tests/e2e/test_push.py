"""The page follows the store by itself, and says so when it cannot."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import timedelta

import pytest

from tests.e2e.conftest import OpenSite, OpenVisit
from tests.e2e.following import holding, order_once, totals_of, wait_for_figures, wait_for_trend
from tests.e2e.raw_orders import AZUL
from tests.e2e.site import EVERY, Site, Visit, refuse_with

# So long it waits for an answer.
_PAGE_PATIENCE_MS = 15_000
_BROKEN = re.compile("ERR_|status of (401|503)")


def test_a_new_order_changes_the_page_without_a_reload(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    opened = _open(visit, site)
    opened.page.evaluate("window.wasNotReloaded = true")
    _listen(opened)
    before = totals_of(site)

    order_once(site)

    wait_for_figures(opened, site)
    after = totals_of(site)
    assert after.order_count == before.order_count + 1
    assert opened.page.evaluate("window.wasNotReloaded") is True
    said = [text for text in opened.page.evaluate("window.said") if "€" in text]
    assert len(said) == 1
    assert said[0].startswith(f"{after.order_count} orders, €")
    wait_for_trend(opened, site)


@pytest.mark.extended
def test_each_of_many_snapshots_may_be_skipped_but_the_newest(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    opened = _open(visit, site)

    for _ in range(5):
        order_once(site)

    wait_for_figures(opened, site)
    wait_for_trend(opened, site)


@pytest.mark.extended
def test_a_window_that_moved_on_is_drawn_anew(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    opened = _open(visit, site, "1h")
    first = opened.page.locator("#points time").first.get_attribute("datetime")

    site.raw.as_of += timedelta(minutes=5)
    order_once(site)

    wait_for_figures(opened, site, hours=1)
    opened.page.wait_for_function(
        "first => document.querySelector('#points time').dateTime !== first", arg=first
    )
    assert opened.page.locator("#points tr").count() == 12
    wait_for_trend(opened, site, hours=1)


def test_a_paused_page_stands_still_until_it_resumes(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    paused, other = _open(visit, site), _open(visit, site)
    before = paused.figure("order_count")
    paused.page.get_by_role("button", name="Pause").click()
    paused.wait_text("#connection-word", "Paused at")

    order_once(site)

    wait_for_figures(other, site)
    assert paused.figure("order_count") == before
    paused.page.get_by_role("button", name="Resume").click()
    wait_for_figures(paused, site)
    paused.wait_live()
    order_once(site)
    wait_for_figures(paused, site)


@pytest.mark.extended
def test_a_paused_page_still_answers_the_buttons(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    opened = _open(visit, site)
    opened.page.get_by_role("button", name="Pause").click()

    opened.page.locator("button[value='1h']").click()

    wait_for_figures(opened, site, hours=1)
    assert opened.page.locator("#connection-word").inner_text().startswith("Paused at")


def test_a_page_survives_the_server(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    opened = _open(visit, site)
    opened.expected = _BROKEN
    opened.page.evaluate("window.wasNotReloaded = true")
    before = opened.figure("sales_amount")

    site.stop()
    opened.wait_text("#connection-word", "Offline, retrying")
    assert opened.figure("sales_amount") == before
    order_once(site)
    site.start()

    wait_for_figures(opened, site)
    opened.wait_live()
    assert opened.page.evaluate("window.wasNotReloaded") is True
    order_once(site)
    wait_for_figures(opened, site)


def test_a_page_survives_the_network(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    opened = _open(visit, site)
    opened.expected = _BROKEN

    opened.page.context.set_offline(True)
    opened.wait_text("#connection-word", "Offline, retrying")
    opened.keep_screenshot("offline-network")
    order_once(site)
    opened.page.context.set_offline(False)

    wait_for_figures(opened, site)
    opened.wait_live()


def test_where_streams_are_refused_the_page_pulls(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    opened = visit(site)
    opened.expected = _BROKEN
    opened.page.route("**/stream?**", refuse_with("TOO_MANY_STREAMS", "Too many", "wait", 503))
    opened.go()
    opened.page.locator("#connection[data-state='retrying']").wait_for()

    order_once(site)

    wait_for_figures(opened, site)
    opened.page.unroute("**/stream?**")
    opened.wait_live()


@pytest.mark.extended
def test_a_chart_that_fell_behind_catches_up(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    opened = _open(visit, site)
    opened.expected = _BROKEN
    opened.page.route("**/trend?**", lambda route: route.abort())

    order_once(site)

    wait_for_figures(opened, site)
    wait_for_trend(opened, site)
    opened.wait_live()


@pytest.mark.extended
def test_a_chart_whose_pull_is_not_answered_catches_up(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    opened = _open(visit, site, has_own_time=True)
    with holding(opened, "**/trend?**"):
        with opened.page.expect_request("**/trend?**"):
            order_once(site)
        wait_for_figures(opened, site)

        opened.page.clock.fast_forward(_PAGE_PATIENCE_MS)

        wait_for_trend(opened, site)
    opened.wait_live()


def test_a_server_that_gives_no_answer_is_not_told_as_offline(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site, has_own_time=True)
    _listen(opened)
    with holding(opened, "**/r/**"):
        with opened.page.expect_request("**/r/**"):
            opened.page.evaluate("dispatchEvent(new Event('online'))")

        opened.page.clock.fast_forward(_PAGE_PATIENCE_MS)

        opened.page.locator("#connection[data-state='retrying']").wait_for()
    opened.wait_live()
    assert opened.page.evaluate("window.said") == []


def test_a_stale_page_says_so_until_news_come(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    opened = _open(visit, site, has_own_time=True)
    _listen(opened)
    # In less than a minute it is old: that long the page does not ask whether it still is.
    order_once(site, age=3 * EVERY - timedelta(seconds=50))
    wait_for_figures(opened, site)

    opened.page.clock.fast_forward(55_000)

    opened.page.locator("#stale").wait_for()
    opened.wait_text("#connection-word", "Stale")
    said = [text for text in opened.page.evaluate("window.said") if "€" not in text]
    assert said == ["These figures are old: the last update was 3 d ago."]

    order_once(site)

    opened.page.locator("#stale").wait_for(state="hidden")
    opened.wait_live()
    # Either may come first, and an order may have left the window since.
    wait_for_figures(opened, site)


@pytest.mark.extended
def test_a_quiet_page_is_not_stale_while_the_pipeline_looks(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    site.publish(age=3 * EVERY)
    opened = _open(visit, site)
    opened.page.locator("#stale").wait_for()

    site.confirm()

    opened.page.locator("#stale").wait_for(state="hidden")
    opened.wait_live()
    opened.page.reload()
    opened.wait_live()
    assert opened.page.locator("#stale").is_hidden()


def test_a_revoked_token_takes_the_figures_away(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    text, token = site.make_token()
    opened = visit(site)
    opened.expected = _BROKEN
    opened.go()
    opened.page.get_by_label("Access token").fill(text)
    opened.page.get_by_role("button", name="Sign in").click()
    opened.wait_live()
    assert opened.page.locator("#restaurant").count() == 0
    assert opened.page.get_by_role("button", name="Sign out").is_visible()

    with closing(site.tokens()) as tokens:
        tokens.revoke(token.token_id)

    opened.page.get_by_role("heading", name="You are signed out").wait_for()
    assert "€" not in opened.page.content()


def test_signing_out_ends_the_session(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    text, _ = site.make_token()
    opened = visit(site)
    opened.expected = _BROKEN
    opened.go("/")
    opened.page.get_by_label("Access token").fill(text)
    opened.page.get_by_role("button", name="Sign in").click()
    opened.wait_live()

    opened.page.get_by_role("button", name="Sign out").click()

    opened.page.get_by_role("heading", name="Sign in").wait_for()
    opened.go()
    assert opened.page.get_by_role("heading", name="Sign in").is_visible()
    assert opened.page.context.cookies() == []


@pytest.mark.extended
def test_a_hidden_page_has_no_stream_and_catches_up(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    hidden, other = _open(visit, site), _open(visit, site)
    before = hidden.figure("order_count")
    _set_hidden(hidden, True)

    order_once(site)

    wait_for_figures(other, site)
    assert hidden.figure("order_count") == before
    _set_hidden(hidden, False)
    wait_for_figures(hidden, site)
    hidden.wait_live()


def test_the_age_does_not_trust_the_clock_of_the_device(site: Site, visit: OpenVisit) -> None:
    ahead = "const now = Date.now; Date.now = () => now() + 72 * 3600_000 + (window.jump ?? 0);"
    opened = visit(site, before=lambda context: context.add_init_script(ahead))
    opened.go()
    opened.wait_live()

    age = opened.page.locator("#age").inner_text()
    # Not a day, and the tests before this one did not take one.
    assert re.fullmatch(r"(\d+ h )?(\d+ (s|min) )?ago", age)
    assert opened.page.locator("#stale").is_hidden()
    # A jump means that the device slept: one pull tells how old the figures are.
    with opened.page.expect_response(lambda response: "/r/" in response.url):
        opened.page.evaluate("window.jump = 3600_000")
    opened.wait_live()
    assert opened.page.locator("#stale").is_hidden()


def _open(
    visit: OpenVisit, site: Site, window: str = "24h", *, has_own_time: bool = False
) -> Visit:
    """Open a page and wait for its stream; the test can move its clock."""
    opened: Visit = visit(site)
    if has_own_time:
        opened.page.clock.install()
    opened.go(f"/r/{AZUL}?window={window}")
    opened.page.locator(
        "#connection[data-state='live'], #connection[data-state='stale']"
    ).wait_for()
    return opened


def _listen(opened: Visit) -> None:
    """Keep every sentence that is said from now on, also one that another follows at once."""
    opened.page.evaluate(
        "() => { window.said = []; new MutationObserver((records) => window.said.push("
        "...records.flatMap(({ addedNodes }) => [...addedNodes].map((node) => node.data))"
        ")).observe(document.getElementById('status'), { childList: true }); }"
    )


def _set_hidden(opened: Visit, is_hidden: bool) -> None:
    opened.page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, "
        "configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }",
        is_hidden,
    )


def test_the_page_of_a_model_follows_and_stands_still_when_it_is_paused(
    open_site: OpenSite, visit: OpenVisit
) -> None:
    site = open_site()
    opened = visit(site)
    opened.go("/models/restaurant_order_metrics")
    opened.wait_text("#connection-word", "Live")
    opened.page.evaluate("window.wasNotReloaded = true")
    rows = opened.page.locator("#rows tbody")
    first = rows.inner_text()

    order_once(site)
    opened.page.wait_for_function(
        "text => document.querySelector('#rows tbody').innerText !== text", arg=first
    )
    assert opened.page.evaluate("window.wasNotReloaded") is True
    assert opened.page.locator("#status").inner_text() == "Rows of snapshot 2."

    opened.page.get_by_role("button", name="Pause").click()
    opened.wait_text("#connection-word", "Paused")
    second = rows.inner_text()
    order_once(site)
    assert rows.inner_text() == second
    opened.page.get_by_role("button", name="Resume").click()
    opened.page.wait_for_function(
        "text => document.querySelector('#rows tbody').innerText !== text", arg=second
    )
    opened.wait_text("#connection-word", "Live")
