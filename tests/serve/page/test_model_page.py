"""The page of a served model asks as the API does, and says all that the store knows of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from html import unescape
from io import BytesIO, StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml
from httpx2 import Response

from livemart.project.declared.model_page import parse_page
from livemart.serve.page import model_page
from livemart.serve.page.text import DASH
from livemart.store.served import Dashboard, ModelDescription, ProjectPages
from livemart.store.store import Store
from tests.serve.apps import Site, site
from tests.serve.page.any_models import DESCRIPTIONS, EVIL, KEYS, PAGES, any_models
from tests.store.stores import RESTAURANTS, fill_store, reference_tables

ROOT = Path(__file__).resolve().parents[3]
HTML = "text/html,*/*;q=0.8"
SECRET = "select * from {{ ref('secret_costs') }}"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """All shapes of models, and one whose rows belong to tenants."""
    sales = pa.table({"restaurant_id": ["r1", "r1", "r2"], "day": [1, 2, 1], "sold": [5, 6, 777]})
    described = ModelDescription(
        "Sold by day", {"sold": "Pieces"}, DESCRIPTIONS["daily_sales"].tests, SECRET, SECRET
    )
    with site(tmp_path_factory.mktemp("models"), page=True) as found:
        fill_store(
            found.url,
            any_models() | {"sold": sales},
            {**KEYS, "sold": ("restaurant_id", "day")},
            descriptions={**DESCRIPTIONS, "sold": described},
        )
        found.until(lambda: found.shows(1))
        found.make_token()
        yield found


@pytest.fixture(scope="module")
def admin(one: Site) -> Mapping[str, str]:
    return one.bearer()


def ask(one: Site, path: str, headers: Mapping[str, str]) -> Response:
    sent = {**headers, "Accept": HTML}
    return one.client.get(path, headers=sent, follow_redirects=False)


def part_of(answer: Response, name: str) -> str:
    """Return the content of an element of the page by its id."""
    assert answer.status_code == 200
    tag, rest = re.split(rf'<(\w+)[^>]* id="{name}"[^>]*>', answer.text, maxsplit=1)[1:]
    return rest.partition(f"</{tag}>")[0]


def rows_of(answer: Response) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", part_of(answer, "cells"), re.DOTALL)
    return [[unescape(it) for it in re.findall(r"<td[^>]*>([^<]*)</td>", row)] for row in rows]


def href_of(answer: Response, pattern: str) -> str:
    found = re.search(rf'<a href="([^"]*)"[^>]*{pattern}', answer.text)
    assert found is not None, pattern
    return unescape(found[1])


def test_conditions_order_and_columns_are_those_of_the_api(
    one: Site, admin: Mapping[str, str]
) -> None:
    query = "shop=in.(Porto,Faro)&sales_amount=gte.1000&order=day.desc&select=day,shop"

    page = ask(one, f"/models/daily_sales?{query}", admin)
    rows = one.client.get(f"/v1/models/daily_sales?{query}&limit=100", headers=admin).json()["rows"]

    assert rows_of(page) == [[row["day"], row["shop"]] for row in rows]
    assert [row["shop"] for row in rows].count("Porto") > 5
    assert "shop one of (Porto,Faro)" in page.text
    assert 'aria-sort="descending"' in page.text


def test_the_pages_follow_each_other_to_the_last_row(one: Site, admin: Mapping[str, str]) -> None:
    path, seen = "/models/daily_sales?order=sales_amount.desc&limit=200", list[list[str]]()
    while True:
        page = ask(one, path, admin)
        seen += rows_of(page)
        if 'id="next-page"' not in page.text:
            break
        path = href_of(page, 'id="next-page"')

    whole = one.client.get("/v1/models/daily_sales?order=sales_amount.desc", headers=admin).json()
    assert seen == [[str(it) for it in row.values()] for row in whole["rows"]]
    assert len(seen) == 499
    # The address of a page is one of the API, and the other way round.
    cursor = path.partition("after=")[2]
    api = f"/v1/models/daily_sales?order=sales_amount.desc&limit=200&after={cursor}"
    assert len(one.client.get(api, headers=admin).json()["rows"]) == 99
    assert href_of(page, 'id="first-page"') == (
        "/models/daily_sales?order=sales_amount.desc&limit=200"
    )


def test_the_form_leads_to_the_address_of_the_condition(
    one: Site, admin: Mapping[str, str]
) -> None:
    form = "order=day.desc&page.where=order_count&page.is=gte&page.value=50"

    answer = ask(one, f"/models/daily_sales?{form}", admin)

    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/models/daily_sales?order=day.desc&order_count=gte.50",
    )
    filtered = ask(one, answer.headers["location"], admin)
    assert {int(row[3]) >= 50 for row in rows_of(filtered)} == {True}
    assert href_of(filtered, 'aria-label="Remove the filter order_count ≥ 50"') == (
        "/models/daily_sales?order=day.desc"
    )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("order_count=gte.many", "is not a value of type bigint"),
        ("order=nothing", "no column nothing"),
        ("limit=501", "from 1 to 500"),
        ("limit=x", "from 1 to 500"),
        ("from=yesterday", "write a time as"),
        ("key=sales_amount:5", "write one of shop"),
        ("after=nothing", "send `next` of the page before"),
    ],
)
def test_a_wrong_parameter_is_said_with_a_way_back(
    one: Site, admin: Mapping[str, str], query: str, found: str
) -> None:
    answer = ask(one, f"/models/daily_sales?{query}", admin)

    assert answer.status_code in (400, 422)
    assert found in unescape(answer.text)
    assert 'class="button" href="/models/daily_sales"' in answer.text


def test_rows_that_changed_between_two_pages_are_those_behind_the_same_row(tmp_path: Path) -> None:
    first = pa.table({"id": list(range(6)), "word": ["old"] * 6})
    with site(tmp_path, page=True) as here:
        fill_store(here.url, {"words": first}, {"words": ("id",)})
        here.until(lambda: here.shows(1))
        here.make_token()
        headers = here.bearer()
        next_page = href_of(ask(here, "/models/words?limit=3", headers), 'id="next-page"')
        second = pa.table({"id": list(range(1, 7)), "word": ["new"] * 6})
        fill_store(here.url, {"words": second}, {"words": ("id",)}, snapshot_id=2)
        here.until(lambda: here.shows(2))

        page = ask(here, next_page, headers)

    assert rows_of(page) == [["3", "new"], ["4", "new"], ["5", "new"]]
    assert "Rows have changed since the page before." in page.text


@pytest.mark.parametrize(
    ("path", "drawn"),
    [
        ("daily_sales", {"lines"}),
        ("hourly_balance", {"lines"}),
        ("readings", {"lines"}),
        ("shops", {"bars"}),
        ("totals", {"tile"}),
        ("daily_sales?shop=eq.Aveiro&day=eq.2026-03-01", {"tile"}),
        ("daily_sales?day=eq.2026-03-01", {"bars"}),
        ("daily_sales?page.chart=none", set()),
        ("wide", set()),
        ("empty", set()),
        ("repeated", set()),
    ],
)
def test_a_model_has_a_chart_by_itself(
    one: Site, admin: Mapping[str, str], path: str, drawn: set[str]
) -> None:
    answer = ask(one, f"/models/{path}", admin)

    assert answer.status_code == 200
    chart = answer.text.partition('id="chart"')[2].partition("<details")[0]
    kinds = set(re.findall(r'class="(lines|bars|tile)\b', chart))
    assert kinds == drawn


def test_the_chart_is_of_the_rows_that_the_address_asks_for(
    one: Site, admin: Mapping[str, str]
) -> None:
    several = ask(one, "/models/daily_sales?shop=in.(Porto,Faro)&limit=1", admin)
    newest = ask(one, "/models/readings", admin)

    assert re.findall(r"<span>([^<]+)</span></span></th>", several.text)[:2] == ["Faro", "Porto"]
    assert "The newest 2,000 rows. Times are UTC." in newest.text


def test_a_large_model_is_drawn_from_its_first_rows(
    one: Site, admin: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_page, "_MOST_SEARCHED", 5_000)

    text = ask(one, "/models/readings", admin).text

    assert "The first 100 rows. Times are UTC." in text
    assert "A model of more than" in text and "is drawn from its first ones" in text


def test_the_newest_rows_of_a_large_model_are_found_by_a_key_that_begins_with_their_time(
    one: Site, admin: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_page, "_MOST_SEARCHED", 50)
    monkeypatch.setattr(model_page, "_CHARTED_VALUES", 2 * 150)

    text = ask(one, "/models/hourly_balance", admin).text

    assert "The newest 150 rows. Times are UTC." in text
    assert "is drawn from its first ones" not in text


def test_a_chart_reads_fewer_rows_of_a_model_with_many_columns(
    one: Site, admin: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_page, "_CHARTED_VALUES", 4 * 150)

    text = ask(one, "/models/readings", admin).text

    assert "The newest 150 rows. Times are UTC." in text


def test_a_page_of_long_texts_reads_fewer_rows_and_leads_to_the_others(
    one: Site, admin: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them are in the memory of the server at once."""
    monkeypatch.setattr(model_page, "MOST_BYTES", 1)
    path = "/models/daily_sales?limit=500"
    first = ask(one, path, admin)

    pages = [len(rows_of(first))]
    page = first
    while 'id="next-page"' in page.text:
        page = ask(one, href_of(page, 'id="next-page"'), admin)
        pages.append(len(rows_of(page)))

    assert pages == [101, 101, 101, 101, 95]
    assert "The newest 101 rows." in first.text


