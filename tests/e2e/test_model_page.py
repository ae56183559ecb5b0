"""The page of a served model of any project: its looks, links and forms, and how it follows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.e2e import accessibility
from tests.e2e.conftest import OpenVisit
from tests.e2e.raw_orders import RawOrders
from tests.e2e.site import DESKTOP, PHONE, Site, Visit, is_focused
from tests.serve.page.any_models import DESCRIPTIONS, EVIL, KEYS, PAGES, any_models
from tests.store.stores import fill_store

TABLET = 768
_KEEP_MARKED = """() => {
  window.marked = [];
  const keep = ({ target }) =>
    target.classList.contains("changed") && window.marked.push(target.textContent);
  const what = { subtree: true, attributes: true, attributeFilter: ["class"] };
  const observer = new MutationObserver((records) => records.forEach(keep));
  observer.observe(document.getElementById("cells"), what);
}"""
SHAPES = ("hourly_balance", "shops", "wide", "readings", "totals", "hostile", "empty", "repeated")


class AnySite(Site):
    """A server over models of any project."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, RawOrders(datetime.now(UTC)))
        self.models = any_models()

    def publish(self, *, age: timedelta = timedelta(0)) -> None:
        self._snapshot_id += 1
        fill_store(
            self.store_url,
            self.models,
            KEYS,
            self._snapshot_id,
            descriptions=DESCRIPTIONS,
            pages=PAGES,
            now=datetime.now(UTC) - age,
        )


@pytest.fixture(scope="module")
def any_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnySite]:
    site = AnySite(tmp_path_factory.mktemp("any"))
    site.publish()
    with site.running():
        yield site


def examine(opened: Visit, name: str) -> None:
    """Look at a page in six ways: no barrier that can be measured, and a picture of each."""
    opened.page.mouse.move(0, 0)
    for width in (DESKTOP, TABLET, PHONE):
        opened.page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            opened.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            opened.keep_screenshot(f"model-{name}-{scheme}-{width}")
            look = f"{name} {scheme} {width}"

            assert accessibility.violations(opened.page) == [], look
            assert accessibility.small_targets(opened.page) == [], look
            assert not accessibility.scrolls_sideways(opened.page), look


def open_model(visit: OpenVisit, site: Site, path: str) -> Visit:
    opened: Visit = visit(site, before=accessibility.bring_axe)
    opened.go(f"/models/{path}")
    opened.wait_live()
    return opened


def first_cells(opened: Visit) -> list[str]:
    return opened.page.locator("#cells tr td:first-child").all_inner_texts()


def test_a_model_with_all_that_is_known_of_it_is_accessible(
    any_site: AnySite, visit: OpenVisit
) -> None:
    opened = open_model(visit, any_site, "daily_sales?sales_amount=gte.400")
    opened.page.evaluate("document.querySelectorAll('details').forEach((it) => (it.open = true))")

    assert opened.page.get_by_role("img", name="sales_amount by day").is_visible()
    assert opened.page.get_by_text("no_future_day: failed").is_visible()
    examine(opened, "daily_sales")


@pytest.mark.extended
@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_a_model_is_accessible(
    any_site: AnySite, visit: OpenVisit, name: str
) -> None:
    examine(open_model(visit, any_site, name), name)


@pytest.mark.extended
@pytest.mark.parametrize("path", ["/models", "/dashboards/overview", "/dashboards/alone"])
def test_dashboards_and_their_list_are_accessible(
    any_site: AnySite, visit: OpenVisit, path: str
) -> None:
    opened = visit(any_site, before=accessibility.bring_axe)
    opened.go(path)
    if path != "/models":
        opened.wait_live()
    examine(opened, path.strip("/").replace("/", "-"))


@pytest.mark.extended
def test_a_dashboard_is_whole_without_script(any_site: AnySite, visit: OpenVisit) -> None:
    opened = visit(any_site, has_script=False)
    opened.go("/models")
    opened.page.get_by_role("link", name="How the shops do").click()

    assert opened.page.locator("h1").inner_text() == "How the shops do"
    assert opened.page.locator("svg.lines").count() > 1
    assert opened.page.locator("noscript p").is_visible()
    opened.page.get_by_role("link", name="Sales by day").click()
    assert opened.page.locator("h1").inner_text() == "Sales by day"


