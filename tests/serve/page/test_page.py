"""The page's own paths: who sees what, the way in and out, and errors as pages."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from http.cookies import SimpleCookie
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from httpx2 import Response

from livemart.serve.page import page as page_module
from livemart.serve.page.text import DASH
from livemart.state.last_run import LastRun, RunFailure, keep_last_run
from tests.serve.apps import ADDRESS, Site, make_settings, site
from tests.store.stores import KEYS, NOON, RESTAURANTS, Order, fill_store, reference_tables

HTML, JSON = "text/html,*/*;q=0.8", "application/json"
# Names of the restaurants that are not the caller's.
FOREIGN = re.compile(r"\br2\b|\br3\b|Joe's Diner|Joe&#39;s Diner|麺処|America/New_York|Asia/Tokyo")
ORIGIN = {"Origin": ADDRESS}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("page"), page=True) as found:
        tables = reference_tables() | {"market_totals": pa.table({"day": ["2026-03-01"]})}
        fill_store(found.url, tables, {**KEYS, "market_totals": ("day",)})
        found.until(lambda: found.shows(1))
        found.make_token()
        yield found
        found.client.cookies.clear()


def ask(one: Site, path: str, headers: Mapping[str, str], accept: str = HTML) -> Response:
    one.client.cookies.clear()
    sent = {**headers, "Accept": accept}
    return one.client.get(path, headers=sent, follow_redirects=False)


def told(answer: Response) -> tuple[int, dict[str, str], bytes]:
    """Return everything that an answer tells; of a problem, but for the path that was asked for."""
    headers = {name: value for name, value in answer.headers.items() if name != "date"}
    body = re.sub(rb'"instance": "[^"]*"', b"", answer.content)
    if body != answer.content:
        headers.pop("content-length", None)
    return answer.status_code, headers, body


@pytest.mark.parametrize("accept", [HTML, JSON])
@pytest.mark.parametrize("window", ["1h", "24h", "168h"])
def test_an_owner_sees_the_own_restaurant_alone(one: Site, accept: str, window: str) -> None:
    answer = ask(one, f"/r/r1?window={window}", one.bearer("r1"), accept)

    assert answer.status_code == 200
    assert "Taverna Azul" in answer.text
    assert not FOREIGN.search(answer.text)


@pytest.mark.parametrize("accept", [HTML, JSON])
@pytest.mark.parametrize("query", ["", "?window=1h"])
def test_a_foreign_restaurant_is_no_restaurant(one: Site, accept: str, query: str) -> None:
    caller = one.bearer("r1")

    foreign = ask(one, f"/r/r2{query}", caller, accept)
    unknown = ask(one, f"/r/r9{query}", caller, accept)

    assert foreign.status_code == 404
    assert told(foreign) == told(unknown)
    assert not FOREIGN.search(foreign.text.replace("/r/r2", ""))
    assert told(ask(one, f"/r/r9{query}", one.bearer(), accept)) == told(unknown)


@pytest.mark.parametrize("token", ["", "lm_nonsense", "lm_0123456789ab_" + "A" * 43])
@pytest.mark.parametrize("accept", [HTML, JSON])
@pytest.mark.parametrize("path", ["/r/r1", "/r/r9"])
def test_without_a_token_there_is_a_form_or_a_problem(
    one: Site, token: str, accept: str, path: str
) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    answer = ask(one, path, headers, accept)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "Taverna" not in answer.text
    if accept == JSON:
        assert answer.headers["content-type"] == "application/problem+json"
    else:
        assert 'name="token"' in answer.text


@pytest.mark.parametrize("path", ["/", "/models"])
def test_every_page_but_the_form_wants_a_token(one: Site, path: str) -> None:
    assert ask(one, path, {}).status_code == 401
    assert ask(one, "/login", {}).status_code == 200
    assert ask(one, "/static/page.css", {}).status_code == 200


def test_the_first_page_leads_to_an_own_restaurant(one: Site) -> None:
    own = ask(one, "/", one.bearer("r3"))
    several = ask(one, "/?restaurant=r2&window=1h", one.bearer("r1", "r2"))
    foreign = ask(one, "/?restaurant=r2", one.bearer("r1"))
    none = ask(one, "/", one.bearer("r9"))

    assert (own.status_code, own.headers["location"]) == (303, "/r/r3?window=24h")
    assert several.headers["location"] == "/r/r2?window=1h"
    # It leads there without saying whether there is such a one.
    assert foreign.headers["location"] == "/r/r2?window=24h"
    assert none.status_code == 404


def test_the_picker_holds_the_own_restaurants(one: Site) -> None:
    chain = ask(one, "/r/r1", one.bearer("r1", "r3"))
    admin = ask(one, "/r/r1", one.bearer())

    assert re.findall(r'<option value="(\w+)"', chain.text) == ["r1", "r3"]
    assert sorted(re.findall(r'<option value="(\w+)"', admin.text)) == ["r1", "r2", "r3"]
    assert "<select" not in ask(one, "/r/r1", one.bearer("r1")).text


def test_outlets_of_one_name_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    chain = ("Joe's", "UTC", "EUR")
    restaurants = {"r1": chain, "r2": ("Other", "UTC", "EUR"), "r3": chain}
    with site(tmp_path, page=True) as here:
        fill_store(here.url, reference_tables([], restaurants=restaurants))
        here.until(lambda: here.shows(1))

        page = here.client.get("/r/r1", headers={"Accept": HTML}).text

    labels = re.findall(r'<option value="(\w+)"[^>]*>(.*?)</option>', page)
    assert labels == [("r1", "Joe&#39;s (r1)"), ("r3", "Joe&#39;s (r3)"), ("r2", "Other")]


def test_more_restaurants_than_a_list_holds_are_opened_by_id(
    one: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "_MOST_IN_PICKER", 2)

    page = ask(one, "/r/r1", one.bearer()).text

    assert "<select" not in page
    assert re.search(r'<input id="restaurant" name="restaurant" value="r1"', page)
    assert "3 restaurants are too many for a list" in page


PLAIN = "You cannot sign in at this address"


@pytest.mark.parametrize(
    ("address", "headers", "is_told"),
    [
        ("http://192.168.1.5:8000", {}, True),
        ("http://till.local", {"Sec-Fetch-Site": "none"}, False),
        ("http://till.local", {"X-Forwarded-Proto": "https"}, False),
        ("https://till.local", {}, False),
        (ADDRESS, {}, False),
    ],
)
def test_where_no_session_can_be_kept_the_form_says_so(
    one: Site, address: str, headers: dict[str, str], is_told: bool
) -> None:
    one.client.cookies.clear()
    form = {"token": one.make_token("r1")}
    sent = {**headers, "Accept": HTML}

    for path in ("/login", "/r/r1"):
        assert (PLAIN in one.client.get(f"{address}{path}", headers=sent).text) is is_told
    wrong = one.client.post(f"{address}/login", data={"token": "lm_wrong"}, headers=headers)
    assert (PLAIN in wrong.text) is is_told
    entered = one.client.post(f"{address}/login", data=form, headers=headers)
    if is_told:
        assert (entered.status_code, PLAIN in entered.text) == (401, True)


def test_a_model_of_no_restaurant_is_shown_to_admins_only(one: Site) -> None:
    assert "market_totals" in ask(one, "/models", one.bearer()).text
    assert "market_totals" not in ask(one, "/models", one.bearer("r1")).text
    assert "restaurant_top_dishes" in ask(one, "/models", one.bearer("r1")).text
    own, foreign = (
        ask(one, "/models/market_totals", it) for it in (one.bearer(), one.bearer("r1"))
    )
    assert (own.status_code, "2026-03-01" in own.text) == (200, True)
    unknown = ask(one, "/models/nothing", one.bearer("r1"))
    assert foreign.status_code == 404
    assert told(foreign) == told(unknown)


def test_the_page_of_a_model_holds_the_rows_of_who_asks(one: Site) -> None:
    everyone = ask(one, "/models/restaurant_top_dishes", one.bearer())
    own = ask(one, "/models/restaurant_top_dishes", one.bearer("r1"))

    assert FOREIGN.search(everyone.text)
    assert not FOREIGN.search(own.text)
    assert '<td class="text">r1</td>' in own.text
    assert 'data-stream="/v1/models/restaurant_top_dishes/stream"' in own.text
    assert own.headers["cache-control"] == "no-store"
    # How many rows others have is theirs to know.
    assert 'href="/models/restaurant_top_dishes"' in ask(one, "/models", one.bearer("r1")).text
    assert "<td>1</td>" not in ask(one, "/models", one.bearer("r1")).text


def test_a_project_without_the_owners_models_begins_with_what_it_serves(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as here:
        table = pa.table(
            {
                "name": ["<b>Joe's</b>", None],
                "amount": pa.array([Decimal("8243.50"), None], pa.decimal128(10, 2)),
                "at": pa.array([NOON, None], pa.timestamp("us", "UTC")),
                "is_open": [True, None],
                "share": [0.5, None],
                "id": [2**60, 1],
            }
        )
        fill_store(here.url, {"shops": table}, {"shops": ("id",)})
        here.until(lambda: here.shows(1))
        here.make_token()

        first = ask(here, "/", here.bearer())
        listed = ask(here, "/models", here.bearer())
        page = ask(here, "/models/shops", here.bearer())

    assert (first.status_code, first.headers["location"]) == (303, "/models")
    assert re.findall(r"<td>([^<]*)</td>", listed.text)[:2] == ["2", "id"]
    cells = page.text.partition('<tbody id="cells">')[2].partition("</tbody>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", cells) == [
        *(DASH, DASH, DASH, DASH, DASH, "1"),
        *("&lt;b&gt;Joe&#39;s&lt;/b&gt;", "8243.50", f"{NOON:%Y-%m-%dT%H:%M:%S}Z", "true", "0.5"),
        str(2**60),
    ]
    assert "2 rows." in page.text


def test_no_page_leads_back_to_the_error_that_it_shows(one: Site, tmp_path: Path) -> None:
    unknown = ask(one, "/models/nothing", one.bearer())
    nobody = ask(one, "/", one.bearer("r9"))

    for answer in (unknown, nobody):
        assert answer.status_code == 404
        assert 'class="button" href="/models"' in answer.text


def test_a_large_model_shows_its_first_rows_and_says_so(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as here:
        fill_store(here.url, {"days": pa.table({"day": range(250)})}, {"days": ("day",)})
        here.until(lambda: here.shows(1))
        here.make_token()

        page = ask(here, "/models/days", here.bearer())

    assert "The first 100 rows of 250, in the order of the key." in page.text
    assert re.findall(r'<td class="number">(\d+)</td>', page.text) == [
        str(day) for day in range(100)
    ]


@pytest.mark.parametrize("window", ["2h", "", "<b>", "1h&window=2h"])
def test_an_unknown_window_is_told(one: Site, window: str) -> None:
    page = ask(one, f"/r/r1?window={window}", one.bearer("r1"))
    problem = ask(one, f"/r/r1?window={window}", one.bearer("r1"), JSON)

    assert (page.status_code, problem.status_code) == (422, 422)
    assert "WINDOW_UNKNOWN" in page.text
    assert "<b>." not in page.text
    assert problem.json()["code"] == "WINDOW_UNKNOWN"


def test_a_browser_keeps_no_page_of_figures(one: Site) -> None:
    answer = ask(one, "/r/r1?window=24h", one.bearer("r1"))

    assert answer.headers.get_list("cache-control") == ["no-store"]


def test_state_and_trend_are_of_one_snapshot_and_never_cached(one: Site) -> None:
    answer = ask(one, "/r/r1?window=24h", one.bearer("r1"), JSON)

    body = answer.json()
    assert body["state"]["snapshot_id"] == body["trend"]["snapshot_id"] == 1
    assert body["money"] == {"currency": "EUR", "digits": 2}
    assert answer.headers["cache-control"] == "no-store"
    assert "Accept" in answer.headers["vary"]


def test_a_token_becomes_a_session_and_the_session_ends(one: Site) -> None:
    token = one.make_token("r1")
    one.client.cookies.clear()
    form = {"token": f" {token}\n", "next": "/r/r1?window=1h"}

    entered = one.client.post("/login", data=form, headers=ORIGIN, follow_redirects=False)

    assert (entered.status_code, entered.headers["location"]) == (303, "/r/r1?window=1h")
    cookie = SimpleCookie(entered.headers["set-cookie"])["livemart_session"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "lax", "/")
    assert token not in entered.headers["set-cookie"]
    assert one.client.get("/r/r1", headers={"Accept": HTML}).status_code == 200
    left = one.client.post("/logout", headers=ORIGIN, follow_redirects=False)
    assert (left.status_code, left.headers["location"]) == (303, "/login")
    assert one.client.get("/r/r1", headers={"Accept": HTML}).status_code == 401


@pytest.mark.parametrize("lasts", [None, timedelta(seconds=-1)])
def test_a_wrong_token_is_refused_in_the_form(one: Site, lasts: timedelta | None) -> None:
    token = "lm_wrong" if lasts is None else one.make_token("r1", lasts=lasts)
    one.client.cookies.clear()

    answer = one.client.post("/login", data={"token": token, "next": "/r/r1"}, headers=ORIGIN)

    assert answer.status_code == 401
    assert 'role="alert"' in answer.text
    assert 'value="/r/r1"' in answer.text
    assert token not in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("next", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_a_sign_in_leads_to_no_other_site(one: Site, next: str) -> None:
    form = {"token": one.make_token("r1"), "next": next}
    one.client.cookies.clear()

    answer = one.client.post("/login", data=form, headers=ORIGIN, follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize("path", ["/login", "/logout"])
def test_a_form_of_another_site_is_refused(one: Site, path: str) -> None:
    token = one.make_token("r1")
    one.client.cookies.clear()
    elsewhere = {"Origin": "https://evil.example"}

    answer = one.client.post(path, data={"token": token}, headers=elsewhere)

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/static/../page.py", "/static/%2e%2e/page.py", "/static//etc/passwd", "/static/"]
)
def test_no_other_file_is_served(one: Site, path: str) -> None:
    answer = ask(one, path, {})

    assert answer.status_code in (401, 404)
    assert "def " not in answer.text


def test_before_the_first_snapshot_the_page_waits(tmp_path_factory: pytest.TempPathFactory) -> None:
    with site(tmp_path_factory.mktemp("empty"), page=True) as empty:
        answer = ask(empty, "/r/r1", {})

        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "NOTHING_PUBLISHED" in answer.text


def test_a_failed_run_is_told_to_admins_with_its_model_and_to_owners_in_a_sentence(
    tmp_path: Path,
) -> None:
    failure = RunFailure(NOON, "MODEL_FAILED", ("model.shop.totals",), "models/totals.sql: secret")
    run = LastRun("refresh", 1, NOON, NOON, ended_at=NOON, ending="failed", failure=failure)
    keep_last_run(make_settings(tmp_path).warehouse, run)
    with site(tmp_path, page=True, now=lambda: NOON + timedelta(minutes=12)) as here:
        fill_store(here.url, reference_tables())
        here.until(lambda: here.shows(1))
        owner, admin = here.bearer("r1"), here.bearer()
        pages = [here.client.get("/r/r1", headers=headers).text for headers in (owner, admin)]
        models = [
            here.client.get(path, headers=admin).text
            for path in ("/models", "/models/restaurant_order_metrics")
        ]
        pulled = here.client.get("/r/r1", headers={**owner, "Accept": JSON}).json()

        # A later successful run removes it.
        keep_last_run(make_settings(tmp_path).warehouse, replace(run, ending="ok", failure=None))
        here.until(
            lambda: not here.client.get("/r/r1", headers={**owner, "Accept": JSON}).json()["failed"]
        )
        later = here.client.get("/r/r1", headers=owner).text

    assert pulled["failed"] == "The last run failed 12 min ago."
    assert [f">{pulled['failed']}<" in page for page in (pages[0], later)] == [True, False]
    assert "MODEL_FAILED" not in pages[0]
    for page in (pages[1], *models):
        assert "The last run failed 12 min ago: MODEL_FAILED in model.shop.totals." in page
    assert all("secret" not in page for page in (*pages, *models))


def test_who_saw_the_page_of_a_snapshot_is_told_nothing_of_the_one_before(tmp_path: Path) -> None:
    may_go_on = threading.Event()

    async def prepare(topics: object) -> None:
        while not may_go_on.is_set():
            await asyncio.sleep(0.01)

    with site(tmp_path, page=True) as here:
        fill_store(here.url, reference_tables())
        here.until(lambda: here.shows(1))
        here.client.get("/v1/restaurants/r1/metrics")
        here.hub.prepare = prepare
        fill_store(here.url, reference_tables(), snapshot_id=2)

        page = here.client.get("/r/r1", headers={"Accept": JSON}).json()
        metrics = here.client.get("/v1/restaurants/r1/metrics").json()
        may_go_on.set()

    assert page["state"]["snapshot_id"] == metrics["snapshot_id"] == 2


def _with_ids(ids: pa.Array) -> dict[str, pa.Table]:
    """Return the models of one order, of a restaurant with another id than r1."""
    order = Order("o1", "r1", "c1", NOON - timedelta(minutes=3), (("d1", 1),))
    tables = reference_tables([order], restaurants={"r1": RESTAURANTS["r1"]})
    for name, table in tables.items():
        index = table.schema.get_field_index("restaurant_id")
        column = pa.concat_arrays([ids] * table.num_rows)
        tables[name] = table.set_column(index, "restaurant_id", column)
    return tables


@pytest.mark.parametrize(
    ("ids", "restaurant_id", "path"),
    [
        (pa.array([7], pa.int64()), "7", "7"),
        (pa.array(["a/b"]), "a/b", "a%2Fb"),
        (pa.array(["/"]), "/", "%2F"),
        (pa.array(["a%2Fb ü?"]), "a%2Fb ü?", "a%252Fb%20%C3%BC%3F"),
    ],
)
def test_a_restaurant_is_reached_whatever_its_id_is(
    tmp_path: Path, ids: pa.Array, restaurant_id: str, path: str
) -> None:
    with site(tmp_path, page=True) as here:
        fill_store(here.url, _with_ids(ids))
        here.until(lambda: here.shows(1))

        listed = here.client.get("/v1/restaurants").json()["restaurants"]
        assert listed == [{"id": restaurant_id, "name": "Taverna Azul"}]
        first = here.client.get("/", follow_redirects=False)
        assert first.headers["location"] == f"/r/{path}?window=24h"
        caller = here.bearer(restaurant_id)
        for kind in ("metrics", "top-dishes", "trend"):
            for query in ("", "?window=1h"):
                answer = here.client.get(f"/v1/restaurants/{path}/{kind}{query}", headers=caller)
                assert answer.status_code == 200, answer.text
                assert answer.json()["restaurant"]["id"] == restaurant_id
        page = here.client.get(f"/r/{path}", headers={"Accept": HTML, **caller})
        assert page.status_code == 200
        assert f'action="/r/{path}"' in page.text
        form = here.client.get(f"/r/{path}", headers={"Accept": HTML})
        assert f'value="/r/{path}"' in form.text
        foreign = here.client.get(f"/v1/restaurants/{path}/metrics", headers=here.bearer("r9"))
        assert foreign.status_code == 404
        measured = here.client.get("/metrics", headers=here.bearer()).text
        assert 'route="/v1/restaurants/{restaurant_id}/metrics"' in measured


def test_a_slash_that_is_part_of_an_id_is_told_as_it_was_sent(one: Site) -> None:
    answer = one.client.get("/v1/restaurants/a%2fb/metrics", headers=one.bearer("r1"))
    nowhere = one.client.get("/v1/restaurants/a%2Fb", headers=one.bearer("r1"))

    assert answer.json()["instance"] == "/v1/restaurants/a%2Fb/metrics"
    assert (nowhere.status_code, nowhere.json()["instance"]) == (404, "/v1/restaurants/a%2Fb")


@pytest.mark.parametrize(("missing", "first"), [((168,), "24h"), ((24,), "1h"), ((1, 24), "168h")])
def test_a_project_with_fewer_windows_shows_those_it_has(
    tmp_path: Path, missing: tuple[int, ...], first: str
) -> None:
    tables = reference_tables()
    metrics = tables["restaurant_order_metrics"]
    lengths = pa.array(missing, metrics["window_hours"].type)
    is_missing = pc.is_in(metrics["window_hours"], value_set=lengths)
    tables["restaurant_order_metrics"] = metrics.filter(pc.invert(is_missing))
    with site(tmp_path, page=True) as here:
        fill_store(here.url, tables)
        here.until(lambda: here.shows(1))
        hours = missing[-1]

        for kind in ("metrics", "top-dishes", "trend", "stream"):
            answer = here.client.get(f"/v1/restaurants/r1/{kind}?window={hours}h")
            assert (answer.status_code, answer.json()["code"]) == (422, "WINDOW_UNKNOWN")
            assert first in answer.json()["detail"]
        page = here.client.get(f"/r/r1?window={hours}h", headers={"Accept": HTML})
        assert page.status_code == 422
        assert f"found {hours}h" in page.text
        assert len(here.client.get("/v1/restaurants").json()["restaurants"]) == 3
        start = here.client.get("/?restaurant=r1", headers={"Accept": HTML})
        assert start.url.query == f"window={first}".encode()
        shown = re.findall(r'<button name="window" value="(\d+)h"', start.text)
        assert {int(each) for each in shown} == {1, 24, 168} - set(missing)