def test_a_picture_has_a_title_and_a_description_and_its_numbers_as_a_table(
    one: Site, admin: Mapping[str, str]
) -> None:
    text = ask(one, "/models/hourly_balance", admin).text

    assert 'aria-labelledby="line-1-title" aria-describedby="line-1-words"' in text
    assert '<figcaption id="line-1-title"><strong>balance</strong> by hour</figcaption>' in text
    assert "One line of balance by hour, from 16 Feb to 23 Feb." in text
    assert '<td class="number">-85.00</td>' in text


def test_a_model_is_described_with_its_columns_tests_and_sql(
    one: Site, admin: Mapping[str, str]
) -> None:
    text = unescape(ask(one, "/models/daily_sales", admin).text)

    assert '<p class="prose">A day without an order has no row.</p>' in text
    assert "<td>Day of the shop's calendar</td>" in text
    assert 'data-outcome="pass">not_null: passed<' in text
    assert 'data-outcome="warn">positive: warned<' in text
    assert 'data-outcome="fail">no_future_day: failed<' in text
    assert 'data-outcome="">unique_daily_sales: not run yet<' in text
    assert "from {{ ref('orders') }}" in text and "from `mart`.`orders`" in text


def test_a_tenant_sees_the_own_rows_and_descriptions_but_neither_tests_nor_sql(one: Site) -> None:
    own = ask(one, "/models/sold", one.bearer("r1"))
    everyone = ask(one, "/models/sold", one.bearer())

    assert rows_of(own) == [["r1", "1", "5"], ["r1", "2", "6"]]
    # A time of the page may have these digits, too.
    assert ">777<" not in own.text and ">777<" in everyone.text
    assert "Sold by day" in own.text and "<td>Pieces</td>" in own.text
    for hidden in ("not_null: passed", "no_future_day", "secret_costs"):
        assert hidden not in own.text
        assert hidden in everyone.text
    assert "rows of" not in part_of(own, "extent")
    foreign = ask(one, "/models/sold?restaurant_id=eq.r2", one.bearer("r1"))
    assert rows_of(foreign) == []
    # A cursor is of the tenants who got it.
    next_page = href_of(ask(one, "/models/sold?limit=1", one.bearer()), 'id="next-page"')
    assert ask(one, next_page, one.bearer("r1")).status_code == 400


