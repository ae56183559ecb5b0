"""Every path against every kind of caller: who sees what, and that a foreign thing is no thing.

The list of paths is held against the application: one that nobody thought of here fails the test.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.serve.apps import Site, bearer, server, site
from tests.serve.events import open_stream
from tests.serve.stores import KEYS, RESTAURANTS, fill_store, reference_tables

JSON, CSV = "application/json", "text/csv"
ARROW, EVENTS = "application/vnd.apache.arrow.stream", "text/event-stream"
# Names of the others, which must be in no answer; r4 is known to nobody.
FOREIGN = re.compile(r"\br2\b|\br3\b|Joe's Diner|麺処|America/New_York|Asia/Tokyo|USD|JPY")
CALLERS = ("own", "several", "none", "malformed", "unknown", "expired", "revoked", "admin")
REFUSED = ("none", "malformed", "unknown", "expired", "revoked")


@dataclass(frozen=True, slots=True)
class Case:
    """A path as the application has it, filled in for one restaurant `{r}`; and a wanted form."""

    route: str
    path: str
    form: str = JSON

    def of(self, restaurant: str) -> str:
        return self.path.replace("{r}", restaurant)


OF_RESTAURANT = [
    *(
        Case(f"/v1/restaurants/{{restaurant_id}}/{kind}", f"/v1/restaurants/{{r}}/{kind}{query}")
        for kind in ("metrics", "top-dishes", "trend")
        for query in ("", "?window=1h", "?window=168h")
    ),
    Case("/v1/restaurants/{restaurant_id}/stream", "/v1/restaurants/{r}/stream", EVENTS),
    Case("/v1/restaurants/{restaurant_id}/stream", "/v1/restaurants/{r}/stream?after=0", EVENTS),
]
OF_MODEL = [
    Case("/v1/models/{name}", "/v1/models/restaurant_top_dishes", form)
    for form in (JSON, CSV, ARROW)
] + [
    Case("/v1/models/{name}", "/v1/models/restaurant_sales_trend?from=2026-03-01T00:00Z", CSV),
    Case("/v1/models/{name}", "/v1/models/order_arrivals?limit=10000"),
    Case("/v1/models/{name}/stream", "/v1/models/restaurant_top_dishes/stream?after=0", EVENTS),
]
OF_NO_TENANT = [
    *(Case("/v1/models/{name}", "/v1/models/market_totals", form) for form in (JSON, CSV, ARROW)),
    Case("/v1/models/{name}/stream", "/v1/models/market_totals/stream?after=0", EVENTS),
]
LISTS = [Case("/v1/restaurants", "/v1/restaurants"), Case("/v1/models", "/v1/models")]
OTHERS = {"/healthz", "/readyz", "/metrics"}


def fill(url: str) -> None:
    tables = reference_tables()
    tables["market_totals"] = pa.table({"day": ["2026-03-01"], "order_count": [120]})
    fill_store(url, tables, {**KEYS, "market_totals": ("day",)})


def headers_of(one: Site, caller: str) -> dict[str, str]:
    """Return the headers of a caller; the token's restaurant is r1, of `several` r1 and r4."""
    match caller:
        case "none":
            return {}
        case "malformed":
            return bearer("lm_nonsense")
        case "unknown":
            return bearer("lm_0123456789ab_" + "A" * 43)
        case "expired":
            return bearer(one.make_token("r1", lasts=timedelta(seconds=-1)))
        case "revoked":
            text, made = one.tokens.create("gone", restaurants=["r1"])
            one.tokens.revoke(made.token_id)
            one.learn_tokens()
            return bearer(text)
        case "admin":
            return one.bearer()
        case "several":
            return one.bearer("r1", "r4")
    return one.bearer("r1")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("tenants"), now=lambda: datetime.now(UTC)) as found:
        fill(found.url)
        found.until(lambda: found.shows(1))
        yield found


@pytest.fixture(scope="module")
def address(one: Site) -> Iterator[tuple[str, int]]:
    """A real server over the same store: a stream has no end that a test client could wait for."""
    one.make_token()
    folder = Path(one.url.removeprefix("sqlite:///")).parents[2]
    with server(folder) as found:
        yield found


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers that could tell something, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        if self.headers.get("content-type") == ARROW:
            # In its columns one value begins where another ends.
            return repr(pa.ipc.open_stream(self.body).read_all().to_pylist())
        return self.body.decode()


def ask(
    one: Site,
    address: tuple[str, int],
    case: Case,
    restaurant: str,
    headers: Mapping[str, str],
) -> Answer:
    """Return the answer; of a stream that is open, its first events."""
    sent = {**headers, "Accept": case.form}
    if case.form != EVENTS:
        answer = one.client.get(case.of(restaurant), headers=sent)
        return Answer(answer.status_code, dict(answer.headers), answer.content)

    async def listen() -> Answer:
        async with open_stream(address, case.of(restaurant), sent) as stream:
            told = stream.body
            if stream.status == 200:
                async with asyncio.timeout(20):
                    async for event in stream.events():
                        told += repr(event).encode()
                        if event.kind == "snapshot":
                            break
            found = {name: value for name, value in stream.headers.items() if name != "date"}
            return Answer(stream.status, found, told)

    return asyncio.run(listen())


