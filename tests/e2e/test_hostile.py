"""Text from events is only ever text, the policy is strict, and the page needs no script."""

from __future__ import annotations

import re
from urllib.request import urlopen

import pytest
from playwright.sync_api import Dialog

from tests.e2e import accessibility
from tests.e2e.conftest import OpenSite, OpenVisit
from tests.e2e.following import order_once, wait_for_figures
from tests.e2e.raw_orders import AZUL, DISH_NAMES, RESTAURANTS, RawOrders
from tests.e2e.site import DESKTOP, PHONE, Site

_EVIL = {
    "d1": "<script>document.title = 'taken'</script>",
    "d5": '"><img src=x onerror=alert(1)>',
    "d3": "{{ 7 * 7 }} ' &lt;b&gt; \u202e <b>x</b>",
}
_SCRIPT = "text/javascript"
_EVIL_NAME = '</title><script>alert(1)</script> & "Söhne"'


@pytest.mark.parametrize("has_script", [True, pytest.param(False, marks=pytest.mark.extended)])
def test_names_stay_text(open_site: OpenSite, visit: OpenVisit, has_script: bool) -> None:
    raw = RawOrders.of_two_weeks()
    raw.dish_names = DISH_NAMES | _EVIL
    raw.restaurants = RESTAURANTS | {AZUL: (_EVIL_NAME, "Europe/Lisbon", "EUR")}
    site = open_site(raw=raw)
    opened = visit(site, has_script=has_script)
    dialogs: list[str] = []

    def hear(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    opened.page.on("dialog", hear)
    opened.go(f"/r/{AZUL}?window=24h")

    def check() -> None:
        names = opened.page.locator("#dishes .dish").all_text_contents()
        assert set(names) & set(_EVIL.values())
        assert set(names) <= set(raw.dish_names.values())
        assert opened.page.locator("#name").text_content() == _EVIL_NAME
        assert opened.page.locator("#restaurant option[selected]").text_content() == _EVIL_NAME
        assert opened.page.title().startswith(_EVIL_NAME)
        assert opened.page.locator("main script, main img, main b, h1 *, title *").count() == 0

    check()
    if has_script:
        opened.wait_live()
        order_once(site)
        wait_for_figures(opened, site)
        check()
    opened.page.locator("button[value='168h']").click()
    opened.page.locator("button[value='168h'][aria-pressed='true']").wait_for()
    check()
    opened.keep_screenshot(f"hostile-names-{'script' if has_script else 'no-script'}")
    assert dialogs == []


def test_the_policy_is_strict_and_the_markup_needs_no_more(site: Site) -> None:
    for path in ("/", f"/r/{AZUL}", "/models", "/models/restaurant_top_dishes", "/login"):
        with urlopen(f"{site.url}{path}") as answer:
            html = answer.read().decode()
            policy = answer.headers["Content-Security-Policy"]

        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", html)
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", html))
        assert "<style" not in html


def test_the_page_is_complete_without_script(site: Site, visit: OpenVisit) -> None:
    opened = visit(site, has_script=False)
    opened.go(f"/r/{AZUL}?window=24h")
    page = opened.page

    assert opened.figure("order_count") > 0
    assert page.locator("#dishes li").count() == 3
    assert page.locator("#connection").inner_text() == "As loaded"
    assert page.locator("#pause").is_hidden()
    assert page.locator("#plot").is_hidden()
    assert page.locator("noscript p").is_visible()
    page.locator("#data summary").click()
    # 23 whole hours of the clock, the one that goes on, and the rest of the first.
    assert page.locator("#points tr").count() == 25
    for width in (DESKTOP, PHONE):
        page.set_viewport_size({"width": width, "height": 900})
        opened.keep_screenshot(f"no-script-light-{width}")
        assert not accessibility.scrolls_sideways(page)


def test_what_the_server_paints_is_accessible(site: Site, visit: OpenVisit) -> None:
    # axe is a script itself: here it is the only one that runs.
    opened = visit(site, before=accessibility.bring_axe)
    opened.page.route("**/static/page.js", lambda route: route.fulfill(content_type=_SCRIPT))
    opened.go(f"/r/{AZUL}?window=24h")
    opened.page.locator("#data summary").click()

    assert opened.page.locator("#connection").inner_text() == "As loaded"
    for width in (DESKTOP, PHONE):
        opened.page.set_viewport_size({"width": width, "height": 900})
        assert accessibility.violations(opened.page) == []
        assert accessibility.small_targets(opened.page) == []


def test_the_picker_needs_no_script(site: Site, visit: OpenVisit) -> None:
    opened = visit(site, has_script=False)
    opened.go(f"/r/{AZUL}?window=1h")

    opened.page.get_by_label("Restaurant").select_option(label="Quiet Diner")
    opened.page.get_by_role("button", name="Open").click()

    assert opened.page.url.endswith("/r/r19?window=1h")
    assert opened.page.get_by_role("heading", level=1).inner_text() == "Quiet Diner"


def test_nothing_moves_for_those_who_want_it_so(site: Site, visit: OpenVisit) -> None:
    opened = visit(site)
    opened.go(f"/r/{AZUL}?window=24h")
    opened.wait_live()
    moving = (
        "() => [...document.querySelectorAll('*')].filter((element) => "
        "parseFloat(getComputedStyle(element).transitionDuration) > 0).length"
    )

    opened.page.emulate_media(reduced_motion="no-preference")
    assert opened.page.evaluate(moving) > 0
    opened.page.emulate_media(reduced_motion="reduce")
    assert opened.page.evaluate(moving) == 0
