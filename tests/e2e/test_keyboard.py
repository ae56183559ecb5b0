"""All by keyboard, in the order as read, with a focus that is seen and stays where it is."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from tests.e2e.conftest import OpenSite, OpenVisit
from tests.e2e.following import order_once, wait_for_figures
from tests.e2e.raw_orders import AZUL
from tests.e2e.site import PHONE, Site

_FOCUS = """() => {
  const element = document.activeElement;
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  const seen = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return {
    name: (element.ariaLabel ?? element.textContent).trim().replace(/\\s+/g, " "),
    tag: element.tagName.toLowerCase(),
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    isSeen: seen !== null && (element.contains(seen) || seen.contains(element)),
  };
}"""


def test_a_walk_through_the_page(site: Site, visit: OpenVisit) -> None:
    for width in (1280, PHONE):
        opened = visit(site, width=width)
        opened.go(f"/r/{AZUL}?window=24h")
        opened.wait_live()
        stops = _walk(opened.page)

        names = [stop["name"] for stop in stops]
        assert names[0] == "Skip to the figures"
        assert stops[1]["tag"] == "select"
        assert names[2:] == [
            "Pause",
            "1 h",
            "24 h",
            "168 h (7 days)",
            "Orders",
            "Sales",
            "Average order",
            "Customers",
            "Show data",
            "Definitions",
            "Served models",
        ]
        assert [stop["name"] for stop in stops if stop["outline"] < 2] == []
        assert [stop["name"] for stop in stops if not stop["isSeen"]] == []


def test_everything_works_without_a_mouse(site: Site, visit: OpenVisit) -> None:
    opened = visit(site)
    opened.go(f"/r/{AZUL}?window=24h")
    opened.wait_live()
    page = opened.page

    _tab_to(page, "1 h")
    page.keyboard.press("Enter")
    page.locator("button[value='1h'][aria-pressed='true']").wait_for()
    assert _focus(page)["name"] == "1 h"

    _tab_to(page, "Orders")
    page.keyboard.press("Space")
    page.get_by_text("Orders placed in the window.").wait_for()

    _tab_to(page, "Show data")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"

    page.keyboard.press("Shift+Tab")
    for _ in range(12):
        page.keyboard.press("Shift+Tab")
        if _focus(page)["name"] == "Pause":
            break
    page.keyboard.press("Space")
    opened.wait_text("#connection-word", "Paused at")
    assert _focus(page)["name"] == "Resume"
    page.keyboard.press("Space")
    opened.wait_live()


def test_the_skip_link_leads_to_the_figures(site: Site, visit: OpenVisit) -> None:
    opened = visit(site)
    opened.go(f"/r/{AZUL}?window=24h")
    opened.wait_live()

    opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("Enter")
    opened.page.keyboard.press("Tab")

    assert _focus(opened.page)["name"] == "1 h"


def test_an_update_leaves_the_focus_where_it_is(open_site: OpenSite, visit: OpenVisit) -> None:
    site = open_site()
    opened = visit(site)
    opened.go(f"/r/{AZUL}?window=24h")
    opened.wait_live()
    _tab_to(opened.page, "Show data")

    order_once(site)

    wait_for_figures(opened, site)
    assert _focus(opened.page)["name"] == "Show data"


def test_the_way_back_leads_to_the_window_before(site: Site, visit: OpenVisit) -> None:
    opened = visit(site)
    opened.go(f"/r/{AZUL}?window=24h")
    opened.wait_live()
    before = opened.figure("order_count")
    opened.page.locator("button[value='1h']").click()
    opened.page.locator("button[value='1h'][aria-pressed='true']").wait_for()

    opened.page.go_back()

    opened.page.locator("button[value='24h'][aria-pressed='true']").wait_for()
    assert opened.figure("order_count") == before
    opened.page.go_forward()
    opened.page.locator("button[value='1h'][aria-pressed='true']").wait_for()


def _focus(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(_FOCUS)
    return found


def _walk(page: Page) -> list[dict[str, Any]]:
    """Press Tab until the focus leaves the page; return where it was."""
    stops = []
    for _ in range(40):
        page.keyboard.press("Tab")
        stop = _focus(page)
        if stop["tag"] == "body":
            break
        stops.append(stop)
    return stops


def _tab_to(page: Page, name: str) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if _focus(page)["name"] == name:
            return
    raise AssertionError(f"Tab never comes to {name}")
