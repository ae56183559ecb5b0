"""Every path against every kind of caller: who sees what, and that a foreign thing is no thing.

The list of paths is held against the application: a path that is missing here fails the test.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.serve.apps import Site, compared, server, site
from tests.serve.auth.callers import CALLERS, REFUSED, WRONG, WRONG_COOKIES, headers_of, session
from tests.serve.auth.tenant_cases import (
    ARROW,
    CSV,
    DASHBOARDS,
    GUARDED,
    JSON,
    LISTS,
    MODEL_PAGES,
    OF_ADMINS,
    OF_MODEL,
    OF_NO_TENANT,
    OF_RESTAURANT,
    OPEN,
    OTHERS,
    PAGES,
    PAGES_OF_ALL,
    WAYS,
    Case,
    ask,
)
from tests.serve.live.events import open_stream
from tests.store.stores import KEYS, RESTAURANTS, fill_store, reference_tables

# Names of the others, which must be in no answer; r4 does not exist.
FOREIGN = re.compile(r"\br2\b|\br3\b|Joe's Diner|麺処|America/New_York|Asia/Tokyo|USD|JPY")

# Each would be markup, a formula, another field, another line or another event, if it were no text.
TEXTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u2028\u2029</script>",
    "=cmd|'/C calc'!A0",
    'a,"b"\r\nc',
    "line\nend\r\ndata: forged\n\nevent: forged",
    "\x1f\x7f",
    "\u202eevil",
)


def fill(url: str) -> None:
    tables = reference_tables()
    tables["market_totals"] = pa.table({"day": ["2026-03-01"], "order_count": [120]})
    fill_store(url, tables, {**KEYS, "market_totals": ("day",)}, pages=DASHBOARDS)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    # However long the tests take, the snapshot is not stale.
    with site(tmp_path_factory.mktemp("tenants"), page=True, every="1d") as found:
        fill(found.url)
        found.until(lambda: found.shows(1))
        yield found


@pytest.fixture(scope="module")
def address(one: Site, refused: Mapping[str, object]) -> Iterator[tuple[str, int]]:
    """A real server over the same store: a stream has no end that a test client could wait for."""
    # It has to know these tokens when it begins: of a cookie's, or of one that was revoked since it
    # read it, it may not know at once.
    assert refused
    session(one)
    folder = Path(one.url.removeprefix("sqlite:///")).parents[2]
    with server(folder) as found:
        yield found


@pytest.fixture(scope="module")
def refused(one: Site) -> dict[str, dict[str, str]]:
    """Return the headers of all refused callers, from the first token on."""
    one.make_token()
    return {caller: headers_of(one, caller) for caller in REFUSED}


def routes_of(router: Any) -> set[tuple[str, str]]:
    """Return method and path of every route, those of included routers too."""
    found = set()
    for route in router.routes:
        if (inner := getattr(route, "original_router", None)) is not None:
            found |= routes_of(inner)
        else:
            found |= {(method, route.path) for method in route.methods - {"HEAD"}}
    return found


def test_every_path_of_the_application_is_in_this_matrix(one: Site) -> None:
    expected = {(case.method, case.route) for case in [*GUARDED, *OPEN, *OTHERS]}

    assert routes_of(one.client.app) == expected


@pytest.mark.gate_takes_every(3)
@pytest.mark.parametrize("case", GUARDED, ids=lambda case: f"{case.path} {case.form}")
def test_whoever_is_not_known_gets_the_same_401_everywhere(
    one: Site, address: tuple[str, int], case: Case, refused: Mapping[str, dict[str, str]]
) -> None:
    for kinds in (("none",), (*WRONG, *WRONG_COOKIES)):
        told = {}
        for caller in kinds:
            for restaurant in ("r1", "r4") if "{r}" in case.path else ("",):
                answer = ask(one, address, case, restaurant, refused[caller])

                assert answer.status == 401, caller
                assert answer.headers["www-authenticate"].startswith("Bearer ")
                assert not answer.headers.keys() & {"etag", "set-cookie", "location"}
                told[caller, restaurant] = answer.told(restaurant)
        first = next(iter(told.values()))
        assert {key: each for key, each in told.items() if each != first} == {}


@pytest.mark.parametrize("case", OPEN, ids=lambda case: case.path)
def test_what_is_open_to_all_is_the_same_for_all(
    one: Site, address: tuple[str, int], case: Case, refused: Mapping[str, dict[str, str]]
) -> None:
    callers = {**refused, **{each: headers_of(one, each) for each in ("own", "admin", "cookie")}}
    told = {caller: ask(one, address, case, "", headers) for caller, headers in callers.items()}

    first = told["none"]
    for caller, answer in told.items():
        if case.path == "/readyz":
            # It says how old the snapshot is, to the millisecond.
            for each in (first, answer):
                each.headers.pop("content-length", None)
        assert (answer.status, answer.headers) == (first.status, first.headers), caller
        assert answer.body == first.body or case.path == "/readyz", caller
        assert FOREIGN.search(answer.text) is None


@pytest.mark.parametrize("case", PAGES, ids=lambda case: f"{case.path} {case.form}")
@pytest.mark.parametrize("caller", ["own", "several", "cookie"])
def test_a_page_shows_the_own_restaurant_and_no_other(
    one: Site, address: tuple[str, int], case: Case, caller: str
) -> None:
    answer = ask(one, address, case, "r1", headers_of(one, caller))

    assert answer.status == 200
    assert "Taverna Azul" in answer.text
    assert FOREIGN.search(answer.text) is None


@pytest.mark.parametrize("caller", ["own", "several", "cookie"])
def test_the_list_of_models_has_none_without_tenants(
    one: Site, address: tuple[str, int], caller: str
) -> None:
    models = ask(one, address, PAGES_OF_ALL[1], "", headers_of(one, caller))
    everything = ask(one, address, PAGES_OF_ALL[1], "", headers_of(one, "admin"))

    assert (models.status, everything.status) == (200, 200)
    assert "market_totals" in everything.text
    assert "market_totals" not in models.text


@pytest.mark.parametrize("case", OF_RESTAURANT, ids=lambda case: case.path)
@pytest.mark.parametrize("caller", ["own", "several", "admin", "cookie"])
def test_the_own_restaurant_is_seen_and_no_other_in_it(
    one: Site, address: tuple[str, int], case: Case, caller: str
) -> None:
    answer = ask(one, address, case, "r1", headers_of(one, caller))

    assert answer.status == 200
    assert "Taverna Azul" in answer.text
    assert FOREIGN.search(answer.text) is None


@pytest.mark.parametrize(
    "case", [*OF_RESTAURANT, *PAGES, *WAYS], ids=lambda case: f"{case.path} {case.form}"
)
@pytest.mark.parametrize("caller", ["own", "several", "cookie"])
def test_a_foreign_restaurant_is_answered_as_one_that_is_not_there(
    one: Site, address: tuple[str, int], case: Case, caller: str
) -> None:
    headers = headers_of(one, caller)

    foreign = ask(one, address, case, "r2", headers)
    unknown = ask(one, address, case, "r5", headers)

    # The way to a page says nothing of it yet.
    assert foreign.status == (303 if case in WAYS else 404)
    assert foreign.told("r2") == unknown.told("r5")


def test_an_own_restaurant_that_is_not_there_is_answered_like_a_foreign_one(one: Site) -> None:
    headers = headers_of(one, "several")

    own = one.client.get("/v1/restaurants/r4/metrics", headers=headers)
    foreign = one.client.get("/v1/restaurants/r2/metrics", headers=headers)

    assert own.content.replace(b"r4", b"rX") == foreign.content.replace(b"r2", b"rX")
    assert compared(own.headers) == compared(foreign.headers)


@pytest.mark.parametrize("restaurant", RESTAURANTS)
def test_an_admin_sees_every_restaurant(one: Site, restaurant: str) -> None:
    answer = one.client.get(f"/v1/restaurants/{restaurant}/metrics", headers=one.bearer())

    assert answer.json()["restaurant"]["name"] == RESTAURANTS[restaurant][0]


def test_an_admin_is_told_of_an_unknown_restaurant(one: Site) -> None:
    answer = one.client.get("/v1/restaurants/r5/metrics", headers=one.bearer())

    assert answer.status_code == 404


@pytest.mark.parametrize("case", OF_MODEL, ids=lambda case: f"{case.path} {case.form}")
def test_of_a_model_only_the_own_rows_are_seen(
    one: Site, address: tuple[str, int], case: Case
) -> None:
    own = ask(one, address, case, "", headers_of(one, "own"))
    several = ask(one, address, case, "", headers_of(one, "several"))
    everything = ask(one, address, case, "", headers_of(one, "admin"))

    assert own.status == everything.status == several.status == 200
    assert "r1" in own.text and FOREIGN.search(own.text) is None
    assert own.body == several.body
    assert FOREIGN.search(everything.text) is not None


@pytest.mark.parametrize("case", MODEL_PAGES, ids=lambda case: case.path)
@pytest.mark.parametrize("caller", ["own", "several", "cookie"])
def test_the_page_of_a_model_has_the_own_rows_alone(
    one: Site, address: tuple[str, int], caller: str, case: Case
) -> None:
    own = ask(one, address, case, "", headers_of(one, caller))
    everything = ask(one, address, case, "", headers_of(one, "admin"))

    assert own.status == 200
    assert "market_totals" not in own.text and FOREIGN.search(own.text) is None
    assert FOREIGN.search(everything.text) is not None


@pytest.mark.parametrize("case", OF_NO_TENANT, ids=lambda case: f"{case.path} {case.form}")
@pytest.mark.parametrize("caller", ["own", "several"])
def test_a_model_without_tenants_is_not_there_but_for_admins(
    one: Site, address: tuple[str, int], case: Case, caller: str
) -> None:
    headers = headers_of(one, caller)
    nothing = Case(case.route, case.path.replace("market_totals", "nothing_there"), case.form)

    hidden = ask(one, address, case, "", headers)
    unknown = ask(one, address, nothing, "", headers)

    assert hidden.status == unknown.status == 404
    assert hidden.body.replace(b"market_totals", b"nothing_there") == unknown.body
    assert hidden.headers == unknown.headers
    assert ask(one, address, case, "", one.bearer()).status == 200


@pytest.mark.parametrize("case", OF_ADMINS, ids=lambda case: case.path)
@pytest.mark.parametrize("caller", ["own", "several", "cookie", "ingest"])
def test_what_could_not_land_is_nothing_but_to_admins(
    one: Site, address: tuple[str, int], case: Case, caller: str
) -> None:
    answer = ask(one, address, case, "", headers_of(one, caller))

    assert (answer.status, "NOT_FOUND" in answer.text) == (404, True)
    if case.form == JSON:
        nothing = Case("", case.path.replace("dead-letters", "nothing"))
        unknown = ask(one, address, nothing, "", headers_of(one, caller))
        assert answer.body.replace(b"dead-letters", b"nothing") == unknown.body
    # An admin learns that no such table exists, or the mistake in the request.
    told = ask(one, address, case, "", one.bearer()).text
    assert ("PARAMETER_WRONG" if "wrong" in case.path else "LETTERS_MISSING") in told


@pytest.mark.parametrize("form", [JSON, CSV, ARROW])
@pytest.mark.parametrize("model", KEYS)
@pytest.mark.parametrize("caller", ["own", "several", "cookie"])
def test_a_filter_on_a_foreign_restaurant_finds_nothing(
    one: Site, address: tuple[str, int], model: str, form: str, caller: str
) -> None:
    case = Case("/v1/models/{name}", f"/v1/models/{model}?key=restaurant_id:{{r}}", form)
    headers = headers_of(one, caller)

    own, foreign, unknown = (ask(one, address, case, name, headers) for name in ("r1", "r2", "r5"))

    assert own.status == foreign.status == 200
    assert "r1" in own.text and FOREIGN.search(foreign.text) is None
    for answer in (foreign, unknown):
        # It is of the question, and the question names the restaurant.
        assert answer.headers.pop("etag")
    assert foreign.told("r2") == unknown.told("r5")
    assert len(foreign.body) < len(own.body)


def test_lists_name_only_what_is_theirs(one: Site) -> None:
    def names(path: str, member: str, headers: dict[str, str]) -> list[str]:
        found = one.client.get(path, headers=headers).json()[member]
        return [each["name"] for each in found]

    own, admin = headers_of(one, "own"), headers_of(one, "admin")

    assert names("/v1/restaurants", "restaurants", own) == ["Taverna Azul"]
    assert len(names("/v1/restaurants", "restaurants", admin)) == 3
    assert "market_totals" not in names("/v1/models", "models", own)
    assert names("/v1/models", "models", headers_of(one, "ingest")) == []
    assert "market_totals" in names("/v1/models", "models", admin)


@pytest.mark.parametrize(
    "case", [*OF_RESTAURANT[:9], *OF_MODEL[:5]], ids=lambda case: f"{case.path} {case.form}"
)
def test_a_tag_of_one_caller_opens_nothing_to_another(one: Site, case: Case) -> None:
    forms = {"Accept": case.form}
    admin = one.client.get(case.of("r2"), headers={**one.bearer(), **forms})
    own = one.client.get(case.of("r1"), headers={**headers_of(one, "own"), **forms})

    again = {"If-None-Match": own.headers["etag"], **forms}
    known = one.client.get(case.of("r1"), headers={**headers_of(one, "own"), **again})
    assert (known.status_code, known.content) == (304, b"")
    assert known.headers["etag"] == own.headers["etag"]

    stolen = {"If-None-Match": f"{admin.headers['etag']}, *", **forms}
    is_of_restaurant = case in OF_RESTAURANT
    answer = one.client.get(case.of("r2"), headers={**headers_of(one, "own"), **stolen})
    assert answer.status_code == (404 if is_of_restaurant else 304)
    assert one.client.get(case.of("r2"), headers=stolen).status_code == 401
    assert admin.headers["etag"] != own.headers["etag"]


def test_measurements_are_for_admins_wherever_they_are(one: Site, tmp_path: Path) -> None:
    def status(one: Site, caller: str) -> int:
        return one.client.get("/metrics", headers=headers_of(one, caller)).status_code

    assert {caller: status(one, caller) for caller in CALLERS} == {
        "own": 404,
        "several": 404,
        "admin": 200,
        "cookie": 404,
        **dict.fromkeys(REFUSED, 401),
    }
    with site(tmp_path, peer="192.0.2.1", host="0.0.0.0") as far:
        far.make_token()
        assert {caller: status(far, caller) for caller in CALLERS} == {
            "own": 404,
            "several": 404,
            "admin": 200,
            "cookie": 404,
            **dict.fromkeys(REFUSED, 401),
        }


@pytest.mark.parametrize("caller", CALLERS)
def test_whether_the_server_is_well_is_no_secret(one: Site, caller: str) -> None:
    headers = headers_of(one, caller)

    for path in ("/healthz", "/readyz"):
        answer = one.client.get(path, headers=headers)

        assert answer.status_code == 200
        assert FOREIGN.search(answer.text) is None


def test_a_wrong_request_tells_no_more_of_a_foreign_restaurant(one: Site) -> None:
    headers = headers_of(one, "own")

    def answers(restaurant: str) -> list[tuple[int, str]]:
        found: list[Any] = []
        for kind in ("metrics", "trend", "top-dishes", "stream"):
            path = f"/v1/restaurants/{restaurant}/{kind}"
            found += [
                one.client.get(f"{path}?window=2h", headers=headers),
                one.client.get(path, headers={**headers, "Accept": "image/png"}),
                one.client.post(path, headers=headers),
            ]
        return [(each.status_code, each.text.replace(restaurant, "rX")) for each in found]

    assert answers("r2") == answers("r5")


def test_no_answer_may_be_shared_by_a_cache(one: Site) -> None:
    for caller in ("own", "none", "admin"):
        for case in [*OF_RESTAURANT[:9], *OF_MODEL[:5], *LISTS]:
            headers = {**headers_of(one, caller), "Accept": case.form}
            found = one.client.get(case.of("r1"), headers=headers).headers

            assert found["cache-control"] in ("private, no-cache", "no-store")
            assert found["vary"] == "Authorization, Cookie, Accept, Accept-Encoding"


def test_text_from_records_stays_text(tmp_path: Path) -> None:
    import csv
    import io

    async def pushed(address: tuple[str, int], number: int) -> object:
        path = "/v1/restaurants/r1/stream?window=168h"
        async with open_stream(address, path) as stream:
            async for event in stream.events():
                assert event.kind == "snapshot"
                if event.data["snapshot_id"] == number:
                    return event.data["top_dishes"][0]["name"]
        return None

    with site(tmp_path) as one, server(tmp_path) as address:
        for number, text in enumerate(TEXTS, start=1):
            names = {dish: text for dish in ("d1", "d2", "d3", "d4", "d5")}
            fill_store(one.url, reference_tables(dish_names=names), snapshot_id=number)
            one.until(lambda number=number: one.shows(number))  # type: ignore[misc]
            path = "/v1/models/restaurant_top_dishes?limit=1"
            answers = {
                form: one.client.get(path, headers={"Accept": form}) for form in (JSON, CSV, ARROW)
            }
            dishes = one.client.get("/v1/restaurants/r1/top-dishes?window=168h")

            assert dishes.json()["top_dishes"][0]["name"] == text
            assert answers[JSON].json()["rows"][0]["dish_name"] == text
            (row,) = csv.DictReader(io.StringIO(answers[CSV].content.decode(), newline=""))
            assert row["dish_name"] == text
            table = pa.ipc.open_stream(answers[ARROW].content).read_all()
            assert table["dish_name"].to_pylist() == [text]
            for answer in [*answers.values(), dishes]:
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert "html" not in answer.headers["content-type"]
            assert asyncio.run(pushed(address, number)) == text