@pytest.mark.extended
@pytest.mark.parametrize("name", ["daily_sales", "shops", "totals"])
@pytest.mark.parametrize("adaptation", sorted(accessibility.ADAPTATIONS))
def test_text_may_be_larger_and_spaced(
    any_site: AnySite, visit: OpenVisit, name: str, adaptation: str
) -> None:
    opened = open_model(visit, any_site, name)
    accessibility.ADAPTATIONS[adaptation](opened.page)
    opened.page.set_viewport_size({"width": PHONE, "height": 900})
    opened.keep_screenshot(f"model-{name}-{adaptation}")

    assert not accessibility.scrolls_sideways(opened.page)
    assert accessibility.clipped(opened.page) == []


def test_without_script_links_sort_and_turn_pages_and_a_form_filters(
    any_site: AnySite, visit: OpenVisit
) -> None:
    opened = visit(any_site, has_script=False)
    page = opened.page
    opened.go("/models/readings")

    assert page.locator("svg.lines").is_visible()
    assert page.locator("noscript p").is_visible()
    page.get_by_role("link", name="reading_id").click()
    page.get_by_role("link", name="reading_id").click()
    assert first_cells(opened)[:2] == ["9999", "9998"]
    page.get_by_role("link", name="Next page").click()
    assert first_cells(opened)[0] == "9899"
    page.get_by_label("Column", exact=True).select_option("sensor")
    page.get_by_label("Value", exact=True).fill("sensor 1")
    page.get_by_role("button", name="Filter").click()
    assert page.url.endswith("/models/readings?order=reading_id.desc&sensor=eq.sensor%201")
    assert first_cells(opened)[:2] == ["9997", "9994"]
    page.get_by_role("link", name="Remove the filter sensor = sensor 1").click()
    page.get_by_text("Choose the chart").click()
    page.get_by_role("combobox", name="Chart", exact=True).select_option("none")
    page.get_by_role("button", name="Show", exact=True).click()
    assert page.locator("svg.lines").count() == 0
    assert first_cells(opened)[0] == "9999"


def test_a_page_follows_marks_what_changed_and_keeps_what_a_reader_does(
    any_site: AnySite, visit: OpenVisit
) -> None:
    opened = visit(any_site)
    page = opened.page
    page.clock.install()
    opened.go("/models/shops?order=shop_id.asc&select=shop_id,visits&limit=3")
    opened.wait_live()
    # By the keyboard alone: the first stop leads to the rows.
    page.keyboard.press("Tab")
    assert is_focused(page.get_by_role("link", name="Skip to the rows"))
    page.get_by_label("Value", exact=True).fill("half a wo")
    before = page.locator("#chart").inner_html()
    board = visit(any_site)
    board.go("/dashboards/overview")
    board.wait_live()
    # Rows are marked for a moment only, which may pass before a slow machine looks.
    page.evaluate(_KEEP_MARKED)

    shops = any_site.models["shops"]
    visits = [7 if number == 1 else it for number, it in enumerate(shops["visits"].to_pylist())]
    any_site.models["shops"] = shops.set_column(3, "visits", pa.array(visits))
    any_site.publish()
    page.wait_for_function("() => window.marked.length")

    assert page.evaluate("window.marked") == ["s17"]
    assert page.locator("#chart").inner_html() != before
    assert page.get_by_label("Value", exact=True).input_value() == "half a wo"
    assert page.locator("#status").inner_text() == "Rows of snapshot 2."
    assert page.url.endswith("limit=3")
    board.wait_text("#status", "Rows of snapshot 2.")
    assert board.page.locator("table.barred tr", has_text="Braga 1").get_by_text("7").is_visible()
    page.clock.fast_forward(5_000)
    page.wait_for_function("() => !document.querySelector('#cells tr.changed')")


@pytest.mark.extended
@pytest.mark.parametrize("has_script", [True, False])
def test_names_and_values_are_only_text(
    any_site: AnySite, visit: OpenVisit, has_script: bool
) -> None:
    opened = visit(any_site, has_script=has_script)
    opened.go("/models/hostile")

    assert opened.page.locator("#cells td").nth(1).inner_text() == EVIL
    assert opened.page.locator("main script, main img").count() == 0
