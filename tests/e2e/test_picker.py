"""The picker names the restaurant whose figures are shown, however it is used."""

from __future__ import annotations

import re

import pytest

from tests.e2e.conftest import OpenVisit
from tests.e2e.oracle import Oracle
from tests.e2e.raw_orders import AZUL, QUIET, RESTAURANTS, SAKURA
from tests.e2e.site import Site, Visit, is_focused, refuse_with

_REFUSED = re.compile("status of 503")


def test_choosing_a_restaurant_shows_its_figures_at_once(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site)
    picker = opened.page.get_by_label("Restaurant")
    assert opened.page.get_by_role("button", name="Open").is_hidden()

    picker.focus()
    picker.select_option(SAKURA)

    _assert_shown(opened, SAKURA)
    assert is_focused(picker)
    assert "24 hours: " in (opened.page.locator("#status").text_content() or "")
    opened.wait_live()
    opened.page.locator("button[value='1h']").click()
    opened.page.locator("button[value='1h'][aria-pressed='true']").wait_for()
    assert opened.page.url.endswith(f"/r/{SAKURA}?window=1h")
    for _ in range(2):
        opened.page.go_back()
    _assert_shown(opened, AZUL)
    opened.page.go_forward()
    _assert_shown(opened, SAKURA)


@pytest.mark.extended
def test_arrow_keys_pass_by_restaurants_and_keep_the_focus(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site)
    entries = opened.page.evaluate("history.length")
    picker = opened.page.get_by_label("Restaurant")
    picker.focus()
    names = picker.locator("option").all_text_contents()
    assert names == sorted((name for name, *_ in RESTAURANTS.values()), key=str.casefold)
    # A skipped restaurant is never shown after the chosen one, and leaves no history entry.
    for _ in range(len(names)):
        opened.page.keyboard.press("ArrowUp")
    _assert_shown(opened, next(key for key, value in RESTAURANTS.items() if value[0] == names[0]))
    assert is_focused(picker)
    assert opened.page.evaluate("history.length") <= entries + 1


@pytest.mark.extended
def test_a_restaurant_that_cannot_be_shown_is_not_named(site: Site, visit: OpenVisit) -> None:
    opened = _open(visit, site)
    opened.expected = _REFUSED
    problem = refuse_with("STORE_UNREACHABLE", "The store is away", "try again later", 503)
    opened.page.route("**/r/**", problem)

    opened.page.get_by_label("Restaurant").select_option(QUIET)
    opened.page.locator("#problem").wait_for()

    _assert_shown(opened, AZUL)


@pytest.mark.extended
def test_without_script_a_button_opens_what_was_chosen(site: Site, visit: OpenVisit) -> None:
    opened = visit(site, has_script=False)
    opened.go(f"/r/{AZUL}?window=168h")
    opened.page.get_by_label("Restaurant").select_option(SAKURA)

    opened.page.get_by_role("button", name="Open").click()

    assert opened.page.url.endswith(f"/r/{SAKURA}?window=168h")
    assert opened.page.locator("#name").inner_text() == RESTAURANTS[SAKURA][0]


def _open(visit: OpenVisit, site: Site) -> Visit:
    opened: Visit = visit(site)
    opened.go(f"/r/{AZUL}?window=24h")
    opened.wait_live()
    return opened


def _assert_shown(opened: Visit, restaurant_id: str) -> None:
    """Wait for the figures of a restaurant; heading, picker, address and figures are of the one."""
    opened.wait_text("#name", RESTAURANTS[restaurant_id][0])
    opened.page.wait_for_url(f"**/r/{restaurant_id}?window=24h")
    oracle = Oracle(opened.site.raw)
    orders = oracle.totals(restaurant_id, opened.site.raw.as_of, 24).order_count
    oracle.close()
    assert opened.figure("order_count") == orders
    assert opened.page.get_by_label("Restaurant").input_value() == restaurant_id