def test_a_store_without_descriptions_says_when_they_come(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as here:
        fill_store(here.url, {"totals": any_models()["totals"]}, KEYS)
        with closing(Store.open(here.url)) as store, store.begin() as connection:
            connection.exec_driver_sql("drop table livemart_descriptions")
        here.until(lambda: here.shows(1))
        page = here.client.get("/models/totals", headers={"Accept": HTML})

    assert page.status_code == 200
    assert "shown once the next snapshot is published" in page.text


def test_columns_are_hidden_and_shown_in_the_order_of_the_model(
    one: Site, admin: Mapping[str, str]
) -> None:
    hidden = href_of(ask(one, "/models/totals", admin), 'aria-label="Hide order_count"')
    page = ask(one, hidden, admin)

    assert hidden == "/models/totals?select=id,sales_amount,smallest,largest"
    assert rows_of(page) == [["1", "8243.50", "-1e-06", str(2**62)]]
    assert href_of(page, 'aria-label="Show order_count"') == "/models/totals"


def test_text_of_rows_names_and_descriptions_stays_text(
    one: Site, admin: Mapping[str, str]
) -> None:
    text = ask(one, "/models/hostile", admin).text

    assert "<script>alert" not in text and "<img" not in text
    assert unescape(text).count(EVIL) > 6


def test_every_shape_of_a_model_has_a_page(one: Site, admin: Mapping[str, str]) -> None:
    wide = ask(one, "/models/wide", admin)
    empty = ask(one, "/models/empty", admin)
    repeated = ask(one, "/models/repeated", admin)

    assert {len(row) for row in rows_of(wide)} == {60}
    assert part_of(empty, "extent") == "One row per id. No rows."
    assert part_of(repeated, "extent") == "No key: equal rows are counted. 4 rows."
    assert [row[0] for row in rows_of(repeated)].count(DASH) == 1
    assert part_of(ask(one, "/models/totals?id=eq.9", admin), "extent").endswith(
        "No row is like this."
    )


def test_rows_are_loaded_in_every_form_by_a_link(one: Site, admin: Mapping[str, str]) -> None:
    page = ask(one, "/models/daily_sales?shop=eq.Porto&select=day,sales_amount&limit=2", admin)
    loaded = {
        form: one.client.get(href_of(page, f">{form}<"), headers={**admin, "Accept": HTML})
        for form in ("CSV", "Parquet", "Arrow", "JSON")
    }
    rows = loaded["JSON"].json()["rows"]
    parquet = pq.read_table(BytesIO(loaded["Parquet"].content))
    arrow = pa.ipc.open_stream(loaded["Arrow"].content).read_all()

    assert len(rows) > 40
    assert parquet.equals(arrow) and parquet.num_rows == len(rows)
    assert [str(it) for it in parquet["sales_amount"].to_pylist()] == [
        row["sales_amount"] for row in rows
    ]
    assert len(StringIO(loaded["CSV"].text).readlines()) == len(rows) + 1
    assert {form: answer.headers["content-type"] for form, answer in loaded.items()} == {
        "CSV": "text/csv; charset=utf-8",
        "Parquet": "application/vnd.apache.parquet",
        "Arrow": "application/vnd.apache.arrow.stream",
        "JSON": "application/json",
    }
    assert loaded["Parquet"].headers["content-disposition"] == (
        'attachment; filename="daily_sales.parquet"'
    )


@pytest.fixture(scope="module")
def with_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Models whose project says how their pages look."""
    with site(tmp_path_factory.mktemp("pages"), page=True) as found:
        fill_store(found.url, any_models(), KEYS, pages=PAGES)
        found.until(lambda: found.shows(1))
        found.make_token()
        yield found


def test_a_page_looks_as_the_project_wants(with_pages: Site) -> None:
    answer = ask(with_pages, "/models/daily_sales?limit=200", with_pages.bearer())

    assert "<h1>Sales by day</h1>" in answer.text
    drawn = re.findall(r"<figcaption[^>]*><strong>(\w+)<", answer.text)
    assert drawn == ["order_count", "sales_amount"]
    rows = rows_of(answer)
    assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)
    assert all(row[2].startswith("€") and row[3].isdigit() for row in rows)
    assert re.search(r'<td class="number">€[\d,]+\.\d\d</td>', answer.text)
    assert "The first 200 rows of 499, in the order of the project." in answer.text
    # Its order is a choice among others, and what is loaded is in it.
    assert href_of(answer, ">day") == "/models/daily_sales?limit=200&order=day.asc"
    assert "order=day.desc,shop.asc" in href_of(answer, ">CSV")
    second = ask(with_pages, href_of(answer, 'id="next-page"'), with_pages.bearer())
    assert rows_of(second)[0][1] <= rows[-1][1] and rows_of(second)[0] not in rows


def test_a_page_of_the_project_s_order_is_none_of_the_key_s(with_pages: Site) -> None:
    headers = with_pages.bearer()
    first = ask(with_pages, "/models/daily_sales?limit=200", headers)
    cursor = href_of(first, 'id="next-page"').partition("after=")[2]
    api = "/v1/models/daily_sales?limit=5&after=" + cursor

    in_order = with_pages.client.get(f"{api}&order=day.desc,shop.asc", headers=headers)
    by_key = with_pages.client.get(api, headers=headers)

    assert in_order.json()["rows"][0]["day"] <= rows_of(first)[-1][1]
    assert (by_key.status_code, by_key.json()["code"]) == (400, "POSITION_REFUSED")


def test_the_address_comes_before_the_project(with_pages: Site) -> None:
    query = "page.chart=bars&page.number=order_count&day=eq.2026-03-01&order=shop.asc"

    answer = ask(with_pages, f"/models/daily_sales?{query}", with_pages.bearer())

    assert "<strong>order_count</strong>" in answer.text and 'class="barred"' in answer.text
    assert [row[0] for row in rows_of(answer)] == sorted(row[0] for row in rows_of(answer))


def test_bars_have_the_order_of_the_project(with_pages: Site) -> None:
    text = ask(with_pages, "/models/shops", with_pages.bearer()).text

    assert "<strong>visits</strong>" in text
    bars = re.findall(r'<td class="number">([\d,]+)</td>', text.partition("</section>")[0])
    assert bars == sorted(bars) and len(bars) == 20
    assert "The 20 first of 25 rows." in text


def test_a_single_row_shows_the_tiles_of_the_project_and_names_of_no_column_to_admins(
    with_pages: Site,
) -> None:
    text = ask(with_pages, "/models/totals", with_pages.bearer()).text

    assert re.findall(r"<h3>(\w+)</h3>", text) == ["sales_amount", "order_count"]
    assert "name no_such_column, which is no column of this model" in text


def test_all_restaurants_are_seen_at_a_glance_with_the_digits_of_their_currency(
    tmp_path: Path,
) -> None:
    text = (ROOT / "models" / "marts" / "_marts__models.yml").read_text(encoding="utf-8")
    of_project = {model["name"]: model for model in yaml.safe_load(text)["models"]}
    meta = of_project["restaurant_order_metrics"]["config"]["meta"]["livemart"]["page"]
    page, _ = parse_page(meta, "marts.yml: restaurant_order_metrics")
    with site(tmp_path, page=True) as here:
        pages = ProjectPages({"restaurant_order_metrics": page})
        fill_store(here.url, reference_tables(), pages=pages)
        here.until(lambda: here.shows(1))
        answer = ask(here, "/models/restaurant_order_metrics?window_hours=eq.24", here.bearer())

    heads = re.findall(r'<a href="[^"]*">(\w+)<span class="arrow"', answer.text)
    rows = [dict(zip(heads, row, strict=True)) for row in rows_of(answer)]
    sales = {row["currency_code"]: row["sales_amount"] for row in rows}
    assert "<h1>All restaurants</h1>" in answer.text
    assert {row["window_hours"] for row in rows} == {"24"} and len(rows) == len(RESTAURANTS)
    assert re.fullmatch(r"JP¥[\d,]+", sales["JPY"])
    assert re.fullmatch(r"€[\d,]+\.\d\d", sales["EUR"])


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("dashboards"), page=True) as found:
        tables = any_models() | reference_tables([])
        of_tenants = Dashboard("Dishes", "", ("shops", "restaurant_top_dishes"))
        pages = ProjectPages(PAGES.models, {**PAGES.dashboards, "dishes": of_tenants})
        fill_store(found.url, tables, KEYS, pages=pages)
        found.until(lambda: found.shows(1))
        yield found


def panels_of(boards: Site, name: str, *restaurants: str) -> dict[str, str]:
    """Return the panels of a dashboard by the names of their models."""
    headers = {**boards.bearer(*restaurants), "Accept": HTML}
    answer = boards.client.get(f"/dashboards/{name}", headers=headers)
    assert answer.status_code == 200
    parts = re.split(r'<section class="panel" id="panel-\d+-([^"]+)"', answer.text)[1:]
    return dict(zip(parts[::2], (unescape(part) for part in parts[1::2]), strict=True))


def test_models_are_drawn_in_the_order_of_the_exposure(boards: Site) -> None:
    panels = panels_of(boards, "overview")

    assert list(panels) == list(PAGES.dashboards["overview"].models)
    assert 'class="lines"' in panels["daily_sales"]
    assert '<a href="/models/daily_sales">Sales by day</a>' in panels["daily_sales"]
    assert 'class="barred"' in panels["shops"]
    assert re.findall(r"<h3>(\w+)</h3>", panels["totals"]) == ["sales_amount", "order_count"]
    # Without a chart there are the first rows, and without a row a word.
    assert panels["repeated"].count("<tr><td") == 4
    assert "No rows." in panels["empty"]


def test_a_tenant_sees_the_models_of_tenants_alone(boards: Site) -> None:
    assert list(panels_of(boards, "dishes", "r1")) == ["restaurant_top_dishes"]
    assert list(panels_of(boards, "dishes")) == ["shops", "restaurant_top_dishes"]


@pytest.mark.parametrize(
    ("name", "restaurants"), [("nothing", ()), ("x", ()), ("overview", ("r1",))]
)
def test_a_dashboard_without_a_readable_model_does_not_exist(
    boards: Site, name: str, restaurants: tuple[str, ...]
) -> None:
    headers = {**boards.bearer(*restaurants), "Accept": HTML}

    answer = boards.client.get(f"/dashboards/{name}", headers=headers)

    assert answer.status_code == 404
    assert "DASHBOARD_UNKNOWN" in answer.text
    assert 'class="button" href="/models"' in answer.text


def test_the_list_of_models_leads_to_the_dashboards(boards: Site) -> None:
    admin = boards.client.get("/models", headers={**boards.bearer(), "Accept": HTML}).text
    own = boards.client.get("/models", headers={**boards.bearer("r1"), "Accept": HTML}).text

    assert re.findall(r'href="/dashboards/(\w+)"', admin) == ["alone", "dishes", "overview"]
    assert re.findall(r'href="/dashboards/(\w+)"', own) == ["dishes"]
    assert '<span class="quiet">Sales by day</span>' in admin


def test_texts_of_a_project_are_only_text(boards: Site) -> None:
    text = boards.client.get("/dashboards/alone", headers={**boards.bearer(), "Accept": HTML}).text

    assert "<script>alert" not in text and "<img src=x" not in text
    assert EVIL in unescape(text)


def test_further_models_are_links(boards: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_page, "_MOST_DRAWN", 2)

    panels = panels_of(boards, "overview")

    assert list(panels) == ["totals", "daily_sales"]
    assert '<a href="/models/hourly_balance">hourly_balance</a>' in panels["daily_sales"]


def test_a_model_that_is_not_served_is_left_out(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as here:
        fill_store(here.url, {"totals": any_models()["totals"]}, KEYS, pages=PAGES)
        here.until(lambda: here.shows(1))
        assert list(panels_of(here, "overview")) == ["totals"]