def test_every_path_of_the_application_is_in_this_matrix(one: Site) -> None:
    expected = {case.route for case in [*OF_RESTAURANT, *OF_MODEL, *OF_NO_TENANT, *LISTS]} | OTHERS

    assert set(one.client.app.openapi()["paths"]) == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize("caller", REFUSED)
def test_whoever_is_not_known_gets_the_same_401_everywhere(
    one: Site, address: tuple[str, int], caller: str
) -> None:
    headers = headers_of(one, caller)
    seen = set()
    for case in [*OF_RESTAURANT, *OF_MODEL, *OF_NO_TENANT, *LISTS]:
        for restaurant in ("r1", "r4"):
            answer = ask(one, address, case, restaurant, headers)
            path = case.of(restaurant).partition("?")[0]

            assert answer.status == 401, case
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert "etag" not in answer.headers
            seen.add(answer.body.replace(path.encode(), b"PATH"))
    assert len(seen) == 1


@pytest.mark.parametrize("case", OF_RESTAURANT, ids=lambda case: case.path)
@pytest.mark.parametrize("caller", ["own", "several", "admin"])
def test_the_own_restaurant_is_seen_and_no_other_in_it(
    one: Site, address: tuple[str, int], case: Case, caller: str
) -> None:
    answer = ask(one, address, case, "r1", headers_of(one, caller))

    assert answer.status == 200
    assert "Taverna Azul" in answer.text
    assert FOREIGN.search(answer.text) is None


@pytest.mark.parametrize("case", OF_RESTAURANT, ids=lambda case: case.path)
@pytest.mark.parametrize("caller", ["own", "several"])
def test_a_foreign_restaurant_is_answered_as_one_that_is_not_there(
    one: Site, address: tuple[str, int], case: Case, caller: str
) -> None:
    headers = headers_of(one, caller)

    foreign = ask(one, address, case, "r2", headers)
    unknown = ask(one, address, case, "r5", headers)

    assert foreign.status == unknown.status == 404
    assert foreign.body.replace(b"r2", b"rX") == unknown.body.replace(b"r5", b"rX")
    assert foreign.headers == unknown.headers


def test_an_own_restaurant_that_is_not_there_is_answered_like_a_foreign_one(one: Site) -> None:
    headers = headers_of(one, "several")

    own = one.client.get("/v1/restaurants/r4/metrics", headers=headers)
    foreign = one.client.get("/v1/restaurants/r2/metrics", headers=headers)

    assert own.content.replace(b"r4", b"rX") == foreign.content.replace(b"r2", b"rX")
    assert dict(own.headers) == dict(foreign.headers)


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


@pytest.mark.parametrize("key", ["restaurant_id:r2", "restaurant_id:r5"])
def test_a_filter_on_a_foreign_restaurant_finds_nothing(one: Site, key: str) -> None:
    path = f"/v1/models/restaurant_top_dishes?key={key}"

    answer = one.client.get(path, headers=headers_of(one, "own"))

    assert answer.json()["rows"] == []


def test_lists_name_only_what_is_theirs(one: Site) -> None:
    def names(path: str, member: str, headers: dict[str, str]) -> list[str]:
        found = one.client.get(path, headers=headers).json()[member]
        return [each["name"] for each in found]

    own, admin = headers_of(one, "own"), headers_of(one, "admin")

    assert names("/v1/restaurants", "restaurants", own) == ["Taverna Azul"]
    assert len(names("/v1/restaurants", "restaurants", admin)) == 3
    assert "market_totals" not in names("/v1/models", "models", own)
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


def test_measurements_are_for_admins_and_for_this_machine(one: Site, tmp_path: Path) -> None:
    def status(one: Site, caller: str) -> int:
        return one.client.get("/metrics", headers=headers_of(one, caller)).status_code

    assert {caller: status(one, caller) for caller in CALLERS} == {
        "own": 404,
        "several": 404,
        "admin": 200,
        **dict.fromkeys(REFUSED, 200),
    }
    with site(tmp_path, peer="192.0.2.1", host="0.0.0.0") as far:
        far.make_token()
        assert {caller: status(far, caller) for caller in CALLERS} == {
            "own": 404,
            "several": 404,
            "admin": 200,
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
            assert found["vary"] == "Authorization, Cookie, Accept"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "\u2028\u2029</script>",
        "=cmd|'/C calc'!A0",
        'a,"b"\r\nc',
        "line\nend\r\ndata: forged\n\nevent: forged",
        "\x00\x1f\x7f",
        "‮evil",
    ],
)
def test_text_from_records_stays_text(tmp_path: Path, text: str) -> None:
    import csv
    import io

    if "\x00" in text:
        text = text.replace("\x00", "")
    with site(tmp_path) as one:
        names = {dish: text for dish in ("d1", "d2", "d3", "d4", "d5")}
        fill_store(one.url, reference_tables(dish_names=names))
        one.until(lambda: one.shows(1))
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

    with server(tmp_path) as address:

        async def first() -> object:
            path = "/v1/restaurants/r1/stream?window=168h"
            async with open_stream(address, path) as stream:
                event = await stream.next()
                assert event is not None and event.kind == "snapshot"
                return event.data["top_dishes"][0]["name"]

        assert asyncio.run(first()) == text
