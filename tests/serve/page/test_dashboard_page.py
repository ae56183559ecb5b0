"""A dashboard is an exposure: its models on one page, each as its own page shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from livemart.serve.page import dashboard_page
from livemart.store.served import Dashboard, ProjectPages
from tests.serve.apps import Site, site
from tests.serve.page.any_models import EVIL, KEYS, PAGES, any_models
from tests.store.stores import fill_store, reference_tables

HTML = "text/html,*/*;q=0.8"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("dashboards"), page=True) as found:
        tables = any_models() | reference_tables([])
        of_tenants = Dashboard("Dishes", "", ("shops", "restaurant_top_dishes"))
        pages = ProjectPages(PAGES.models, {**PAGES.dashboards, "dishes": of_tenants})
        fill_store(found.url, tables, KEYS, pages=pages)
        found.until(lambda: found.shows(1))
        yield found


def panels_of(one: Site, name: str, *restaurants: str) -> dict[str, str]:
    """Return the panels of a dashboard by the names of their models."""
    headers = {**one.bearer(*restaurants), "Accept": HTML}
    answer = one.client.get(f"/dashboards/{name}", headers=headers)
    assert answer.status_code == 200
    parts = re.split(r'<section class="panel" id="panel-\d+-([^"]+)"', answer.text)[1:]
    return dict(zip(parts[::2], (unescape(part) for part in parts[1::2]), strict=True))


def test_models_are_drawn_in_the_order_of_the_exposure(one: Site) -> None:
    panels = panels_of(one, "overview")

    assert list(panels) == list(PAGES.dashboards["overview"].models)
    assert 'class="lines"' in panels["daily_sales"]
    assert '<a href="/models/daily_sales">Sales by day</a>' in panels["daily_sales"]
    assert 'class="barred"' in panels["shops"]
    assert re.findall(r"<h3>(\w+)</h3>", panels["totals"]) == ["sales_amount", "order_count"]
    # Without a chart there are the first rows, and without a row a word.
    assert panels["repeated"].count("<tr><td") == 4
    assert "No rows." in panels["empty"]


def test_a_tenant_sees_the_models_of_tenants_alone(one: Site) -> None:
    assert list(panels_of(one, "dishes", "r1")) == ["restaurant_top_dishes"]
    assert list(panels_of(one, "dishes")) == ["shops", "restaurant_top_dishes"]


@pytest.mark.parametrize(
    ("name", "restaurants"), [("nothing", ()), ("x", ()), ("overview", ("r1",))]
)
def test_a_dashboard_without_a_readable_model_does_not_exist(
    one: Site, name: str, restaurants: tuple[str, ...]
) -> None:
    headers = {**one.bearer(*restaurants), "Accept": HTML}

    answer = one.client.get(f"/dashboards/{name}", headers=headers)

    assert answer.status_code == 404
    assert "DASHBOARD_UNKNOWN" in answer.text
    assert 'class="button" href="/models"' in answer.text


def test_the_list_of_models_leads_to_the_dashboards(one: Site) -> None:
    admin = one.client.get("/models", headers={**one.bearer(), "Accept": HTML}).text
    own = one.client.get("/models", headers={**one.bearer("r1"), "Accept": HTML}).text

    assert re.findall(r'href="/dashboards/(\w+)"', admin) == ["alone", "dishes", "overview"]
    assert re.findall(r'href="/dashboards/(\w+)"', own) == ["dishes"]
    assert '<span class="quiet">Sales by day</span>' in admin


def test_texts_of_a_project_are_only_text(one: Site) -> None:
    text = one.client.get("/dashboards/alone", headers={**one.bearer(), "Accept": HTML}).text

    assert "<script>alert" not in text and "<img src=x" not in text
    assert EVIL in unescape(text)


def test_further_models_are_links(one: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard_page, "_MOST_DRAWN", 2)

    panels = panels_of(one, "overview")

    assert list(panels) == ["totals", "daily_sales"]
    assert '<a href="/models/hourly_balance">hourly_balance</a>' in panels["daily_sales"]


def test_a_model_that_is_not_served_is_left_out(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as here:
        fill_store(here.url, {"totals": any_models()["totals"]}, KEYS, pages=PAGES)
        here.until(lambda: here.shows(1))
        assert list(panels_of(here, "overview")) == ["totals"]
